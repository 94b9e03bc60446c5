"""What a worker may hand in: results and timelines that our own processes can read without harm."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.claims import Held, Place, checked_result, place
from api.errors import ApiError
from api.worker_files import _readable
from contracts.ids import JobId, VideoId
from contracts.layout import timeline_key
from contracts.plan import Span
from contracts.renditions import MOST_SOUND_SEGMENTS, AudioTimeline
from contracts.states import StepName

FOLDER = "videos/film/r1/audio_0/"


def held(activity: str, step: StepName, key: str, **more: Any) -> Held:
    facts = {
        "token": b"x",
        "job_id": JobId(1),
        "video_id": VideoId(2),
        "generation": 0,
        "attempt": 1,
        "queue": "vlog-cpu",
    }
    facts |= {"started_at": datetime.now(UTC), "heartbeat_timeout_s": 30.0, "source_key": "uploads/2.mp4"}
    return Held.model_validate(
        facts | {"activity": activity, "step": step, "step_key": key, "folders": (FOLDER,)} | more
    )


SOUND = held("encode_audio", StepName.AUDIO, "audio:0")
SPAN = held(
    "transcode_span", StepName.TRANSCODE, "t", qualities=("720p", "360p"), span=Span(first_segment=0, segments=4)
)


def audio(*runs: tuple[int, int], segments: int | None = None) -> dict[str, Any]:
    total = sum(count for _, count in runs) if segments is None else segments
    return {"track": 0, "prefix": FOLDER, "segments": total, "segment_durations": runs}


def test_a_track_that_would_be_counted_out_for_ever_is_no_result() -> None:
    assert checked_result(SOUND, audio((96_256, 3), (1024, 1)))
    assert checked_result(SOUND, audio())
    for bad in (
        audio((1, 10**15)),
        audio((1, MOST_SOUND_SEGMENTS), (1, 1)),
        audio((1, -5)),
        audio((1, 0)),
        audio((-1, 3)),
        audio((10**300, 1)),
        audio((1, 3), segments=4),
        audio((1, 3)) | {"prefix": "videos/other/r1/audio_0/"},
        audio((1, 3)) | {"track": 1},
    ):
        with pytest.raises(ValueError):
            checked_result(SOUND, bad)


@pytest.mark.parametrize(
    "bad", [{"segments": 9}, {"segments": -1}, {"segments": 4, "encoded_frames": -1}, {"segments": 1e99}]
)
def test_a_span_cannot_have_made_more_than_it_has(bad: dict[str, Any]) -> None:
    assert checked_result(SPAN, {"segments": 8, "encoded_frames": 600})
    with pytest.raises(ValueError):
        checked_result(SPAN, bad)


def test_a_timeline_is_read_before_it_is_stored(tmp_path: Path) -> None:
    how = place(SOUND, timeline_key(FOLDER, JobId(1), 0, 1))
    assert how is not None and how.model is AudioTimeline
    told = tmp_path / "object"
    told.write_text(AudioTimeline(segment_durations=((96_256, 3),)).model_dump_json())
    _readable(told, how)
    for bad in ('{"segment_durations": [[1, 1000000000000000]]}', '{"timescale": 0}', "[]", "", "\0"):
        told.write_text(bad)
        with pytest.raises(ApiError) as refused:
            _readable(told, how)
        assert refused.value.status == 422
    _readable(told, Place(create_only=True, most_bytes=1))  # of segments nothing is read here
