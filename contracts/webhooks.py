"""What the outside is told: the words of events and alerts, and the messages of one delivery."""

import re
from datetime import datetime
from enum import Enum, StrEnum, auto
from urllib.parse import urlsplit

from contracts.errors import RETRIES_EXHAUSTED
from contracts.message import Message
from contracts.states import JobKind, VideoStatus

PING = "ping"  # somebody tries an address out
EVERYTHING = "*"  # in a webhook's list: every event; alerts are asked for by name

EVENTS = (
    "video.uploaded",
    "video.playable",
    "video.ready",
    "video.failed",
    "video.published",
    "video.unpublished",
    "video.deleted",
    "video.restored",
    "video.purged",
    "job.failed",
    "job.cancelled",
    "worker.registered",
    "worker.stopped",
    "worker.offline",
    "worker.online",
    "worker.quarantined",
    "worker.disabled",
    "worker.enabled",
    "worker.revoked",
    "worker.deleted",
)


class Alert(StrEnum):
    """What an administrator is woken up for; the first five names are documented."""

    STALE_JOB_RECOVERED = "stale_job_recovered"  # a worker vanished; its step goes to another
    MAX_RETRIES_EXCEEDED = "job_max_retries_exceeded"
    FAILED_PATTERN = "job_failed_pattern"  # the same video failed more than once
    WORKER_STARTUP = "worker_startup"
    WORKER_SHUTDOWN = "worker_shutdown"  # on purpose
    JOB_FAILED = "job_failed"  # for good, at its first try: the source is to blame
    JOB_STUCK = "job_stuck"  # it waits for somebody: a disk full or away, a step that never gives up, our bug
    WORKER_OFFLINE = "worker_offline"  # fell silent
    WORKER_QUARANTINED = "worker_quarantined"


# The documents call the other two optional.
USUAL_ALERTS = tuple(alert for alert in Alert if alert not in (Alert.WORKER_STARTUP, Alert.WORKER_SHUTDOWN))
KNOWN = (*EVENTS, *Alert)

PATTERN_OF = 2  # so many failed jobs of one video are a pattern

_WORKERS = {
    "worker.registered": Alert.WORKER_STARTUP,
    "worker.stopped": Alert.WORKER_SHUTDOWN,
    "worker.offline": Alert.WORKER_OFFLINE,
    "worker.quarantined": Alert.WORKER_QUARANTINED,
}
_SAME = frozenset(
    {"video.playable", "video.published", "video.unpublished", "video.deleted", "video.restored", "video.purged"}
    | {"worker.online", "worker.disabled", "worker.enabled", "worker.revoked", "worker.deleted"}
)
_LOST = frozenset({"requeued:stale", "step.lost"})
# Lines of the event log that somebody outside may want to hear of.
_JOBS = frozenset({"job.created", "job.succeeded", "job.failed", "job.cancelled", "job.stuck"})
HEARD_OF = _JOBS | _SAME | _LOST | _WORKERS.keys()


def told_as(
    event: str,
    *,
    kind: JobKind | None = None,
    status: VideoStatus | None = None,
    code: str | None = None,
    failed_jobs: int = 0,
) -> tuple[str, ...]:
    """Name what one line of the event log is to the outside: none, one or several."""
    failed = ("video.failed",) if status is VideoStatus.FAILED else ()  # a failed retranscode leaves a ready video
    match event:
        case "job.created":
            return ("video.uploaded",) if kind is JobKind.UPLOAD else ()
        case "job.succeeded":
            return ("video.ready",)
        case "job.cancelled":
            return ("job.cancelled", *failed)
        case "job.failed":
            alert = Alert.MAX_RETRIES_EXCEEDED if code == RETRIES_EXHAUSTED else Alert.JOB_FAILED
            pattern = (Alert.FAILED_PATTERN,) if failed_jobs >= PATTERN_OF else ()
            return ("job.failed", *failed, alert, *pattern)
        case "job.stuck":
            return (Alert.JOB_STUCK,)
    if event in _LOST:
        return (Alert.STALE_JOB_RECOVERED,)
    if event in _WORKERS:
        return (event, _WORKERS[event])
    return (event,) if event in _SAME else ()


def wants(asked: list[str], name: str) -> bool:
    return name in asked or (EVERYTHING in asked and name in EVENTS)


URL_LIMIT = 500
LONGEST_TIMEOUT_S = 60.0
_UNPRINTABLE = re.compile(r"[^\x21-\x7e]")


def receiver(url: str) -> str:
    """Check the address of a receiver. Any host will do, also in our own network: an administrator chose it."""
    if len(url) > URL_LIMIT:
        raise ValueError(f"an address has at most {URL_LIMIT} characters")
    if _UNPRINTABLE.search(url):
        raise ValueError("an address holds no blanks and only ASCII characters")
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ValueError("an address begins with http:// or https:// and names a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address holds no user and no password; a header can")
    if parts.port == 0:
        raise ValueError("0 is no port")
    return url


def known_events(asked: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Check a list of events and alerts; each counts once."""
    if unknown := [name for name in asked if name not in (*KNOWN, EVERYTHING)]:
        raise ValueError(f"{unknown[0][:50]!r} is no event; there are {', '.join((EVERYTHING, *KNOWN))}")
    return tuple(dict.fromkeys(asked))


class Deliver(Message):
    """Ask for one delivery, until it arrives or its time is over."""

    delivery_id: int
    uid: str  # what the receiver knows it by
    round: int = 1  # a person may ask for it again
    first_wait_s: float = 10.0  # doubling
    longest_wait_s: float = 3600.0
    give_up_after_s: float = 24 * 3600.0

    @property
    def workflow_id(self) -> str:
        """Name its workflow; starting it twice is then one delivery. Not by its number: another database has it too."""
        return f"webhook-{self.uid}" + (f"-{self.round}" if self.round > 1 else "")


class Carried(Enum):
    """What can become of handing a delivery to Temporal."""

    RUNS = auto()
    ENDED = auto()  # Temporal ran it to its end before
    AWAY = auto()


class Outcome(StrEnum):
    DELIVERED = "delivered"  # the receiver said 2xx
    FAILED = "failed"  # worth another try
    REFUSED = "refused"  # 410: the receiver wants no more of it
    DROPPED = "dropped"  # the webhook is gone or switched off


class PostDelivery(Message):
    delivery_id: int
    attempt: int


class Posted(Message):
    """What became of one attempt."""

    outcome: Outcome
    status: int | None = None
    body: str = ""  # how the answer begins
    error: str | None = None
    duration_ms: int = 0
    retry_after_s: float | None = None  # the receiver's own wish


class RecordAttempt(Message):
    delivery_id: int
    round: int
    attempt: int
    posted: Posted
    at: datetime
    next_try_at: datetime | None  # None: this was the last


class Delivered(Message):
    """How a delivery ended, for Temporal's UI."""

    outcome: Outcome
    attempts: int
