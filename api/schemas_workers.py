"""The JSON of the registry: what is asked about workers, what workers say, and what both are answered."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from api.schemas import WHEN, Answer, example
from contracts.states import JobState, StepName, StepOutcome, WorkerStanding, WorkerStatus, WorkerType

WORKER_ID = "5f0c9a7e-2b1d-4d0e-9a43-7f6f1c2b8a10"
KEY = "Zk3vQ0bX8nT1mW5sR7yUa2cE4gH6jL9pD0fV1xB3qKo"
ABOUT: dict[str, Any] = {"pools": ["cpu"], "slots": {"cpu": 2}}
STATUS = "`active` says only that it lives; `idle`: a slot is free; `busy`: none is; `offline`: it leaves"


def _asked(**fields: Any) -> ConfigDict:
    return ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [fields]})


class Registration(Answer):
    model_config = _asked(worker_name="studio", worker_type="remote", capabilities=ABOUT, metadata={}, version="0.1")
    worker_name: str | None = Field(default=None, description="For people; at most 100 characters")
    worker_type: WorkerType = WorkerType.REMOTE
    capabilities: dict[str, Any] = Field(default_factory=dict, description="What it can do; at most 10 kB of JSON")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Where it runs; at most 10 kB of JSON")
    version: str | None = Field(default=None, description="Of its code; at most 100 characters")


class Beat(Answer):
    model_config = _asked(status="idle")
    status: Literal["active", "idle", "busy", "offline"] = Field(default="active", description=STATUS)
    capabilities: dict[str, Any] | None = Field(default=None, description="When they changed")
    metadata: dict[str, Any] | None = Field(default=None, description="When it changed")
    version: str | None = Field(default=None, description="When it changed")
    pools_aside: tuple[Literal["cpu", "gpu", "probe"], ...] | None = Field(
        default=None, max_length=10, description="When it changed: all pools whose work its own test forbids it"
    )
    aside_because: str = Field(default="", description="Why; the first 500 characters count")


class AskKey(Answer):
    model_config = _asked(expires_in_days=90)
    expires_in_days: float | None = Field(default=None, gt=0, le=3650, description="By default it does not expire")


class Registered(Answer):
    model_config = example(
        worker_id=WORKER_ID, api_key=KEY, key_prefix=KEY[:8], heartbeat_interval=30.0, message="Keep this key."
    )
    worker_id: str
    api_key: str = Field(description="256 bits, shown this once: only its hash is kept")
    key_prefix: str
    heartbeat_interval: float = Field(description="Seconds between heartbeats")
    message: str


class Beaten(Answer):
    model_config = example(
        worker_id=WORKER_ID,
        standing="welcome",
        status="idle",
        current_job_id=None,
        server_time=WHEN,
        heartbeat_interval=30.0,
        offline_after=300.0,
        pools_aside=[],
    )
    worker_id: str
    standing: WorkerStanding
    status: WorkerStatus
    current_job_id: int | None
    server_time: datetime
    heartbeat_interval: float = Field(description="Seconds until the next one is due")
    offline_after: float = Field(description="Seconds of silence after which a worker is shown `offline`")
    pools_aside: tuple[str, ...] = Field(description="Set aside by an earlier beat: not taken up until a test is clean")


WORKER: dict[str, Any] = {
    "worker_id": WORKER_ID,
    "worker_name": "studio",
    "worker_type": "remote",
    "status": "busy",
    "standing": "welcome",
    "registered_at": WHEN,
    "last_heartbeat": WHEN,
    "current_job_id": 34,
    "current_video_id": 12,
    "capabilities": ABOUT,
    "metadata": {},
    "version": "0.1",
    "quarantined_at": None,
    "pools_aside": [],
    "revoked_at": None,
    "speed": 3.2,
    "last_speed": 2.9,
}


class Worker(Answer):
    model_config = example(**WORKER)
    worker_id: str
    worker_name: str | None
    worker_type: WorkerType
    status: WorkerStatus
    standing: WorkerStanding = Field(description="Whether it may have work")
    registered_at: datetime
    last_heartbeat: datetime | None
    current_job_id: int | None = Field(description="The newest it works on")
    current_video_id: int | None
    capabilities: dict[str, Any]
    metadata: dict[str, Any]
    version: str | None
    quarantined_at: datetime | None = Field(description="Since when it has set pools of its own aside")
    pools_aside: tuple[str, ...] = Field(description="The pools whose work it does not take: a test of its own failed")
    revoked_at: datetime | None
    speed: float | None = Field(description="Seconds of video that it encodes in a second, now; null when it does not")
    last_speed: float | None = Field(description="The same of its last encode that ended well")


KEPT: dict[str, Any] = {
    "key_id": 7,
    "key_prefix": KEY[:8],
    "created_at": WHEN,
    "expires_at": None,
    "revoked_at": None,
    "last_used_at": WHEN,
}


class WorkerKey(Answer):
    """What is known of a key. The key itself, and its hash, are never shown."""

    model_config = example(**KEPT)
    key_id: int
    key_prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute")


JOB: dict[str, Any] = {
    "job_id": 34,
    "video_id": 12,
    "state": "claimed",
    "current_step": "transcode",
    "progress_percent": 42,
}


class WorkerJob(Answer):
    model_config = example(**JOB)
    job_id: int
    video_id: int
    state: JobState
    current_step: StepName | None
    progress_percent: float


STEP: dict[str, Any] = {
    "job_id": 34,
    "step": "transcode",
    "step_key": "transcode:0+10:720p,480p",
    "qualities": ["720p", "480p"],
    "generation": 0,
    "attempt": 1,
    "queue": "vlog-cpu",
    "started_at": WHEN,
    "finished_at": None,
    "outcome": "running",
    "percent": 42.0,
    "error_code": None,
    "error_message": None,
}


class WorkerStep(Answer):
    model_config = example(**STEP)
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


class WorkerDetail(Worker):
    model_config = example(**WORKER, keys=[KEPT], job=JOB, steps=[STEP])
    keys: tuple[WorkerKey, ...] = Field(description="The newest first; none for a local worker")
    job: WorkerJob | None
    steps: tuple[WorkerStep, ...] = Field(description="Its last attempts of steps, the newest first")


class Deleted(Answer):
    model_config = example(worker_id=WORKER_ID, deleted=True)
    worker_id: str
    deleted: bool
