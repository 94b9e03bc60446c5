"""The words of each command line that everything depends on."""

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contracts.ids import JobId, ObjectKey, VideoId
from contracts.media import FrameRate, VideoFacts
from contracts.plan import Encoding, Grid, PlannedAudio, PlannedRendition, Span, ToneMap
from contracts.steps import EncodeAudio, TranscodeSpan
from media import commands, seeking, sniff, sound
from tests.support.media_facts import tool, video

NTSC = Grid(frame_rate=FrameRate(num=30000, den=1001), frames=730, segment_frames=180)
IDS = {"job_id": JobId(1), "video_id": VideoId(1), "source_key": ObjectKey("uploads/1.mp4")}
RUNGS = (
    PlannedRendition(quality="720p", width=1280, height=720, video_kbps=2500),
    PlannedRendition(quality="360p", width=640, height=360, video_kbps=600),
)


def request(
    picture: VideoFacts | None = None, *, alone: bool = True, encoding: Encoding | None = None
) -> TranscodeSpan:
    return TranscodeSpan(
        **IDS,
        slug="a",
        output="r1",
        video=picture or video(),
        grid=NTSC,
        span=Span(first_segment=0, segments=5),
        renditions=RUNGS,
        encoding=encoding or Encoding(),
        alone=alone,
    )


def after(argv: list[str], option: str) -> list[str]:
    return [value for word, value in pairwise(argv) if word == option]


def graph(argv: list[str]) -> str:
    return after(argv, "-filter_complex")[0]


def made(tmp_path: Path, first_segment: int = 0, **changes: object) -> list[str]:
    wanted = request(**changes)  # type: ignore[arg-type]
    return commands.transcode(tool(), Path("/data/in.mp4"), tmp_path, wanted, first_segment=first_segment)


def test_the_source_is_opened_as_a_file_and_as_nothing_else(tmp_path: Path) -> None:
    argv = made(tmp_path)
    assert argv[0] == "/opt/first/ffmpeg"
    assert after(argv, "-i") == ["file:/data/in.mp4"]
    assert after(argv, "-protocol_whitelist") == ["file"]
    assert after(argv, "-format_whitelist") == [sniff.FORMATS]
    assert argv.index("-format_whitelist") < argv.index("-i")


def test_progress_is_reported_four_times_a_second(tmp_path: Path) -> None:
    argv = made(tmp_path)
    assert after(argv, "-progress") == ["pipe:1"] and after(argv, "-stats_period") == ["0.25"]
    assert "-nostats" in argv and "-nostdin" in argv


def test_short_segments_are_looked_for_more_often(tmp_path: Path) -> None:
    grid = Grid(frame_rate=FrameRate(num=30), frames=600, segment_frames=60)
    wanted = request().model_copy(update={"grid": grid})
    argv = commands.transcode(tool(), Path("/data/in.mp4"), tmp_path, wanted, first_segment=0)
    assert after(argv, "-stats_period") == ["0.0417"]


def test_one_decode_and_each_rung_from_the_one_above(tmp_path: Path) -> None:
    words = graph(made(tmp_path))
    assert words.count("[0:0]") == 1
    assert words.index("w=1280") < words.index("split=2") < words.index("w=640")
    assert "fps=eof_action=pass:fps=30000/1001:round=near:start_time=0" in words
    assert "tpad=stop=30:stop_mode=clone" in words
    assert "trim=end_pts=730:start_pts=0" in words


def test_keyframes_segments_and_caps(tmp_path: Path) -> None:
    argv = made(tmp_path)
    for option, values in {
        "-g": ["180", "180"],
        "-force_key_frames": ["expr:not(mod(n,180))"] * 2,
        "-sc_threshold": ["0", "0"],
        "-x264-params": ["b-pyramid=none"] * 2,
        "-crf": ["22", "22"],
        "-maxrate": ["2500k", "600k"],
        "-bufsize": ["5000k", "1200k"],
        "-enc_time_base": ["1001:30000"] * 2,
        "-fps_mode": ["passthrough"] * 2,
        "-frames:v": ["730", "730"],
        "-avoid_negative_ts": ["disabled"] * 2,
        "-hls_time": ["5.996000"] * 2,
        "-hls_flags": ["temp_file+independent_segments"] * 2,
        "-hls_segment_options": ["movflags=+frag_discont+negative_cts_offsets:write_btrt=0"] * 2,
        "-hls_fmp4_init_filename": ["init.mp4"] * 2,
        "-start_number": ["0", "0"],
        "-hls_segment_filename": [f"file:{tmp_path}/{rung.quality}/seg_%05d.m4s" for rung in RUNGS],
    }.items():
        assert after(argv, option) == values, option
    assert (tmp_path / "720p").is_dir() and (tmp_path / "360p").is_dir()


def test_a_resumed_span_seeks_to_a_second_before_and_counts_on(tmp_path: Path) -> None:
    argv = made(tmp_path, 3, picture=video(start_s="13.745000"))
    assert after(argv, "-ss") == ["30.763000"]  # 13.745 + 540 frames of 1001/30000 s, less one second
    assert after(argv, "-seek_timestamp") == ["1"] and "-noaccurate_seek" in argv and "-copyts" in argv
    assert after(argv, "-start_number") == ["3", "3"] and after(argv, "-frames:v") == ["190", "190"]
    assert "setpts=expr=floor(PTS-(13.745000/TB)+0.5)" in graph(argv)
    assert "trim=end_pts=730:start_pts=540" in graph(argv)
    assert "start_time" not in graph(argv)


def test_where_keyframes_are_shown_long_after_they_are_decoded_the_seek_goes_further_back(tmp_path: Path) -> None:
    def lead_s(lag_s: float) -> float:
        (at,) = after(made(tmp_path, 3, picture=video(keyframe_lag_s=lag_s)), "-ss")
        return round(540 * 1001 / 30000 - float(at), 3)

    assert [lead_s(lag_s) for lag_s in (0, 0.08, 0.5, 3, 3600)] == [1, 1, 1, 3.5, 10.5]


def test_what_gives_too_little_is_read_from_afar_and_then_whole_and_no_more_is_made_up_than_may_lack() -> None:
    """Nor more than ten seconds and two keyframes."""
    picture = video(keyframe_gap_s=4.0)
    for least_share, lost in ((0.5, 365), (0.0, 539), (1.0, 30)):
        near, far, whole = seeking.reaches(picture, NTSC, least_share)
        assert near == seeking.Reach(1.0, 30)
        assert (far, whole) == (seeking.Reach(18.0, lost), seeking.Reach(None, lost))
    assert seeking.begins_at(picture, NTSC, 720, near) is not None
    assert seeking.begins_at(picture, NTSC, 720, whole) is None


def test_how_much_of_a_part_cannot_be_decoded_is_no_reason_to_refuse_the_whole(tmp_path: Path) -> None:
    assert "-max_error_rate" not in made(tmp_path)
    assert after(made(tmp_path, 3), "-max_error_rate") == ["1"]


@pytest.mark.parametrize("unsought", [{"seekable": False}, {"first_keyframe_s": 17.1}], ids=str)
def test_a_source_that_seeks_badly_is_decoded_from_its_start(tmp_path: Path, unsought: dict[str, Any]) -> None:
    argv = made(tmp_path, 3, picture=video(**unsought))
    assert "-ss" not in argv and "start_time=0" in graph(argv)
    assert "trim=end_pts=730:start_pts=540" in graph(argv)


@pytest.mark.parametrize("first_segment", [-1, 5, 99])
def test_a_segment_outside_the_span_is_a_mistake(tmp_path: Path, first_segment: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        made(tmp_path, first_segment)


def test_threads_are_left_to_ffmpeg_only_when_it_is_alone(tmp_path: Path) -> None:
    assert "-threads" not in made(tmp_path)
    shared = made(tmp_path, alone=False)
    assert after(shared, "-threads") == ["1", "1", "1"]  # the decoder and each encoder
    assert after(shared, "-filter_complex_threads") == ["1"]


@pytest.mark.parametrize("cores, threads", [(8, "2"), (1, "1")])
def test_what_takes_several_slots_has_as_many_threads_if_there_are_cores_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, threads: str
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    large = made(tmp_path, picture=video(7680, 4320), alone=False)
    assert after(large, "-threads") == [threads] * 3 and after(large, "-filter_complex_threads") == [threads]


def test_interlaced_and_hdr_sources_get_their_filters(tmp_path: Path) -> None:
    assert "bwdif" not in graph(made(tmp_path))
    assert "bwdif" in graph(made(tmp_path, encoding=Encoding(deinterlace=True)))
    hdr = video(color_transfer="smpte2084", color_primaries="bt2020", color_space="bt2020nc")
    words = graph(made(tmp_path, picture=hdr, encoding=Encoding(tone_map=ToneMap.ZSCALE)))
    assert "tin=smpte2084" in words and "tonemap=desat=0:param=0.7:peak=4.926:tonemap=mobius" in words
    rough = graph(made(tmp_path, picture=hdr, encoding=Encoding(tone_map=ToneMap.TABLES)))
    assert rough.count("lutrgb=") == 2 and "colorchannelmixer" in rough and "zscale" not in rough


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # Tagged pictures tell scale themselves, each for its own.
        ({"color_space": "smpte170m"}, "full_chroma_inp:h=720:out_color_matrix=bt709:out_range=limited"),
        ({"color_range": "pc"}, "flags=bicubic:h=720:out_color_matrix=bt709:out_range=limited"),
        ({"color_space": ""}, "flags=bicubic:h=720:in_color_matrix=bt709:out_color_matrix=bt709"),
        ({"color_space": "", "width": 640, "height": 480}, "in_color_matrix=smpte170m:out_color_matrix=bt709"),
        ({"pixel_format": "yuvj420p"}, "in_range=full:out_color_matrix=bt709:out_range=limited"),
        ({"pixel_format": "gbrp", "color_space": ""}, "h=720:out_color_matrix=bt709:out_range=limited"),
    ],
)
def test_colours_are_converted_from_what_the_source_has(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    assert words in graph(made(tmp_path, picture=video().model_copy(update=changes)))


@pytest.mark.parametrize(
    ("rotation", "mirrored", "words"),
    [(0, False, ""), (0, True, "vflip"), (90, False, "transpose=dir=cclock"), (270, False, "transpose=dir=clock")],
)
def test_the_picture_is_turned_after_it_was_made_small(
    tmp_path: Path, rotation: int, mirrored: bool, words: str
) -> None:
    argv = made(tmp_path, picture=video(rotation=rotation, mirrored=mirrored))
    scale, turned = graph(argv).split("[s4];")[0].split("scale=")[1], graph(argv).split("[s4];")[1]
    assert ("w=720" in scale) == (rotation in (90, 270))
    assert words in turned and ("flip" in turned or "transpose" in turned) == bool(words)
    assert "-noautorotate" in argv


def test_a_new_size_half_way_meets_the_same_graph_unless_a_filter_would_choke(tmp_path: Path) -> None:
    assert after(made(tmp_path), "-reinit_filter") == ["0"]
    fields = made(tmp_path, encoding=Encoding(deinterlace=True))
    assert after(fields, "-reinit_filter") == ["0"]
    assert re.search(r"scale=flags=bicubic:h=ih:w=iw\[s1\];\[s1\]bwdif", graph(fields))
    cropped = made(tmp_path, picture=video(crop=(8, 0, 0, 0)))
    assert "-reinit_filter" not in cropped and "crop=exact=1:h=1080:w=1912" in graph(cropped)


def test_sound_is_measured_from_the_pictures_start() -> None:
    planned = PlannedAudio(track=0, stream=2, kbps=128)
    wanted = EncodeAudio(**IDS, prefix="p/", audio=planned, grid=NTSC, video_start_s="0.021000")
    argv = commands.audio(tool(), Path("/data/in.mkv"), Path("/scratch/a"), wanted)
    words = graph(argv)
    assert "asetpts=expr=PTS-(0.021000/TB)" in words
    assert "aresample=async=1:first_pts=1024:min_hard_comp=0.020:sample_rate=48000" in words
    assert words.endswith("apad=whole_dur=24.336333[s6]")  # to the picture's end, the encoder's 1024 samples included
    assert "atrim=end=25.357667" in words  # 730 pictures of 1001/30000 s, and one second more
    assert after(argv, "-bsf:a") == [sound.ONWARD]
    assert after(argv, "-max_error_rate") == ["1"]
    assert after(argv, "-hls_segment_options") == ["movflags=+frag_discont:write_btrt=0"]
    assert (after(argv, "-b:a"), after(argv, "-ac"), after(argv, "-hls_time")) == (["128k"], ["2"], ["6.006000"])


def test_the_sample_has_picture_and_sound() -> None:
    argv = commands.sample(tool(), Path("/tmp/s.mp4"), seconds=20, size=(1920, 1080))
    assert after(argv, "-i")[0] == "testsrc2=size=1920x1080:rate=30/1:duration=20"
    assert after(argv, "-i")[1].startswith("sine=")
