"""What the mirror hands out about workers. The hash of a key leaves it only to be compared."""

from datetime import datetime
from typing import Any

from contracts.states import StepName, StepOutcome, WorkerStanding, WorkerStatus, WorkerType
from mirror.views import JobView, View


class WorkerView(View):
    worker_id: str
    worker_name: str | None
    worker_type: WorkerType
    status: WorkerStatus
    standing: WorkerStanding
    registered_at: datetime
    last_heartbeat: datetime | None
    current_job_id: int | None
    current_video_id: int | None
    capabilities: dict[str, Any]
    metadata: dict[str, Any]
    version: str | None
    quarantined_at: datetime | None
    pools_aside: tuple[str, ...]
    revoked_at: datetime | None
    speed: float | None  # seconds of video that it encodes in a second, now
    last_speed: float | None


class WorkerKeyView(View):
    key_id: int
    key_prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class WorkerStepView(View):
    """One attempt of a step, as its worker's history shows it."""

    job_id: int
    step: StepName
    step_key: str
    qualities: tuple[str, ...]
    generation: int
    attempt: int
    queue: str
    started_at: datetime
    finished_at: datetime | None
    outcome: StepOutcome
    percent: float
    error_code: str | None
    error_message: str | None


class WorkerDetailView(WorkerView):
    keys: tuple[WorkerKeyView, ...]
    job: JobView | None
    steps: tuple[WorkerStepView, ...]  # the newest first


class StoredKey(View):
    """A key as it is looked up, with whose it is; judged by the database's clock."""

    key_id: int
    key_hash: str
    hash_version: int
    is_revoked: bool
    has_expired: bool
    used_long_ago: bool  # or never
    worker_id: str
    worker_name: str | None
    is_disabled: bool
    slots: Any  # its own word, whatever that is
    status: WorkerStatus
    current_job_id: int | None
    pools_aside: tuple[str, ...]
    heard_lately: bool
    seen_at: datetime
