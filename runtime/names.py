"""Names of settings: which are superseded, and what a mistyped one was meant to be."""

import difflib
import warnings
from collections.abc import Mapping


class SettingsError(Exception):
    """A setting is wrong; the message tells a person which and how to mend it."""


class SupersededSetting(UserWarning):
    """A setting of the documented system that something else has taken the place of."""


# Documented names that a person moving from the earlier system may still have set.
SUPERSEDED = {
    "VLOG_REDIS_URL": "jobs are dispatched by Temporal and events travel through Postgres; Redis is not used",
    "VLOG_REDIS_POOL_SIZE": "jobs are dispatched by Temporal and events travel through Postgres; Redis is not used",
    "VLOG_JOB_QUEUE_MODE": "jobs are always dispatched by Temporal's task queues",
    "VLOG_JOB_STALE_TIMEOUT": "a silent step is retried after VLOG_STEP_HEARTBEAT_TIMEOUT_SECONDS; "
    "a job may last as long as it makes progress",
}


def check_names(environment: Mapping[str, str], prefix: str, fields: tuple[str, ...]) -> None:
    """Warn about superseded names; refuse unknown ones, since a typo would silently be a default."""
    known = {f"{prefix}{field}".upper() for field in fields}
    unknown = []
    for name in sorted(environment):
        upper = name.upper()
        if not upper.startswith(prefix) or upper in known:
            continue
        if upper in SUPERSEDED:
            warnings.warn(f"{name} has no effect: {SUPERSEDED[upper]}.", SupersededSetting, stacklevel=3)
        else:
            unknown.append(_unknown(name, known))
    if unknown:
        raise SettingsError("\n".join(unknown))


def _unknown(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.6)
    hint = f" Did you mean {close[0]}?" if close else " docs/configuration.md lists the settings."
    return f"{name} is not a setting.{hint}"
