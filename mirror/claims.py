"""Who holds which step: the facts a worker tells the recorder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from contracts.ids import JobId, VideoId
from contracts.plan import Span
from contracts.states import StepName, WorkerStatus, WorkerType

DEFAULT_HEARTBEAT_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class WorkerIdentity:
    """Who records. `slots` says per task queue how many steps it takes at once."""

    worker_id: str
    worker_name: str = ""
    # Queues that count for busy or idle: the encoders'. Empty: any held step makes it busy, as documented.
    slots: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StepClaim:
    """One attempt of one step. (job, step key, generation, attempt) is its fence."""

    job_id: JobId
    video_id: VideoId
    step: StepName
    step_key: str
    generation: int
    attempt: int  # Temporal's, within the generation
    started_at: datetime
    qualities: tuple[str, ...] = ()
    span: Span | None = None
    tries_before: int = 0  # of earlier generations, as the workflow counts them
    max_attempts: int = 3  # of this generation's retry policy; 0: without end
    queue: str = ""
    slots: int = 1  # of its worker that it takes
    scheduled_at: datetime | None = None
    heartbeat_timeout_s: float = DEFAULT_HEARTBEAT_TIMEOUT_S
    workflow_id: str = ""
    held_by: WorkerIdentity | None = None  # where one process records for several workers; else its own

    @property
    def is_last(self) -> bool:
        """Tell whether Temporal will not try this generation again after a failure."""
        return 0 < self.max_attempts <= self.attempt

    @property
    def fence(self) -> tuple[int, str, int, int]:
        return (self.job_id, self.step_key, self.generation, self.attempt)


@dataclass(frozen=True)
class WorkerRegistration:
    worker_id: str
    worker_name: str = ""
    worker_type: WorkerType = WorkerType.LOCAL
    status: WorkerStatus = WorkerStatus.ACTIVE
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
