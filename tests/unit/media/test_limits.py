"""What a source may cost: each limit by itself."""

import math

import pytest

from contracts.errors import SourceTooFast, SourceTooLarge, SourceTooLong, SourceTooManyStreams
from contracts.plan import PlannedRendition
from contracts.states import Codec
from media.limits import GIB, Limits
from tests.support.media_facts import video

LIMITS = Limits()


def test_what_people_send_is_within_them() -> None:
    LIMITS.check_size(8192, 4320)
    LIMITS.check_length(86_400.04)  # a day, and the picture that came after it
    LIMITS.check_rate(240 * 60, 60)
    LIMITS.check_rate(2, 0.001)  # two pictures a millisecond apart are two pictures
    LIMITS.check_streams(200)


@pytest.mark.parametrize(("width", "height"), [(8194, 4320), (20_000, 10), (10, 20_000), (60_000, 60_000)])
def test_pictures_too_large(width: int, height: int) -> None:
    with pytest.raises(SourceTooLarge, match=f"{width}x{height}"):
        LIMITS.check_size(width, height)


@pytest.mark.parametrize("seconds", [90_001, 1e12, math.inf, math.nan])
def test_videos_too_long_or_without_an_end(seconds: float) -> None:
    with pytest.raises(SourceTooLong, match="at most 25 hours"):
        LIMITS.check_length(seconds)


def test_too_fast_and_too_many() -> None:
    with pytest.raises(SourceTooFast, match="3000 pictures a second; at most 1000"):
        LIMITS.check_rate(3000, 0.03)
    with pytest.raises(SourceTooManyStreams, match="201 streams"):
        LIMITS.check_streams(201)


def test_memory_grows_with_the_pictures_and_the_codec_unless_it_is_set() -> None:
    def rung(codec: Codec) -> PlannedRendition:
        return PlannedRendition(quality="2160p", width=3840, height=2160, video_kbps=1, codec=codec)

    small, large = LIMITS.memory(video(640, 360)), LIMITS.memory(video(3840, 2160))
    assert 2 * GIB < small < large
    assert LIMITS.memory(video(3840, 2160), [rung(Codec.AV1)]) > LIMITS.memory(video(3840, 2160), [rung(Codec.H264)])
    assert Limits(encoder_memory_bytes=GIB).memory(video(3840, 2160), [rung(Codec.H264)]) == GIB


def test_reading_may_take_longer_the_larger_a_file_is() -> None:
    assert LIMITS.reading_s(0) == 60 and LIMITS.reading_s(5_000_000_000) == 1060
