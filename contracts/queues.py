"""Task queues, each named for what it spends, and the names Temporal's UI shows."""

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


SEARCH_VIDEO_ID = "VideoId"  # Keyword
SEARCH_VIDEO_STATUS = "VideoStatus"  # Keyword
SEARCH_TIER = "Tier"  # Int
