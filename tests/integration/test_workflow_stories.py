"""The workflow's decisions, on a real Temporal with steps that only answer."""

import asyncio

import pytest
from temporalio import activity
from temporalio.client import WorkflowFailureError, WorkflowHistory
from temporalio.exceptions import ApplicationError, CancelledError

from contracts.end_steps import FailJob, Finalize, RemovePartial, VerifiedRenditions, VerifyRenditions
from contracts.errors import StorageAway
from contracts.media import FrameRate
from contracts.plan import Capacity, Grid, PlannedRendition
from contracts.renditions import AudioRendition
from contracts.states import Tier
from media.spans import choose_lists, choose_spans, choose_window
from tests.replay import paused_stories
from tests.replay.fake_plans import FACTS, PLAN
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import COMMANDS, REQUEST, telling
from tests.support.shared_temporal import shared_temporal
from workflows import options

SOUND = AudioRendition(
    track=0,
    prefix="videos/x/r1/audio_0/",
    codecs="mp4a.40.2",
    language="und",
    name="Sound",
    default=True,
    channels=2,
    timescale=48000,
    segment_durations=((288768, 4),),
    size_bytes=1000,
    peak_bandwidth=1000,
    average_bandwidth=1000,
)
CANCELLED = ("cancelled while encoding", "cancelled while it drains", "cancelled while it crashes")


async def told(story: str) -> tuple[FakeSteps, str]:
    steps = FakeSteps(story)
    async with shared_temporal() as client, telling(client, steps) as handle:
        if command := COMMANDS.get(story):
            await asyncio.wait_for(command(handle, steps), 120)
        try:
            result = await handle.result()
        except WorkflowFailureError as error:
            if isinstance(error.cause, CancelledError):
                return steps, "cancelled"
            assert isinstance(error.cause, ApplicationError)
            return steps, error.cause.type or ""
        return steps, result.status


async def test_the_steps_of_a_good_video_come_in_order() -> None:
    steps, status = await told("success")
    assert status == "ready"
    assert steps.calls[:2] == ["probe", "plan"]
    assert sorted(steps.calls[2:6]) == ["audio", "subtitles", "thumbnail", "transcode~0"]
    assert steps.calls[6:] == ["verify", "manifests", "publish", "finalize", "storyboard"]
    assert isinstance(steps.ended, Finalize)
    assert steps.ended.notes == ("Something was left out.",)
    assert [text.name for text in steps.verified[0].subtitles] == ["S"]


async def test_subtitles_that_cannot_be_made_cost_no_video_and_are_told_of() -> None:
    steps, status = await told("no subtitles")
    assert status == "ready"
    assert isinstance(steps.ended, Finalize)
    assert steps.ended.notes == ("The subtitles could not be made: The text could not be read.",)
    assert steps.verified[0].subtitles == ()


async def test_a_drained_step_goes_on_as_a_new_generation() -> None:
    steps, status = await told("drained")
    assert status == "ready"
    assert [call for call in steps.calls if call.startswith("transcode")] == ["transcode~0", "transcode~1"]


async def test_a_busy_step_waits_and_uses_no_attempt_and_no_generation_comes_twice() -> None:
    steps, status = await told("later")
    assert status == "ready"
    tries = [call for call in steps.calls if call.startswith("transcode")]
    assert tries == ["transcode~0", "transcode~1", "transcode~2"]


async def test_tries_count_over_generations() -> None:
    steps, code = await told("worn out")
    assert code == "RETRIES_EXHAUSTED"
    # max_attempts is 2: one failure, a drain on the second try, and one last failure in the next generation.
    assert [c for c in steps.calls if c.startswith("transcode")] == ["transcode~0", "transcode~0", "transcode~1"]


async def test_a_cancel_during_a_step_that_does_not_hear_it_still_cancels() -> None:
    steps = FakeSteps("cancelled")
    async with shared_temporal() as client, telling(client, steps) as handle:
        await asyncio.wait_for(steps.planning.wait(), 10)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, CancelledError)
    assert steps.calls == ["probe", "plan", "remove", "fail"]
    assert isinstance(steps.ended, FailJob) and steps.ended.code == "CANCELLED"


async def test_a_fatal_source_fails_at_once_with_its_own_code() -> None:
    steps, code = await told("unreadable")
    assert code == "SOURCE_UNREADABLE"
    assert steps.calls == ["probe", "fail"]
    assert isinstance(steps.ended, FailJob)
    assert steps.ended.sentence == "The file is cut off before its index."


async def test_used_up_attempts_end_the_job_and_stop_its_other_steps() -> None:
    steps, code = await told("exhausted")
    assert code == "RETRIES_EXHAUSTED"
    assert steps.calls.count("transcode~0") == 2
    assert steps.calls[-1] == "fail"
    assert isinstance(steps.ended, FailJob) and "RuntimeError" in steps.ended.sentence


@pytest.mark.parametrize("story", ["retried"])
async def test_an_unknown_error_is_tried_again(story: str) -> None:
    steps, status = await told(story)
    assert status == "ready"
    assert steps.calls.count("transcode~0") == 2


async def test_an_encoder_error_splits_the_list_and_the_parts_inherit_the_tries() -> None:
    steps, status = await told("split")
    assert status == "ready"
    tried = [(s.step_qualities, s.tries_before) for s in steps.spans]
    assert tried[0] == (("720p", "360p"), 0)
    assert sorted(tried[1:]) == [(("360p",), 1), (("720p",), 1)]


async def test_a_rendition_that_is_not_whole_starts_anew_under_its_next_generation() -> None:
    steps, status = await told("anew")
    assert status == "ready"
    again = steps.spans[-1]
    assert [(r.quality, r.generation) for r in again.renditions] == [("720p", 1)]
    # The plan is asked again, so that the mirror and a later retry know of the new generation.
    assert steps.plans[-1].anew == ("720p",) and "plan:again" in steps.calls
    assert steps.calls[-5:] == ["verify:again", "manifests", "publish", "finalize", "storyboard"]


async def test_work_whose_ffmpeg_is_gone_moves_to_another_and_costs_no_try() -> None:
    """The codec that the new ffmpeg does not make is missing from a ready video."""
    steps, status = await told("gone")
    assert status == "ready"
    moved = [span for span in steps.spans if span.ffmpeg == "8.1-first"]
    assert [(r.quality, r.generation) for span in moved for r in span.renditions] == [("720p", 1), ("360p", 1)]
    assert {span.tries_before for span in steps.spans} == {0}
    assert [(one.track, one.prefix) for one in steps.verified[-1].audio] == [(0, "videos/x/r1/audio_0.1/")]
    assert isinstance(steps.ended, Finalize)
    assert [(one.name, one.code) for one in steps.ended.missing] == [("360p-av1", "BUILD_MISSING")]
    # H.264 was done before anything else was begun.
    first = next(place for place, span in enumerate(steps.spans) if span.step_qualities == ("360p-av1",))
    assert steps.spans.index(moved[-1]) < first
    assert steps.numbers_are_used_once()


async def test_a_long_list_that_moves_after_other_waits_goes_on_counting() -> None:
    steps, status = await told("moved lists")
    assert status == "ready"
    first = [s for s in steps.spans if s.step_qualities == ("360p",) and s.span.first_segment == 0]
    # Failed once and then drained, drained, three times without the ffmpeg, made: by the list that was asked again.
    assert [(s.generation, s.tries_before) for s in first] == [(0, 0), (0, 0), *((n, 1) for n in (1, 2, 3, 4, 5))]
    assert steps.numbers_are_used_once()


async def test_a_storyboard_that_fails_leaves_the_video_ready() -> None:
    steps, status = await told("no storyboard")
    assert status == "ready"
    assert isinstance(steps.ended, Finalize) and steps.calls[-1] == "storyboard"


async def test_a_poor_seeker_is_copied_first_and_the_copy_is_removed_at_the_end() -> None:
    steps, status = await told("remuxed")
    assert status == "ready"
    assert steps.calls[:3] == ["probe", "remux", "plan"]
    assert {span.source_key for span in steps.spans} == {"remuxed/1-1.mkv"}
    assert steps.calls[-1] == "drop remuxed/1-1.mkv"


async def test_the_copy_is_removed_when_the_job_fails() -> None:
    steps, code = await told("remuxed and exhausted")
    assert code == "RETRIES_EXHAUSTED"
    assert steps.calls[-2:] == ["fail", "drop remuxed/1-1.mkv"]


async def test_a_rung_that_stays_broken_is_missing_and_the_others_are_published() -> None:
    steps, status = await told("a rung stays broken")
    assert status == "ready"
    assert isinstance(steps.ended, Finalize)
    assert steps.ended.qualities == ("360p",)
    assert [(m.name, m.code) for m in steps.ended.missing] == [("720p", "OUTPUT_INCOMPLETE")]


async def test_a_critical_rung_that_stays_broken_is_never_published() -> None:
    steps, code = await told("broken")
    assert code == "OUTPUT_INCOMPLETE"
    assert "publish" not in steps.calls and steps.calls[-1] == "fail"


class OnlySound(FakeSteps):
    """Every rung is lost, and the sound is whole."""

    @activity.defn
    async def verify(self, request: VerifyRenditions) -> VerifiedRenditions:
        self.calls.append(request.step_key)
        return VerifiedRenditions(video=(), audio=(SOUND,))


async def test_whatever_is_critical_a_stream_without_any_picture_is_never_published() -> None:
    steps = OnlySound("sound only, exhausted")
    request = REQUEST.model_copy(update={"critical": ("audio",)})
    async with shared_temporal() as client, telling(client, steps, request=request) as handle:
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, ApplicationError) and failed.value.cause.type == "RETRIES_EXHAUSTED"
    assert steps.calls[-1] == "fail" and not {"manifests", "publish"} & set(steps.calls)
    assert isinstance(steps.ended, FailJob) and "RuntimeError" in steps.ended.sentence


async def test_three_hours_stay_far_below_every_history_limit() -> None:
    steps = FakeSteps("success")
    grid = Grid(frame_rate=FrameRate(num=30), frames=3 * 3600 * 30, segment_frames=180)
    rungs = tuple(
        PlannedRendition(quality=f"{side}p", width=side * 16 // 9 // 2 * 2, height=side, video_kbps=1000)
        for side in (2160, 1440, 1080, 720, 480, 360)
    )
    capacity = Capacity(workers=4, slots=8)
    spans = choose_spans(grid, capacity, 120)
    lists = choose_lists(rungs, spans, grid, capacity, share=True)
    steps.planned = PLAN.model_copy(
        update={"grid": grid, "renditions": rungs, "spans": spans, "lists": lists, "window": choose_window(capacity)}
    )
    async with shared_temporal() as client, telling(client, steps) as handle:
        assert (await handle.result()).status == "ready"
        parent = await handle.fetch_history()
        child = await client.get_workflow_handle(f"{handle.id}-360p").fetch_history()
    assert len(steps.spans) == len(spans) * len(lists)
    assert len(parent.events) < 150
    assert len(child.events) < 2000
    assert sum(len(event.SerializeToString()) for event in child.events) < 1_000_000

    # A step has time by its length and by the size of the file, which it may have to fetch.
    size = REQUEST.source_size_bytes
    assert _limits_s(parent, "thumbnail") == {options.THUMBNAIL.limit(size).total_seconds()}
    assert _limits_s(parent, "encode_audio") == {options.audio(steps.planned, size).limit(size).total_seconds()}
    assert _limits_s(parent, "storyboard") == {options.storyboard(steps.planned).limit(size).total_seconds()}
    promises = [options.transcode(FACTS.video, grid, rungs[-1:], span) for span in spans]
    expected = {promise.limit(size).total_seconds() for promise in promises}
    assert sorted(_limits_s(child, "transcode_span")) == pytest.approx(sorted(expected))


def _limits_s(history: WorkflowHistory, step: str) -> set[float]:
    asked = [
        event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    limits = (each.start_to_close_timeout.ToTimedelta() for each in asked if each.activity_type.name == step)
    return {limit.total_seconds() for limit in limits}


async def test_a_cancel_while_the_end_is_being_written_does_not_lose_the_end() -> None:
    steps = FakeSteps("cancelled at the end")
    async with shared_temporal() as client, telling(client, steps) as handle:
        await asyncio.wait_for(steps.planning.wait(), 10)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert isinstance(steps.ended, FailJob) and steps.ended.code == "SOURCE_UNREADABLE"


async def test_a_cancel_that_comes_while_it_is_published_comes_too_late() -> None:
    steps, status = await told("cancelled while publishing")
    assert status == "ready"
    assert steps.calls[-3:] == ["manifests", "publish", "finalize"], "whole, and then nothing more"
    assert isinstance(steps.ended, Finalize)


async def test_a_quality_and_a_sound_track_that_fail_do_not_stop_the_others() -> None:
    steps, status = await told("partial")
    assert status == "ready"
    assert isinstance(steps.ended, Finalize)
    assert steps.ended.qualities == ("360p",)
    assert [(m.name, m.code) for m in steps.ended.missing] == [
        ("audio_1", "SOURCE_UNREADABLE"),
        ("720p", "RETRIES_EXHAUSTED"),
    ]
    # The list was split, and the broken quality had the one try that was left.
    assert [s.step_qualities for s in steps.spans].count(("720p",)) == 1


@pytest.mark.parametrize("story", [*CANCELLED, *paused_stories.CANCELLED])
async def test_a_cancel_stops_the_encoders_removes_what_was_made_and_is_written_last(story: str) -> None:
    """At the first try, which may end as drained, or fail; at the second, and while it waits for that one."""
    steps, end = await told(story)
    assert end == "cancelled"
    assert steps.calls[-2:] == ["remove", "fail"] and "verify" not in steps.calls
    assert isinstance(steps.ended, FailJob) and steps.ended.code == "CANCELLED"


async def test_a_cancel_ends_although_nothing_can_be_removed() -> None:
    steps, end = await told("cancelled beside a broken disk")
    assert end == "cancelled"
    assert steps.calls.count("remove") == 2 and isinstance(steps.ended, FailJob)


class NothingRemoved(FakeSteps):
    """The storage is away when what was made is to be removed."""

    @activity.defn
    async def remove_partial(self, request: RemovePartial) -> None:
        self.calls.append("remove")
        away = StorageAway("The storage is away.")
        away.retry_after_s = 0.05
        raise away


async def test_a_cancel_does_not_wait_for_a_storage_that_is_away() -> None:
    steps = NothingRemoved("cancelled while encoding")
    async with shared_temporal() as client, telling(client, steps) as handle:
        await steps.encoding.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 20)
    assert steps.calls.count("remove") == 2 and isinstance(steps.ended, FailJob)


async def test_a_paused_job_can_be_cancelled() -> None:
    steps, end = await told("cancelled in a pause")
    assert end == "cancelled"
    assert steps.calls[-2:] == ["remove", "fail"]


async def test_a_pause_takes_steps_back_and_they_go_on_without_a_try_lost() -> None:
    steps, status = await told("paused")
    assert status == "ready"
    tried = [(s.generation, s.tries_before) for s in steps.spans]
    assert tried == [(0, 0), (1, 0)]


@pytest.mark.parametrize("story", paused_stories.STORIES)
async def test_a_pause_gives_no_try_back_that_had_failed_before_it(story: str) -> None:
    """Two are allowed: one failed before the pause, while the second ran or waited, and one after it."""
    steps, code = await told(story)
    assert code == "RETRIES_EXHAUSTED"
    tried = [(s.generation, s.tries_before) for s in steps.spans if paused_stories.is_told(story, s)]
    assert tried == [*([(0, 0)] if story == paused_stories.RUNNING else []), (0, 0), (1, 1)]


async def test_a_pause_that_comes_with_the_last_answer_holds_the_publishing_until_the_resume() -> None:
    steps, status = await told("paused at the end")
    assert status == "ready"
    assert steps.calls[-6:] == ["verify", "resume", "manifests", "publish", "finalize", "storyboard"]


@pytest.mark.parametrize("story", ["paused lists", "cancelled lists"])
async def test_commands_reach_the_workflows_of_long_lists(story: str) -> None:
    steps, status = await told(story)
    if story == "cancelled lists":
        assert status == "cancelled" and steps.calls[-2:] == ["remove", "fail"]
        return
    assert status == "ready"
    done = [(s.span.first_segment, s.step_qualities) for s in steps.spans]
    # Each span once, and once more for each that was taken back; in its second generation, with no try used.
    assert len(done) == 40 + steps.held
    assert {s.generation for s in steps.spans} == {0, 1} and not any(s.tries_before for s in steps.spans)
    # The tier was changed in the pause.
    assert steps.priorities[0] == Tier.FREE.priority and steps.priorities[-1] == Tier.VIRAL.priority


async def test_a_retry_makes_only_what_is_missing() -> None:
    steps, status = await told("retry")
    assert status == "ready"
    assert "audio" not in steps.calls
    assert [s.step_qualities for s in steps.spans] == [("720p",)]
    assert isinstance(steps.ended, Finalize) and steps.ended.qualities == ("720p",)


async def test_a_partial_retranscode_keeps_the_grid_and_the_others() -> None:
    steps, status = await told("partial retranscode")
    assert status == "ready"
    assert [(s.output, s.step_qualities) for s in steps.spans] == [("r2", ("720p",))]
    assert steps.spans[0].grid == PLAN.grid and steps.published[0].keep == ("360p", "audio_0")
