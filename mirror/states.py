"""The state of a job, derived and never stored. `JOB_STATES` says the same in SQL; a test holds them equal."""

from datetime import datetime
from typing import Protocol

from contracts.states import JobState


class JobStateRow(Protocol):
    """What of a job decides its state."""

    @property
    def cancelled_at(self) -> datetime | None: ...
    @property
    def completed_at(self) -> datetime | None: ...
    @property
    def paused_at(self) -> datetime | None: ...
    @property
    def claim_expires_at(self) -> datetime | None: ...
    @property
    def last_error(self) -> str | None: ...
    @property
    def attempt_number(self) -> int: ...
    @property
    def max_attempts(self) -> int: ...


def job_state(row: JobStateRow, now: datetime) -> JobState:
    """Name the state of a job at a time; the first that fits."""
    if row.cancelled_at is not None:
        return JobState.CANCELLED
    if row.completed_at is not None:
        return JobState.COMPLETED
    if row.last_error is not None and row.attempt_number >= row.max_attempts:
        return JobState.FAILED
    if row.paused_at is not None:
        return JobState.PAUSED
    if row.claim_expires_at is not None:
        return JobState.CLAIMED if row.claim_expires_at > now else JobState.EXPIRED
    return JobState.RETRYING if row.last_error is not None else JobState.UNCLAIMED


ENDED = frozenset({JobState.CANCELLED, JobState.COMPLETED, JobState.FAILED})


def has_ended(row: JobStateRow) -> bool:
    """Tell whether nothing more may be written on a job."""
    failed = row.last_error is not None and row.attempt_number >= row.max_attempts
    return row.cancelled_at is not None or row.completed_at is not None or failed


# The body of the view `job_states`. A migration holds its own copy: migrations never change after the fact.
JOB_STATES = """
SELECT id AS job_id, video_id,
  CASE
    WHEN cancelled_at IS NOT NULL THEN 'cancelled'
    WHEN completed_at IS NOT NULL THEN 'completed'
    WHEN last_error IS NOT NULL AND attempt_number >= max_attempts THEN 'failed'
    WHEN paused_at IS NOT NULL THEN 'paused'
    WHEN claim_expires_at > now() THEN 'claimed'
    WHEN claim_expires_at <= now() THEN 'expired'
    WHEN last_error IS NOT NULL THEN 'retrying'
    ELSE 'unclaimed'
  END AS state
FROM transcoding_jobs
"""
