"""A plan that keeps to an earlier one: what is stored must fit."""

from contracts.ids import JobId, VideoId
from contracts.media import Encoding, TranscodePlan
from contracts.steps import MakePlan
from media.continuing import continued
from tests.replay.fake_steps import FACTS, PLAN

BUILDS = frozenset({"test"})


def ask(**wish: object) -> MakePlan:
    request = MakePlan(job_id=JobId(1), video_id=VideoId(1), facts=FACTS)
    return request.model_copy(update=wish)


def generations(plan: TranscodePlan) -> dict[str, int]:
    return {rendition.quality: rendition.generation for rendition in plan.renditions}


FRESH = PLAN.model_copy(
    update={
        "grid": PLAN.grid.model_copy(update={"segment_frames": 60}),
        "encoding": Encoding(crf=30),
        "ffmpeg": "newer",
        "lists": (("360p",), ("720p",)),
    }
)
RAISED = PLAN.model_copy(
    update={"renditions": (PLAN.renditions[0].model_copy(update={"generation": 2}), PLAN.renditions[1])}
)


def test_a_first_job_keeps_to_nothing() -> None:
    assert continued(FRESH, ask(), BUILDS) == FRESH


def test_a_retry_goes_on_with_what_is_stored() -> None:
    plan = continued(FRESH, ask(continues=RAISED, same_output=True), BUILDS)
    assert (plan.grid, plan.encoding, plan.ffmpeg) == (PLAN.grid, PLAN.encoding, "test")
    assert generations(plan) == {"720p": 2, "360p": 0}
    assert sum(span.segments for span in plan.spans) == PLAN.grid.segments


def test_a_retry_without_the_old_build_starts_anew_with_the_new_one() -> None:
    plan = continued(FRESH, ask(continues=RAISED, same_output=True), frozenset({"newer"}))
    assert (plan.grid, plan.encoding, plan.ffmpeg) == (PLAN.grid, FRESH.encoding, "newer")
    assert generations(plan) == {"720p": 3, "360p": 1}


def test_a_partial_retranscode_shares_the_grid_and_leaves_the_rest() -> None:
    plan = continued(FRESH, ask(continues=RAISED, keep=("360p", "audio_0")), BUILDS)
    assert (plan.grid, plan.encoding, plan.ffmpeg) == (PLAN.grid, FRESH.encoding, "newer")
    assert generations(plan) == {"720p": 0}
    assert plan.lists == (("720p",),) and plan.audio == ()


def test_a_rendition_that_starts_anew_is_raised_alone() -> None:
    plan = continued(FRESH, ask(continues=RAISED, same_output=True, anew=("720p",)), BUILDS)
    assert generations(plan) == {"720p": 3, "360p": 0}
