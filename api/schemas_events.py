"""The JSON of events that no other answer holds."""

from datetime import datetime

from pydantic import Field

from api.schemas import WHEN, Answer, example
from contracts.states import WorkerStatus, WorkerType


class WorkerNews(Answer):
    model_config = example(
        worker_id="5f0c9a7e-2b1d-4d0e-9a43-7f6f1c2b8a10",
        worker_name="studio",
        worker_type="local",
        status="busy",
        current_job_id=34,
        current_video_id=12,
        last_heartbeat=WHEN,
        version="0.1.0",
    )
    worker_id: str
    worker_name: str | None
    worker_type: WorkerType
    status: WorkerStatus
    current_job_id: int | None = Field(description="The newest that it works on")
    current_video_id: int | None
    last_heartbeat: datetime | None
    version: str | None
