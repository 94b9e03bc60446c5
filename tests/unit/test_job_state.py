"""Every row of the documented table of job states, and which wins when two fit."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from contracts.states import JobState
from mirror.states import has_ended, job_state

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
BEFORE, LATER = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)


@dataclass(frozen=True)
class Row:
    cancelled_at: datetime | None = None
    completed_at: datetime | None = None
    paused_at: datetime | None = None
    claim_expires_at: datetime | None = None
    last_error: str | None = None
    attempt_number: int = 1
    max_attempts: int = 3


@pytest.mark.parametrize(
    ("row", "state"),
    [
        (Row(), JobState.UNCLAIMED),
        (Row(claim_expires_at=LATER), JobState.CLAIMED),
        (Row(claim_expires_at=BEFORE), JobState.EXPIRED),
        (Row(claim_expires_at=NOW), JobState.EXPIRED),  # valid until, not including, its last moment
        (Row(last_error="x"), JobState.RETRYING),
        (Row(last_error="x", attempt_number=3), JobState.FAILED),
        (Row(last_error="x", attempt_number=3, claim_expires_at=LATER), JobState.FAILED),
        (Row(attempt_number=3, claim_expires_at=LATER), JobState.CLAIMED),  # the third try runs: not failed
        (Row(attempt_number=3), JobState.UNCLAIMED),
        (Row(paused_at=BEFORE, claim_expires_at=LATER), JobState.PAUSED),
        (Row(paused_at=BEFORE, last_error="x", attempt_number=3), JobState.FAILED),
        (Row(completed_at=BEFORE, last_error="x", attempt_number=3), JobState.COMPLETED),
        (Row(cancelled_at=BEFORE, completed_at=BEFORE), JobState.CANCELLED),
    ],
)
def test_the_first_state_that_fits_is_the_state(row: Row, state: JobState) -> None:
    assert job_state(row, NOW) is state


def test_a_job_has_ended_exactly_when_its_state_says_so() -> None:
    ended = {JobState.CANCELLED, JobState.COMPLETED, JobState.FAILED}
    for attempt in (1, 3):
        for error in (None, "x"):
            for completed in (None, BEFORE):
                row = replace(Row(), attempt_number=attempt, last_error=error, completed_at=completed)
                assert has_ended(row) == (job_state(row, NOW) in ended)
