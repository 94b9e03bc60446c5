"""Task queues, each named for what it spends, and the names Temporal's UI shows."""

import hashlib
from enum import StrEnum


class TaskQueue(StrEnum):
    ORCHESTRATE = "vlog-orchestrate"  # workflows and mirror writes: milliseconds
    CPU = "vlog-cpu"  # encoders
    GPU = "vlog-gpu"  # encoders on a device
    IO = "vlog-io"  # reading and fetching: probes, downloads, webhooks
    ANALYSIS = "vlog-analysis"  # captions


class Pool(StrEnum):
    """What a worker process may be told to serve; one task queue each."""

    ORCHESTRATE = "orchestrate"
    CPU = "cpu"
    GPU = "gpu"
    IO = "io"
    ANALYSIS = "analysis"

    @property
    def queue(self) -> TaskQueue:
        return TaskQueue(f"vlog-{self.value}")


FAIRNESS_KEY_LIMIT = 64  # bytes, Temporal's own limit


def fairness_key(owner: str, *, opening: bool = False) -> str | None:
    """Name whose turn it is; an owner too long for Temporal keeps a turn of their own.

    Openings, the steps that let people begin to watch, have a turn beside the rest of their owner's.
    """
    key = f"{owner}/opening" if opening else owner
    if len(key.encode()) <= FAIRNESS_KEY_LIMIT:
        return key or None
    return hashlib.sha256(key.encode()).hexdigest()[:FAIRNESS_KEY_LIMIT]


SEARCH_VIDEO_ID = "VideoId"  # Keyword
SEARCH_VIDEO_STATUS = "VideoStatus"  # Keyword
SEARCH_TIER = "Tier"  # Int
