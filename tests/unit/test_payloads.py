"""The longest that any video has to say fits into one message of Temporal's."""

import pytest
from temporalio.exceptions import ApplicationError

from contracts.end_steps import VerifyRenditions
from contracts.errors import MESSAGE_TOO_LARGE, FailureKind
from contracts.ids import JobId, VideoId
from contracts.media import SubtitleFacts
from contracts.plan import Capacity, Grid
from contracts.steps import EncodedAudio, MakePlan, StepFailure
from media.choosing import sound_filters_needed
from media.planning import PlanOptions, make_plan
from media.tracks import MOST_SOUND_SEGMENTS, MOST_SOUNDS, keep_sounds
from runtime.payloads import LIMIT_BYTES, data_converter
from tests.support.media_facts import source, tool, toolbox, track, video

STREAMS = 200  # VLOG_MAX_STREAMS
GAPS = tuple((1.234567 * n, 1.234567 * n + 61.5) for n in range(50))


def size(message: object) -> int:
    [payload] = data_converter.payload_converter.to_payloads([message])
    return len(payload.data)


@pytest.mark.parametrize("segment_seconds", [1.0, 6.0, 30.0])
@pytest.mark.parametrize("hours", [0.1, 3, 25])  # 25: VLOG_MAX_DURATION_SECONDS
def test_a_day_of_film_with_every_stream_it_may_have_can_be_told(hours: float, segment_seconds: float) -> None:
    frames = round(hours * 3600 * 30)
    picture = video(3840, 2160, packets=frames, end_s=frames / 30)
    tracks = tuple(track(n, title="Ö" * 100, language="und", gaps=GAPS) for n in range(1, STREAMS))
    texts = tuple(SubtitleFacts(stream=n, codec="ass", title="Ö" * 100) for n in range(STREAMS))
    facts = source(picture, *tracks).model_copy(update={"subtitles": texts})
    fills_gaps = tool(filters=frozenset({"scale", "blackframe", "metadata"}) | sound_filters_needed(tracks[0]))
    options = PlanOptions(segment_seconds=segment_seconds)
    plan = make_plan(facts, options, toolbox(fills_gaps), capacity=Capacity(slots=2000))
    assert len(plan.audio) == min(MOST_SOUNDS, MOST_SOUND_SEGMENTS // plan.grid.segments)
    # Cut near the pictures' boundaries, lengths may change from each segment to the next.
    lengths = tuple((1_440_768 - 1024 * (n % 2), 1) for n in range(plan.grid.segments))
    heard = tuple(
        EncodedAudio(track=one.track, prefix="videos/" + "s" * 200 + "/r1/audio_1/", segments=len(lengths),
                     segment_durations=lengths)
        for one in plan.audio
    )  # fmt: skip
    job = {"job_id": JobId(1), "video_id": VideoId(1)}
    assert size(MakePlan(**job, facts=facts, continues=plan)) < LIMIT_BYTES / 2
    assert size(VerifyRenditions(**job, slug="s", output="r1", plan=plan, audio=heard)) < LIMIT_BYTES


def test_too_many_sounds_leave_the_default_in_and_are_told_of() -> None:
    grid = Grid(frame_rate=video().frame_rate, frames=600, segment_frames=180)
    tracks = tuple(track(n, default=n == 90) for n in range(1, 101))
    kept, notes = keep_sounds(tracks, grid)
    assert len(kept) == MOST_SOUNDS and tracks[89] in kept and kept[:49] == tracks[:49]
    assert notes == ["50 more sound tracks are left out: 50 are enough."]
    assert keep_sounds(tracks[:MOST_SOUNDS], grid) == (tracks[:MOST_SOUNDS], [])
    endless = grid.model_copy(update={"frames": 180 * 2 * MOST_SOUND_SEGMENTS})
    assert keep_sounds(tracks, endless)[0] == (tracks[89],)


def test_what_is_too_large_is_a_steps_failure() -> None:
    with pytest.raises(ApplicationError) as refused:
        size("x" * (LIMIT_BYTES + 1))
    assert (refused.value.type, refused.value.non_retryable) == (MESSAGE_TOO_LARGE, True)
    [failure] = refused.value.details
    assert isinstance(failure, StepFailure) and failure.kind is FailureKind.FATAL
