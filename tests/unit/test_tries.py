"""Which tries a piece of work has used, whatever run made them and however the plan bundles it now."""

import pytest
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from contracts.errors import FailureKind
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.media import FrameRate
from contracts.plan import Encoding, Grid, PlannedRendition, Span
from contracts.steps import MissingRendition, Probe, StepFailure, TranscodeSpan
from tests.replay.fake_plans import FACTS
from workflows.reasons import reason, tries_in
from workflows.tries import Ledger

GRID = Grid(frame_rate=FrameRate(num=30), frames=40 * 180, segment_frames=180)
PROBE = Probe(job_id=JobId(1), video_id=VideoId(1), source_key=ObjectKey("uploads/1.mp4"))
BROKEN = StepFailure(code="SOURCE_UNREADABLE", kind=FailureKind.FATAL, sentence="It is damaged.", detail="x" * 4000)


def span(first: int, segments: int, *qualities: str) -> TranscodeSpan:
    made = (quality.partition(".") for quality in qualities)
    return TranscodeSpan(
        job_id=JobId(1),
        video_id=VideoId(1),
        source_key=ObjectKey("uploads/1.mp4"),
        slug="x",
        output="r1",
        video=FACTS.video,
        grid=GRID,
        span=Span(first_segment=first, segments=segments),
        renditions=tuple(
            PlannedRendition(quality=name, width=640, height=360, video_kbps=600, generation=int(generation or 0))
            for name, _, generation in made
        ),
        encoding=Encoding(),
    )


def handed_on(ledger: Ledger) -> Ledger:
    return Ledger(ledger.tried)


def test_a_step_goes_on_counting_in_the_next_run() -> None:
    ledger = Ledger()
    assert ledger.used_by(PROBE) == 0
    ledger.note(PROBE, 2)
    assert handed_on(ledger).used_by(PROBE) == 2


def test_what_is_done_is_forgotten_and_what_was_only_begun_is_not_kept() -> None:
    ledger = Ledger()
    ledger.note(PROBE, 0)
    assert not ledger.tried
    ledger.note(PROBE, 2)
    ledger.note(span(0, 4, "360p"), 1)
    ledger.finish(PROBE)
    ledger.finish(span(0, 2, "360p"))  # cut anew: the other half is not done
    assert [(each.work, each.used) for each in ledger.tried] == [("360p", 1)]
    ledger.finish(span(0, 8, "360p"))
    assert not ledger.tried


def test_whoever_makes_some_of_the_same_segments_inherits_and_nobody_else() -> None:
    ledger = Ledger()
    ledger.note(span(4, 4, "720p", "360p"), 1)
    later = handed_on(ledger)
    assert later.used_by(span(6, 8, "360p")) == 1
    assert later.used_by(span(0, 5, "1080p", "720p")) == 1
    assert later.used_by(span(8, 4, "360p")) == later.used_by(span(0, 4, "360p")) == 0
    assert later.used_by(span(4, 4, "1080p")) == 0
    assert later.used_by(span(4, 4, "360p.1")) == 0, "what starts anew has its own tries"


def test_qualities_of_different_fates_do_not_share_a_step_again() -> None:
    ledger = Ledger()
    ledger.note(span(0, 4, "720p", "360p"), 1)
    assert not handed_on(ledger).was_split(span(0, 8, "720p", "360p"))
    ledger.note(span(0, 4, "720p"), 2)
    assert handed_on(ledger).was_split(span(0, 8, "720p", "360p"))
    assert not handed_on(ledger).was_split(span(4, 4, "720p", "360p"))


def test_what_was_given_up_fails_in_the_same_words_and_carries_no_more_than_those() -> None:
    ledger = Ledger()
    ledger.note(PROBE, 1, BROKEN)
    ledger.give_up("720p", MissingRendition(name="720p", code="RETRIES_EXHAUSTED", sentence="Every attempt failed."))
    later = handed_on(ledger)
    error = later.lost(PROBE)
    assert error is not None
    assert reason(error) == BROKEN.model_copy(update={"detail": ""})
    for first in (0, 20):
        lost = later.lost(span(first, 4, "720p"))
        assert lost is not None and reason(lost).code == "RETRIES_EXHAUSTED"
    assert later.lost(span(0, 4, "360p")) is None
    ledger.finish(span(0, 40, "720p"))
    assert handed_on(ledger).lost(span(0, 4, "720p")) is not None


def test_a_list_that_failed_says_nothing_of_its_pieces() -> None:
    ledger = Ledger()
    refused = StepFailure(code="ENCODER_REJECTED", kind=FailureKind.FATAL, sentence="The encoder refused the command.")
    ledger.note(span(0, 4, "720p", "360p"), 1, refused)
    assert ledger.lost(span(0, 4, "360p")) is None, "split, it is tried by itself"
    assert ledger.used_by(span(0, 4, "360p")) == 1
    ledger.note(span(0, 4, "720p"), 2, refused)
    assert ledger.lost(span(0, 4, "720p")) is not None


def test_a_list_that_was_given_away_comes_back_with_what_it_has_used_and_nothing_else() -> None:
    ledger, theirs = Ledger(), Ledger()
    ledger.note(PROBE, 1)
    ledger.note(span(0, 4, "720p"), 2)
    ledger.note(span(0, 4, "360p"), 1)
    for given in (PROBE, span(4, 4, "720p")):
        theirs.note(given, 1)
    assert [each.work for each in theirs.of({"720p"})] == ["720p"]
    ledger.take({"720p"}, theirs.of({"720p"}))
    assert (ledger.used_by(span(0, 4, "720p")), ledger.used_by(span(4, 4, "720p"))) == (0, 1), "it was done there"
    assert ledger.used_by(PROBE) == ledger.used_by(span(0, 4, "360p")) == 1


def taken_back(cause: BaseException) -> ActivityError:
    error = ActivityError(
        "cancelled",
        scheduled_event_id=0,
        started_event_id=0,
        identity="",
        activity_type="",
        activity_id="",
        retry_state=RetryState.CANCEL_REQUESTED,
    )
    error.__cause__ = cause
    return error


def failed(kind: FailureKind, attempt: int) -> ApplicationError:
    return ApplicationError(
        "x", StepFailure(code="X", kind=kind, sentence="x", attempt=attempt).model_dump(mode="json")
    )


SILENT = TimeoutError("silent", type=TimeoutType.HEARTBEAT, last_heartbeat_details=[])
NOT_BEGUN = TimeoutError("nobody", type=TimeoutType.SCHEDULE_TO_START, last_heartbeat_details=[])


@pytest.mark.parametrize(
    ("cause", "failed_before", "used"),
    [
        (CancelledError("at its first attempt, or before it"), 0, 0),
        (CancelledError("while it waited for its third"), 2, 2),
        (failed(FailureKind.LATER, 3), 0, 2),
        (failed(FailureKind.RETRYABLE, 2), 1, 2),
        (failed(FailureKind.FATAL, 1), 0, None),
        (failed(FailureKind.DESCEND, 1), 0, None),
        (SILENT, 1, 2),
        (NOT_BEGUN, 0, 0),
    ],
)
def test_what_a_step_has_used_that_a_pause_took_back(
    cause: BaseException, failed_before: int, used: int | None
) -> None:
    assert tries_in(taken_back(cause), failed_before) == used


def test_a_step_whose_last_try_fails_in_a_pause_has_used_them_all() -> None:
    assert reason(taken_back(failed(FailureKind.RETRYABLE, 3))).code == "RETRIES_EXHAUSTED"
