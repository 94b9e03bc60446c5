"""What steps are thought to take, against what was measured."""

import pytest

from contracts.ids import JobId, ObjectKey, VideoId
from contracts.media import SourceFacts
from contracts.plan import LADDER, Capacity, PlannedAudio, PlannedRendition
from contracts.remux_steps import Remux
from contracts.states import Codec
from contracts.steps import EncodeAudio, MakeThumbnail, Probe, TranscodeSpan
from media.planning import PlanOptions, make_plan
from media.weights import Need, at_once, encoder_memory, need_of, slots_taken
from tests.support.media_facts import source, toolbox, video

MB = 1_000_000
IDS = {"job_id": JobId(1), "video_id": VideoId(1), "source_key": ObjectKey("uploads/1")}


def facts(side: int, seconds: float = 20.0) -> SourceFacts:
    return source(video(side * 16 // 9, side, packets=int(30 * seconds), end_s=seconds))


def span(side: int, *qualities: str, codec: Codec = Codec.H264) -> TranscodeSpan:
    """Ask for the whole of a video of that height, in all its rungs or in some."""
    found = facts(side)
    plan = make_plan(found, PlanOptions(), toolbox())
    chosen = [r for r in plan.renditions if not qualities or r.quality in qualities]
    return TranscodeSpan(
        **IDS,
        slug="x",
        output="r1",
        video=found.video,
        grid=plan.grid,
        span=plan.spans[0],
        renditions=tuple(one.model_copy(update={"codec": codec}) for one in chosen),
        encoding=plan.encoding,
    )


@pytest.mark.parametrize(
    "request_, slots",
    [
        (span(360), 1),
        (span(1080, "360p"), 1),
        (span(1080), 1),
        (span(1440), 2),
        (span(2160, "360p"), 1),
        (span(2160, "2160p"), 2),
        (span(2160), 4),
        (span(1080, codec=Codec.HEVC), 2),
    ],
)
def test_a_4k_encode_takes_more_of_a_worker_than_a_360p_one(request_: TranscodeSpan, slots: int) -> None:
    assert need_of(request_).slots == slots


def test_on_a_device_a_slot_is_a_session() -> None:
    one = span(2160, "2160p")
    on_gpu = one.model_copy(update={"renditions": tuple(r.model_copy(update={"gpu": True}) for r in one.renditions)})
    assert need_of(on_gpu).slots == 1
    assert need_of(on_gpu).memory_bytes < need_of(one).memory_bytes / 2


@pytest.mark.parametrize("request_, measured_mb", [(span(2160), 2680), (span(1080), 701), (span(1080, "360p"), 81)])
def test_memory_is_more_than_was_measured_and_not_much_more(request_: TranscodeSpan, measured_mb: int) -> None:
    estimate = need_of(request_).memory_bytes
    assert measured_mb * MB < estimate < (1.5 * measured_mb + 250) * MB


def test_room_on_the_disk_follows_length_and_rates() -> None:
    every, lowest = span(1080), span(1080, "360p")
    kbps = sum(rung.video_kbps for rung in LADDER if rung.short_side <= 1080)
    seconds = every.grid.seconds(every.span.segments * every.grid.segment_frames)
    assert need_of(every).scratch_bytes > seconds * kbps * 1000 / 8
    assert need_of(lowest).scratch_bytes < need_of(every).scratch_bytes / 2


def test_other_steps_take_a_slot_and_what_they_write() -> None:
    found = facts(2160, 3600)
    plan = make_plan(found, PlanOptions(), toolbox())
    sound = need_of(
        EncodeAudio(
            **IDS, prefix="", audio=PlannedAudio(track=0, stream=1, kbps=128), grid=plan.grid, video_start_s="0"
        )
    )
    assert sound.slots == 1 and sound.scratch_bytes > 3600 * 128_000 / 8
    thumbnail = need_of(MakeThumbnail(**IDS, slug="x", video=found.video, encoding=plan.encoding))
    assert thumbnail == Need(1, encoder_memory(found.video, ()), thumbnail.scratch_bytes)
    copied = found.model_copy(update={"size_bytes": 5_000 * MB})
    assert need_of(Remux(**IDS, facts=copied)).scratch_bytes > 5_000 * MB
    assert need_of(Probe(**IDS)) == Need() == need_of(None)


def test_the_plan_counts_as_many_steps_side_by_side_as_workers_will_run() -> None:
    capacity = Capacity(workers=3, slots=14, each=(8, 4, 2))
    assert [at_once(capacity, slots) for slots in (1, 2, 3, 4, 9)] == [14, 8, 7, 6, 6]
    assert at_once(Capacity(), 4) == 2
    large, small = (make_plan(facts(side, 7200), PlanOptions(), toolbox(), capacity=capacity) for side in (2160, 1080))
    assert slots_taken(facts(2160).video, large.renditions) == 4
    assert (large.window, len(large.spans) % 6) == (12, 0)
    assert (small.window, len(small.spans) % 14) == (28, 0)


def test_a_rendition_that_does_not_fit_any_slot_is_still_one_step() -> None:
    giant = PlannedRendition(quality="4320p", width=7680, height=4320, video_kbps=40_000, codec=Codec.AV1)
    assert slots_taken(video(7680, 4320), [giant]) == 18
    assert at_once(Capacity(workers=2, slots=8, each=(4, 4)), 18) == 4
