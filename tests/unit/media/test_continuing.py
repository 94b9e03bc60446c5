"""A plan that keeps to an earlier one: what is stored must fit."""

from contracts.ids import JobId, VideoId
from contracts.plan import Encoding, TranscodePlan
from contracts.states import Codec
from contracts.steps import MakePlan
from media.continuing import continued
from tests.replay.fake_plans import FACTS, PLAN

BUILDS = frozenset({"test"})


def ask(**wish: object) -> MakePlan:
    request = MakePlan(job_id=JobId(1), video_id=VideoId(1), facts=FACTS)
    return request.model_copy(update=wish)


def generations(plan: TranscodePlan) -> dict[str, int]:
    return {rendition.quality: rendition.generation for rendition in plan.renditions}


def pinned(plan: TranscodePlan, build: str) -> TranscodePlan:
    """All of it by one build."""
    return plan.model_copy(
        update={
            "renditions": tuple(r.model_copy(update={"ffmpeg": build}) for r in plan.renditions),
            "audio": tuple(track.model_copy(update={"ffmpeg": build}) for track in plan.audio),
            "ffmpeg": build,
        }
    )


def builds(plan: TranscodePlan) -> set[str]:
    return {*(r.ffmpeg for r in plan.renditions), *(track.ffmpeg for track in plan.audio)}


FRESH = pinned(PLAN, "newer").model_copy(
    update={
        "grid": PLAN.grid.model_copy(update={"segment_frames": 60}),
        "encoding": Encoding(crf=30),
        "lists": (("360p",), ("720p",)),
    }
)
OLD = pinned(PLAN, "test")
RAISED = OLD.model_copy(
    update={"renditions": (OLD.renditions[0].model_copy(update={"generation": 2}), OLD.renditions[1])}
)


def test_a_first_job_keeps_to_nothing() -> None:
    assert continued(FRESH, ask(), BUILDS) == FRESH


def test_a_retry_goes_on_with_what_is_stored() -> None:
    plan = continued(FRESH, ask(continues=RAISED, same_output=True), BUILDS)
    assert (plan.grid, plan.encoding, builds(plan)) == (PLAN.grid, PLAN.encoding, {"test"})
    assert generations(plan) == {"720p": 2, "360p": 0}
    assert sum(span.segments for span in plan.spans) == PLAN.grid.segments


def test_a_retry_without_the_old_build_starts_anew_with_the_new_one() -> None:
    plan = continued(FRESH, ask(continues=RAISED, same_output=True), frozenset({"newer"}))
    assert (plan.grid, plan.encoding, builds(plan)) == (PLAN.grid, FRESH.encoding, {"newer"})
    assert generations(plan) == {"720p": 3, "360p": 1}
    assert [track.generation for track in plan.audio] == [1]


def test_a_retry_starts_anew_only_what_a_build_that_is_gone_began() -> None:
    """With the same settings: the other build is there, and goes on."""
    av1 = PLAN.renditions[1].model_copy(update={"quality": "360p-av1", "codec": Codec.AV1, "ffmpeg": "test"})
    fresh = FRESH.model_copy(update={"renditions": (*FRESH.renditions, av1), "encoding": PLAN.encoding})
    before = pinned(RAISED, "gone").model_copy(update={"audio": OLD.audio})
    before = before.model_copy(update={"renditions": (*before.renditions, av1)})
    plan = continued(fresh, ask(continues=before, same_output=True), BUILDS)
    assert generations(plan) == {"720p": 3, "360p": 1, "360p-av1": 0}
    assert plan.audio == OLD.audio


def test_a_partial_retranscode_shares_the_grid_and_leaves_the_rest() -> None:
    plan = continued(FRESH, ask(continues=RAISED, keep=("360p", "audio_0")), BUILDS)
    assert (plan.grid, plan.encoding, builds(plan)) == (PLAN.grid, FRESH.encoding, {"newer"})
    assert generations(plan) == {"720p": 0}
    assert plan.lists == (("720p",),) and plan.audio == ()
