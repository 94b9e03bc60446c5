"""Every write to the mirror but the steps, which the recorder makes. Helpers never commit: who opened does."""

from mirror.claims import WorkerIdentity, WorkerRegistration
from mirror.events import Event, add_event, notify
from mirror.writes_end import complete_job, fail_job
from mirror.writes_intake import CreatedVideo, NewVideo, create_video, next_video_id, workflow_started
from mirror.writes_media import record_facts, record_plan, record_renditions
from mirror.writes_workers import register_worker, worker_gone, worker_heartbeat

__all__ = [
    "CreatedVideo",
    "Event",
    "NewVideo",
    "WorkerIdentity",
    "WorkerRegistration",
    "add_event",
    "complete_job",
    "create_video",
    "fail_job",
    "next_video_id",
    "notify",
    "record_facts",
    "record_plan",
    "record_renditions",
    "register_worker",
    "worker_gone",
    "worker_heartbeat",
    "workflow_started",
]
