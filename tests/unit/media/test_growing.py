"""Playlists that grow, read back as a player that joined early would."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.media import FrameRate
from contracts.plan import Grid, PlannedAudio, PlannedRendition
from contracts.renditions import AudioTimeline
from contracts.states import Codec
from media.growing import GrowingRung, GrowingTrack, RungPlaylist, TrackPlaylist, growing_master
from media.playlists import attributes
from tests.unit.media.test_boxes import AVC1, MP4A, init

PREFIX = "videos/a-film/"
GRID = Grid(frame_rate=FrameRate(num=30000, den=1001), frames=730, segment_frames=180)
PICTURES, SOUND = init("vide", AVC1), init("soun", MP4A)
TIMELINE = AudioTimeline(segment_durations=((288768, 3), (287744, 1)))
SIZES = {"720p": (1280, 720, 2500), "480p": (854, 480, 1000), "360p": (640, 360, 600)}


def rung(quality: str, segments: int, data: bytes | None = PICTURES) -> GrowingRung:
    width, height, kbps = SIZES[quality]
    planned = PlannedRendition(quality=quality, width=width, height=height, video_kbps=kbps)
    return GrowingRung(planned, f"{PREFIX}r1/{quality}/", segments, data if segments else None)


def track(number: int = 0, timeline: AudioTimeline | None = TIMELINE) -> GrowingTrack:
    planned = PlannedAudio(track=number, stream=number + 1, kbps=96, name=f"Track {number}", default=number == 0)
    return GrowingTrack(planned, f"{PREFIX}r1/audio_{number}/", timeline, SOUND if timeline else None)


def rung_playlist(grid: Grid, *folders: tuple[str, int]) -> str | None:
    playlist = RungPlaylist(grid)
    playlist.extend(folders)
    return playlist.text()


def track_playlist(grid: Grid, timeline: AudioTimeline | None) -> str | None:
    playlist = TrackPlaylist(grid)
    playlist.extend([("", timeline)])
    return playlist.text()


def listed(counts: dict[str, int], *tracks: GrowingTrack) -> list[str] | None:
    text = growing_master(GRID, [rung(*each) for each in counts.items()], tracks, PREFIX)
    return text and re.findall(r"^r1/(\w+)/playlist.m3u8$", text, re.M)  # type: ignore[return-value]


def test_other_codecs_are_not_listed_before_they_are_published() -> None:
    av1 = rung("360p", 4)
    planned = av1.planned.model_copy(update={"quality": "360p-av1", "codec": Codec.AV1})
    text = growing_master(
        GRID, [rung("360p", 4), replace(av1, planned=planned, prefix=f"{PREFIX}r1/360p-av1/")], [], PREFIX
    )
    assert text is not None and "r1/360p/" in text and "av1" not in text


def test_a_growing_playlist_begins_at_the_start_and_has_no_end() -> None:
    text = rung_playlist(GRID, ("", 2))
    assert text is not None
    assert text.splitlines() == [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        "#EXT-X-TARGETDURATION:6",
        "#EXT-X-MEDIA-SEQUENCE:0",
        "#EXT-X-PLAYLIST-TYPE:EVENT",
        "#EXT-X-START:TIME-OFFSET=0,PRECISE=YES",
        "#EXT-X-INDEPENDENT-SEGMENTS",
        '#EXT-X-MAP:URI="init.mp4"',
        "#EXTINF:6.006000,",
        "seg_00000.m4s",
        "#EXTINF:6.006000,",
        "seg_00001.m4s",
    ]
    assert rung_playlist(GRID, ("", 0)) is None


@given(st.integers(1, 300), st.integers(1, 900), st.sampled_from([(24, 1), (25, 1), (30000, 1001)]))
def test_a_playlist_only_ever_gets_longer(segment_frames: int, frames: int, rate: tuple[int, int]) -> None:
    grid = Grid(frame_rate=FrameRate(num=rate[0], den=rate[1]), frames=frames, segment_frames=segment_frames)
    before = ""
    growing = RungPlaylist(grid)
    for count in range(1, min(grid.segments, 40) + 1):
        growing.extend([("", count)])
        text = growing.text()
        assert text is not None and text.startswith(before)
        assert text == rung_playlist(grid, ("", count)), "however often it was looked at"
        assert text.endswith("#EXT-X-ENDLIST\n") == (count == grid.segments)
        before = text


def test_a_rung_that_starts_anew_goes_on_where_the_old_one_ended() -> None:
    growing = RungPlaylist(GRID)
    growing.extend([("", 2)])
    before = growing.text()
    assert before is not None
    growing.extend([("", 2), ("../720p.1/", 1)])
    assert growing.text() == before, "the new one has not caught up"
    growing.extend([("", 2), ("../720p.1/", 4)])
    text = growing.text()
    assert text is not None and text.startswith(before)
    assert text.removeprefix(before).splitlines() == [
        '#EXT-X-MAP:URI="../720p.1/init.mp4"',
        "#EXTINF:6.006000,",
        "../720p.1/seg_00002.m4s",
        "#EXTINF:6.006000,",
        "../720p.1/seg_00003.m4s",
    ]
    growing.extend([("", 5), ("../720p.1/", 5)])
    assert growing.text() == f"{text}#EXTINF:0.333667,\n../720p.1/seg_00004.m4s\n#EXT-X-ENDLIST\n"


def test_a_longer_timeline_only_adds_to_the_sound() -> None:
    growing = TrackPlaylist(GRID)
    for count in range(1, 4):
        growing.extend([("", AudioTimeline(segment_durations=((288768, count),)))])
        assert growing.text() == track_playlist(GRID, AudioTimeline(segment_durations=((288768, count),)))
    growing.extend([("", AudioTimeline(segment_durations=((288768, 2),)))])
    text = growing.text()
    assert text is not None and text.count("#EXTINF") == 3, "what was listed stays"


def test_a_sound_that_starts_anew_goes_on_where_the_old_one_ended() -> None:
    def told(count: int, *, whole: bool = False) -> AudioTimeline:
        return AudioTimeline(segment_durations=((288768, count),), whole=whole)

    growing = TrackPlaylist(GRID)
    growing.extend([("", told(2))])
    before = growing.text()
    assert before is not None
    growing.extend([("", told(2)), ("../audio_0.1/", None)])
    growing.extend([("", told(2)), ("../audio_0.1/", told(2))])
    assert growing.text() == before, "the new one has not caught up"
    growing.extend([("", told(2)), ("../audio_0.1/", told(3, whole=True))])
    added = '#EXT-X-MAP:URI="../audio_0.1/init.mp4"\n#EXTINF:6.016000,\n../audio_0.1/seg_00002.m4s\n#EXT-X-ENDLIST\n'
    assert growing.text() == before + added
    growing.extend([("", told(9)), ("../audio_0.1/", told(3, whole=True))])
    assert growing.text() == before + added, "never back to the one before"


def test_a_sound_playlist_follows_its_timeline() -> None:
    growing = track_playlist(GRID, TIMELINE)
    whole = track_playlist(GRID, AudioTimeline(segment_durations=(*TIMELINE.segment_durations, (15360, 1)), whole=True))
    assert growing is not None and whole is not None
    assert re.findall(r"#EXTINF:([\d.]+)", growing) == ["6.016000"] * 3 + ["5.994667"]
    assert whole.startswith(growing) and "#EXT-X-ENDLIST" not in growing
    assert whole.endswith("#EXTINF:0.320000,\nseg_00004.m4s\n#EXT-X-ENDLIST\n")
    assert track_playlist(GRID, None) is None
    assert track_playlist(GRID, AudioTimeline(whole=True)) is None


def test_no_sound_is_longer_than_its_target() -> None:
    grid = Grid(frame_rate=FrameRate(num=100), frames=1000, segment_frames=249)
    longest = 118 * 1024  # the first whole frame after 2.49 s: 2.517 s, which rounds up where 2.49 rounds down
    text = track_playlist(grid, AudioTimeline(segment_durations=((longest, 1),)))
    assert text is not None and "#EXT-X-TARGETDURATION:3\n" in text and "#EXTINF:2.517333,\n" in text


def test_the_master_says_what_is_planned_and_what_the_init_segments_say() -> None:
    text = growing_master(GRID, [rung("720p", 2), rung("360p", 2)], [track()], PREFIX)
    assert text is not None
    first = next(line for line in text.splitlines() if line.startswith("#EXT-X-STREAM-INF"))
    assert attributes(first) == {
        "BANDWIDTH": "2596000",
        "AVERAGE-BANDWIDTH": "2596000",
        "RESOLUTION": "1280x720",
        "FRAME-RATE": "29.970",
        "CODECS": "avc1.64001E,mp4a.40.2",
        "AUDIO": "aud",
    }
    assert 'URI="r1/audio_0/playlist.m3u8"' in text


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"720p": 0, "480p": 0, "360p": 0}, None),
        ({"720p": 5, "480p": 5, "360p": 0}, None),
        ({"720p": 0, "480p": 1, "360p": 1}, ["480p", "360p"]),
        ({"720p": 3, "480p": 2, "360p": 4}, ["720p", "360p"]),
        ({"720p": 5, "480p": 5, "360p": 4}, ["720p", "480p", "360p"]),
    ],
)
def test_only_rungs_that_keep_up_with_the_lowest_are_listed(counts: dict[str, int], expected: list[str] | None) -> None:
    assert listed(counts, track()) == expected


def test_nothing_plays_before_its_sound_has_an_opening() -> None:
    counts = {"360p": 3}
    assert listed(counts, track(0, None)) is None
    assert listed(counts, track(0, AudioTimeline()), track(1)) is None
    assert listed(counts, track(0)) == ["360p"]
    assert listed(counts) == ["360p"]


def test_the_default_sound_is_enough_and_the_others_are_listed_as_they_come() -> None:
    def sounds(*tracks: GrowingTrack) -> list[tuple[str, str]] | None:
        text = growing_master(GRID, [rung("360p", 3)], tracks, PREFIX)
        lines = [attributes(line) for line in (text or "").splitlines() if line.startswith("#EXT-X-MEDIA")]
        return [(sound["NAME"], sound["DEFAULT"]) for sound in lines] if text else None

    silent = AudioTimeline(whole=True)
    assert sounds(track(0), track(1, None), track(2)) == [("Track 0", "YES"), ("Track 2", "NO")]
    assert sounds(track(0), track(1), track(2)) == [("Track 0", "YES"), ("Track 1", "NO"), ("Track 2", "NO")]
    # Where the default is silent the first of the others is what it would be when all is published.
    assert sounds(track(0, silent), track(1, None), track(2)) is None
    assert sounds(track(0, silent), track(1), track(2, None)) == [("Track 1", "YES")]


def test_a_track_without_sound_is_left_out_and_another_becomes_the_default() -> None:
    text = growing_master(GRID, [rung("360p", 1)], [track(0, AudioTimeline(whole=True)), track(1)], PREFIX)
    assert text is not None
    sounds = [attributes(line) for line in text.splitlines() if line.startswith("#EXT-X-MEDIA")]
    assert [(sound["NAME"], sound["DEFAULT"]) for sound in sounds] == [("Track 1", "YES")]
