"""Identifiers, and the one workflow id that doubles as the idempotency key."""

from typing import NewType

VideoId = NewType("VideoId", int)
JobId = NewType("JobId", int)
ObjectKey = NewType("ObjectKey", str)  # a path under storage, always with forward slashes, never absolute


def workflow_id(video_id: VideoId, job_id: JobId) -> str:
    """Name the workflow of one job; starting it twice is then the same start."""
    return f"video-{video_id}-job-{job_id}"


def activity_id(step_key: str, generation: int) -> str:
    """Name a step readably in Temporal's UI; a new generation is a new activity."""
    return step_key + (f"~{generation}" if generation else "")
