"""What players read, read back."""

import math
import re
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.end_steps import VerifiedRenditions
from contracts.media import FrameRate
from contracts.renditions import AudioRendition, SubtitleRendition, VideoRendition
from contracts.states import Codec
from media import manifests
from media.bandwidth import measure
from media.playlists import attributes, read_master, read_media, read_text_playlist, read_texts

PREFIX = "videos/a-film/"
DASH = "{urn:mpeg:dash:schema:mpd:2011}"


def rendition(quality: str = "720p", width: int = 1280, height: int = 720, **changes: object) -> VideoRendition:
    values: dict[str, object] = {
        "quality": quality,
        "prefix": f"{PREFIX}r1/{quality}/",
        "width": width,
        "height": height,
        "codec": Codec.H264,
        "codecs": "avc1.64001F",
        "bitrate_kbps": 2500,
        "frame_rate": FrameRate(num=30000, den=1001),
        "timescale": 30000,
        "frame_duration": 1001,
        "segment_frames": 180,
        "frames": 730,
        "size_bytes": 5_000_000,
        "peak_bandwidth": 2_600_000,
        "average_bandwidth": 1_900_000,
    }
    return VideoRendition.model_validate({**values, **changes})


def sound(track: int = 0, **changes: object) -> AudioRendition:
    values: dict[str, object] = {
        "track": track,
        "prefix": f"{PREFIX}r1/audio_{track}/",
        "codecs": "mp4a.40.2",
        "language": "eng",
        "name": "English",
        "default": track == 0,
        "channels": 2,
        "timescale": 48000,
        "segment_durations": ((288768, 3), (287744, 1), (15360, 1)),
        "size_bytes": 400_000,
        "peak_bandwidth": 130_000,
        "average_bandwidth": 128_000,
    }
    return AudioRendition.model_validate({**values, **changes})


def both(*audio: AudioRendition) -> VerifiedRenditions:
    small = rendition("360p", 640, 360, codecs="avc1.64001E", peak_bandwidth=700_000, average_bandwidth=500_000)
    return VerifiedRenditions(video=(small, rendition()), audio=audio)


def test_a_video_playlist_is_exact() -> None:
    lines = manifests.media_playlist_video(rendition()).splitlines()
    assert lines[:9] == [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        "#EXT-X-TARGETDURATION:6",
        "#EXT-X-MEDIA-SEQUENCE:0",
        "#EXT-X-PLAYLIST-TYPE:VOD",
        "#EXT-X-INDEPENDENT-SEGMENTS",
        '#EXT-X-MAP:URI="init.mp4"',
        "#EXTINF:6.006000,",
        "seg_00000.m4s",
    ]
    assert lines[-3:] == ["#EXTINF:0.333667,", "seg_00004.m4s", "#EXT-X-ENDLIST"]


def test_an_audio_playlist_has_the_measured_lengths() -> None:
    text = manifests.media_playlist_audio(sound(), Fraction(6))
    assert re.findall(r"#EXTINF:([\d.]+)", text) == ["6.016000"] * 3 + ["5.994667", "0.320000"]


@given(st.integers(1, 500), st.integers(1, 5000), st.sampled_from([(24, 1), (25, 1), (30000, 1001), (60, 1)]))
def test_segments_add_up_to_the_whole(segment_frames: int, frames: int, rate: tuple[int, int]) -> None:
    video = rendition(segment_frames=segment_frames, frames=frames, frame_rate=FrameRate(num=rate[0], den=rate[1]))
    lengths = [float(length) for length in re.findall(r"#EXTINF:([\d.]+)", manifests.media_playlist_video(video))]
    assert len(lengths) == math.ceil(frames / segment_frames)
    assert sum(lengths) == pytest.approx(frames * rate[1] / rate[0], abs=1e-6 * len(lengths))
    target = int(re.findall(r"TARGETDURATION:(\d+)", manifests.media_playlist_video(video))[0])
    assert all(round(length) <= max(1, target) for length in lengths)


def test_the_master_lists_the_largest_first_with_sound_counted_in(tmp_path: Path) -> None:
    path = tmp_path / "master.m3u8"
    path.write_text(manifests.master_playlist(both(sound(0), sound(1, name="Deutsch", language="deu")), PREFIX))
    videos, sounds = read_master(path)
    assert [(one.attributes["RESOLUTION"], str(one.path.relative_to(tmp_path))) for one in videos] == [
        ("1280x720", "r1/720p/playlist.m3u8"),
        ("640x360", "r1/360p/playlist.m3u8"),
    ]
    assert videos[0].attributes == {
        "BANDWIDTH": "2730000",
        "AVERAGE-BANDWIDTH": "2028000",
        "RESOLUTION": "1280x720",
        "FRAME-RATE": "29.970",
        "CODECS": "avc1.64001F,mp4a.40.2",
        "AUDIO": "aud",
    }
    assert [(one.attributes["LANGUAGE"], one.attributes["DEFAULT"]) for one in sounds] == [("en", "YES"), ("de", "NO")]


def test_a_silent_video_names_no_audio() -> None:
    text = manifests.master_playlist(both(), PREFIX)
    assert "AUDIO" not in text and "mp4a" not in text


@given(st.text(max_size=60))
def test_no_track_name_breaks_out_of_its_quotes(name: str) -> None:
    renditions = both(sound(name=name))
    lines = manifests.master_playlist(renditions, PREFIX).split("\n")
    assert len(lines) == 9
    assert attributes(lines[3])["URI"] == "r1/audio_0/playlist.m3u8"
    ElementTree.fromstring(manifests.dash_manifest(renditions, PREFIX))


def text(track: int = 0, **changes: object) -> SubtitleRendition:
    values: dict[str, object] = {
        "track": track,
        "prefix": f"{PREFIX}r1/subtitles_{track}/",
        "language": "deu",
        "name": "Deutsch",
        "default": track == 0,
        "forced": track == 1,
        "cues": 3,
        "size_bytes": 3000,
    }
    return SubtitleRendition.model_validate({**values, **changes})


def test_subtitles_are_a_group_of_every_rung(tmp_path: Path) -> None:
    renditions = both(sound()).model_copy(update={"subtitles": (text(0), text(1, name="Signs", language="eng"))})
    path = tmp_path / "master.m3u8"
    path.write_text(manifests.master_playlist(renditions, PREFIX))
    videos, sounds = read_master(path)
    assert [one.attributes["SUBTITLES"] for one in videos] == ["subs", "subs"] and len(sounds) == 1
    said = [one.attributes for one in read_texts(path)]
    assert [(one["NAME"], one["LANGUAGE"], one["DEFAULT"], one["FORCED"]) for one in said] == [
        ("Deutsch", "de", "YES", "NO"),
        ("Signs", "en", "NO", "YES"),
    ]
    assert said[1]["URI"] == "r1/subtitles_1/playlist.m3u8"
    tree = ElementTree.fromstring(manifests.dash_manifest(renditions, PREFIX))
    sets = tree.findall(f"{DASH}Period/{DASH}AdaptationSet")
    assert [one.get("contentType") for one in sets] == ["video", "audio", "text", "text"]
    assert len({one.get("id") for one in sets}) == 4
    roles = [[role.get("value") for role in one.findall(f"{DASH}Role")] for one in sets[2:]]
    assert roles == [["subtitle", "main"], ["forced-subtitle"]]
    assert sets[2].findtext(f"{DASH}Representation/{DASH}BaseURL") == "r1/subtitles_0/subtitles.vtt"


def test_the_playlist_of_subtitles_is_one_file_as_long_as_the_picture(tmp_path: Path) -> None:
    path = tmp_path / "playlist.m3u8"
    path.write_text(manifests.media_playlist_subtitles(24.357667))
    (tmp_path / "subtitles.vtt").write_text("WEBVTT\n")
    assert read_text_playlist(path) == (tmp_path / "subtitles.vtt", 24.357667)
    assert "#EXT-X-TARGETDURATION:24\n" in path.read_text()


@given(st.text(max_size=60))
def test_no_name_of_subtitles_breaks_out_of_its_quotes(name: str) -> None:
    renditions = both().model_copy(update={"subtitles": (text(name=name),)})
    lines = manifests.master_playlist(renditions, PREFIX).split("\n")
    assert len(lines) == 9
    assert attributes(lines[3])["URI"] == "r1/subtitles_0/playlist.m3u8"
    ElementTree.fromstring(manifests.dash_manifest(renditions, PREFIX))


def test_the_dash_manifest_speaks_of_the_same_segments() -> None:
    tree = ElementTree.fromstring(manifests.dash_manifest(both(sound()), PREFIX))
    assert tree.get("mediaPresentationDuration") == "PT24.362667S"
    sets = tree.findall(f"{DASH}Period/{DASH}AdaptationSet")
    assert [one.get("contentType") for one in sets] == ["video", "audio"]
    first = sets[0].findall(f"{DASH}Representation")[0]
    assert (first.get("id"), first.get("frameRate"), first.get("bandwidth")) == ("720p", "30000/1001", "2600000")
    template = first.find(f"{DASH}SegmentTemplate")
    assert template is not None
    assert template.get("media") == "r1/720p/seg_$Number%05d$.m4s"
    assert [dict(entry.attrib) for entry in template.iter(f"{DASH}S")] == [
        {"t": "0", "d": "180180", "r": "3"},
        {"t": "720720", "d": "10010"},
    ]


def test_a_rendition_outside_the_folder_is_never_listed() -> None:
    stray = VerifiedRenditions(video=(rendition(prefix="videos/another/r1/720p/"),))
    with pytest.raises(ValueError, match="does not lie under"):
        manifests.master_playlist(stray, PREFIX)


def test_a_playlist_reads_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "playlist.m3u8"
    path.write_text(manifests.media_playlist_video(rendition()))
    found = read_media(path)
    assert found.init == tmp_path / "init.mp4"
    assert [file.name for file, _ in found.segments] == [f"seg_{n:05d}.m4s" for n in range(5)]


def test_bandwidth_leaves_tiny_segments_out_of_the_peak_only() -> None:
    assert measure([1000, 2000, 1000], [1.0, 1.0, 0.1]) == (16000, 15238)
    assert measure([1000], [0.1]) == (80000, 80000)
    with pytest.raises(ValueError):
        measure([1], [])


@given(st.lists(st.tuples(st.integers(1, 10**8), st.floats(0.01, 20)), min_size=1))
def test_the_peak_is_never_below_the_average(segments: list[tuple[int, float]]) -> None:
    peak, average = measure([size for size, _ in segments], [length for _, length in segments])
    assert peak >= average


def three_codecs() -> VerifiedRenditions:
    def of(codec: Codec, codecs: str) -> list[VideoRendition]:
        tail = "" if codec is Codec.H264 else f"-{codec}"
        sizes = (("360p", 640, 360), ("720p", 1280, 720))
        return [rendition(f"{name}{tail}", wide, high, codec=codec, codecs=codecs) for name, wide, high in sizes]

    # As the mirror may give them, in any order.
    mixed = [*of(Codec.AV1, "av01.0.05M.08"), *of(Codec.H264, "avc1.64001F"), *of(Codec.HEVC, "hvc1.1.6.L93.90")]
    return VerifiedRenditions(video=tuple(mixed), audio=(sound(), sound(1)))


def test_the_master_goes_codec_by_codec_and_begins_with_what_everybody_has() -> None:
    lines = manifests.master_playlist(three_codecs(), PREFIX).splitlines()
    assert [line.split("/")[1] for line in lines if line.endswith("/playlist.m3u8")] == [
        *["720p", "360p", "720p-hevc", "360p-hevc", "720p-av1", "360p-av1"]
    ]
    said = [attributes(line)["CODECS"] for line in lines if line.startswith("#EXT-X-STREAM-INF")]
    assert said[::2] == ["avc1.64001F,mp4a.40.2", "hvc1.1.6.L93.90,mp4a.40.2", "av01.0.05M.08,mp4a.40.2"]


def test_the_dash_manifest_has_a_set_per_codec_and_no_number_twice() -> None:
    tree = ElementTree.fromstring(manifests.dash_manifest(three_codecs(), PREFIX))
    sets = tree.findall(f".//{DASH}AdaptationSet")
    assert [one.get("contentType") for one in sets] == ["video"] * 3 + ["audio"] * 2
    assert [one.get("id") for one in sets] == ["0", "1", "2", "3", "4"]
    named = [[each.get("id") for each in one.findall(f"{DASH}Representation")] for one in sets[:3]]
    assert named == [["720p", "360p"], ["720p-hevc", "360p-hevc"], ["720p-av1", "360p-av1"]]
