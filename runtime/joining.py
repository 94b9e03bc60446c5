"""How a process finds its neighbours: what the settings name, else what `up` wrote into run.json."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from runtime.home import RunFile, read_run
from runtime.names import SettingsError
from runtime.settings import Settings


class NotRunning(Exception):
    """Nothing is named and nothing runs; the message says both ways out."""


@dataclass(frozen=True)
class Joined:
    """Addresses of everything a process talks to."""

    database_url: str  # always postgresql+asyncpg://
    temporal_address: str  # empty, as the namespace: Temporal's own environment configuration says it
    temporal_namespace: str
    storage_url: str
    api_url: str | None = None
    temporal_ui_url: str | None = None
    sealing_key: str | None = None
    embedded_temporal: bool = False  # ours: plain text, and Temporal's own environment configuration does not apply


def resolve(settings: Settings) -> Joined:
    """Find the neighbours. Settings that are named win; run.json fills in the rest. Raises NotRunning."""
    run = read_run(settings.home)
    if not run and not settings.database_url:
        missing = ["VLOG_DATABASE_URL", *(["VLOG_TEMPORAL_ADDRESS"] if not settings.temporal_address else [])]
        raise NotRunning(
            f"No service runs on {settings.home}. Start one with `vlog up`, or set {' and '.join(missing)}."
        )
    return Joined(
        database_url=asyncpg_url(settings.database_url or _of(run).database_url),
        temporal_address=settings.temporal_address or (run.temporal_address if run else ""),
        temporal_namespace=_namespace(settings, run),
        storage_url=settings.storage_url or (run.storage_url if run else default_storage_url(settings)),
        api_url=run.api_url if run else None,
        temporal_ui_url=settings.temporal_ui_url
        or (run.temporal_ui_url if run and not settings.temporal_address else None),
        sealing_key=_sealing_key(settings, run),
        embedded_temporal=bool(run and run.temporal_ui_url and not settings.temporal_address),
    )


def default_storage_url(settings: Settings) -> str:
    return (settings.home / "storage").as_uri()


def asyncpg_url(url: str) -> str:
    """Give a Postgres address the form that SQLAlchemy's asyncpg driver takes, as people write it for psql."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql", "postgresql+asyncpg"):
        raise SettingsError("VLOG_DATABASE_URL must be a Postgres address, like postgresql://user:password@host/name.")
    # libpq says sslmode, asyncpg says ssl; the values are the same.
    query = [("ssl" if name == "sslmode" else name, value) for name, value in parse_qsl(parts.query)]
    # Not urlunsplit's business: without a host it would drop the slashes of postgresql:///name.
    rest = urlunsplit(("", "", parts.path, urlencode(query), ""))
    return f"postgresql+asyncpg://{parts.netloc}{rest}"


def _namespace(settings: Settings, run: RunFile | None) -> str:
    if settings.temporal_namespace:
        return settings.temporal_namespace
    return run.temporal_namespace if run and not settings.temporal_address else ""


def _sealing_key(settings: Settings, run: RunFile | None) -> str | None:
    if settings.sealing_key is not None:
        return settings.sealing_key.get_secret_value()
    return run.sealing_key if run else None


def _of(run: RunFile | None) -> RunFile:
    assert run is not None  # resolve has checked it
    return run
