"""Task queues, each named for what it spends, and the names Temporal's UI shows."""

import hashlib
from collections.abc import Sequence
from enum import StrEnum


class TaskQueue(StrEnum):
    ORCHESTRATE = "vlog-orchestrate"  # workflows and mirror writes: milliseconds
    CPU = "vlog-cpu"  # encoders
    GPU = "vlog-gpu"  # encoders on a device
    IO = "vlog-io"  # reading and writing: plans, copies, checks, webhooks
    PROBE = "vlog-probe"  # one look through a source, before anything is known of it
    ANALYSIS = "vlog-analysis"  # captions


class Pool(StrEnum):
    """What a worker process serves; one task queue each."""

    ORCHESTRATE = "orchestrate"
    CPU = "cpu"
    GPU = "gpu"
    IO = "io"
    PROBE = "probe"
    ANALYSIS = "analysis"

    @property
    def queue(self) -> TaskQueue:
        return TaskQueue(f"vlog-{self.value}")


ENCODERS = (Pool.CPU, Pool.GPU)  # whose steps weigh something: by their slots a worker is busy or idle
DEFAULT_POOLS = (Pool.ORCHESTRATE, Pool.IO, Pool.CPU)  # of a worker that was not told any


def with_probes(pools: Sequence[Pool]) -> tuple[Pool, ...]:
    """Add what is not told by itself: who encodes looks at sources too, in slots of its own, near or far."""
    return tuple(dict.fromkeys((*pools, Pool.PROBE))) if Pool.CPU in pools else tuple(pools)


def share_of(slots: int, wanted: int) -> int:
    """Say how many of a worker's slots a step takes: however large, it leaves one to sound and pictures."""
    return min(wanted, max(1, slots - 1))


FAIRNESS_KEY_LIMIT = 64  # bytes, Temporal's own limit


class Turn(StrEnum):
    """What a step does for people who wait to watch: owners take turns within each of these, not over all together."""

    OPENING = "opening"  # the first span of what makes a video playable
    SOUND = "sound"  # nothing plays without it
    AHEAD = "ahead"  # the rest of the lowest rung, where it runs ahead of the others
    REST = ""

    @property
    def weight(self) -> float:
        """Give how many steps of it go for one of the rest: Temporal's fairness weight, at most 1000."""
        return {Turn.OPENING: 1000.0, Turn.SOUND: 1000.0, Turn.AHEAD: 30.0, Turn.REST: 1.0}[self]


def fairness_key(owner: str, turn: Turn = Turn.REST) -> str | None:
    """Name whose turn it is; an owner too long for Temporal keeps a turn of their own."""
    key = f"{owner}/{turn}" if turn else owner
    # Somebody called "ana/opening" is not Ana's openings.
    misleads = not turn and any(owner.endswith(f"/{each}") for each in Turn if each)
    if len(key.encode()) <= FAIRNESS_KEY_LIMIT and not misleads:
        return key or None
    return hashlib.sha256(key.encode()).hexdigest()[:FAIRNESS_KEY_LIMIT]


SEARCH_VIDEO_ID = "VideoId"  # Keyword
SEARCH_VIDEO_STATUS = "VideoStatus"  # Keyword
SEARCH_TIER = "Tier"  # Int
SEARCH_OWNER = "VideoOwner"  # Keyword
SEARCH_LIMIT = 255  # characters of a Keyword; on Postgres a longer one would hold up its whole index
