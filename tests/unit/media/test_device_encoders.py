# ruff: noqa: E501  (command lines are not wrapped)
"""What each device's encoder is told, and how pictures come to it. There is no device here: these lines are the check."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contracts.media import VideoFacts
from contracts.plan import Encoding, PlannedRendition, Span, ToneMap
from contracts.states import Codec
from contracts.steps import TranscodeSpan
from media import commands, device_encoders
from media.device_graphs import stays_there
from media.devices import KNOWN, Family, GpuEncoder
from media.gpu import devices_of
from tests.support.media_facts import tool, video
from tests.unit.media.test_commands import IDS, NTSC, after, graph

NODE = "/dev/dri/renderD129"
H264 = frozenset({"h264"})
PLAIN: dict[str, Any] = {"pixel_format": "yuv420p", "color_space": "bt709"}


def rendition(codec: Codec = Codec.H264) -> PlannedRendition:
    return PlannedRendition(quality="720p", width=1280, height=720, video_kbps=2500, codec=codec, gpu=True)


def made(device: GpuEncoder, tmp_path: Path, picture: VideoFacts | None = None, **encoding: Any) -> list[str]:
    request = TranscodeSpan(
        **IDS,
        slug="a",
        output="r1",
        video=picture or video(**PLAIN),
        grid=NTSC,
        span=Span(first_segment=0, segments=5),
        renditions=(rendition(device.codec),),
        encoding=Encoding(**encoding),
        alone=False,
    )
    return commands.transcode(device.tool, Path("/in.mp4"), tmp_path, request, first_segment=1, device=device)


def device(family: Family, codec: Codec = Codec.H264, at: str = "", **more: Any) -> GpuEncoder:
    return GpuEncoder(family, codec, tool(), at, **more)


# Family and codec, the way, and words that the command line must have, in order.
TABLE = [
    (Family.NVENC, Codec.H264, 0, "-b:v 0|-b_ref_mode disabled|-bf 2|-cq 22|-forced-idr 1|-no-scenecut 1|-preset p5|-profile:v high|-rc vbr|-tune hq"),
    (Family.NVENC, Codec.H264, 1, "-b:v 0|-bf 0|-cq 22|-rc vbr"),
    (Family.NVENC, Codec.HEVC, 0, "-bf 2|-cq 26|-forced-idr 1|-profile:v main|-tag:v hvc1"),
    (Family.NVENC, Codec.AV1, 0, "-b:v 0|-bf 0|-cq 33|-forced-idr 1|-no-scenecut 1"),
    (Family.QSV, Codec.H264, 0, "-adaptive_b 0|-adaptive_i 0|-bf 2|-flags +cgop|-forced_idr 1|-global_quality 22|-preset medium|-profile:v high"),
    (Family.QSV, Codec.H264, 2, "-b:v 2000k|-bf 2|-forced_idr 1"),
    (Family.QSV, Codec.HEVC, 1, "-bf 0|-forced_idr 1|-global_quality 26|-profile:v main|-tag:v hvc1"),
    (Family.QSV, Codec.AV1, 0, "-bf 0|-forced_idr 1|-global_quality 33"),
    (Family.VAAPI, Codec.H264, 0, "-b:v 2000k|-b_depth 1|-bf 2|-global_quality 22|-idr_interval 0|-profile:v high|-rc_mode QVBR"),
    (Family.VAAPI, Codec.H264, 3, "-b:v 2000k|-bf 0|-idr_interval 0|-rc_mode VBR"),
    (Family.VAAPI, Codec.H264, 4, "-bf 2|-low_power 1|-rc_mode QVBR"),
    (Family.VAAPI, Codec.HEVC, 0, "-bf 2|-global_quality 26|-profile:v main|-tag:v hvc1"),
    (Family.VAAPI, Codec.AV1, 0, "-bf 0|-global_quality 132|-rc_mode QVBR"),
    (Family.VIDEOTOOLBOX, Codec.H264, 0, "-allow_sw 0|-bf 2|-profile:v high|-q:v 65"),
    (Family.VIDEOTOOLBOX, Codec.HEVC, 3, "-allow_sw 0|-b:v 2000k|-bf 0|-tag:v hvc1"),
    (Family.STAND_IN, Codec.H264, 0, "-c:v libx264|-crf 22|-preset medium|-profile:v main|-sc_threshold 0"),
    (Family.STAND_IN, Codec.HEVC, 0, "-c:v libx265|-crf 26|-forced-idr 1|-profile:v main|-tag:v hvc1"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "codec", "way", "words"), TABLE)
def test_what_a_devices_encoder_is_told(family: Family, codec: Codec, way: int, words: str, tmp_path: Path) -> None:
    one = device(family, codec, NODE if family in (Family.QSV, Family.VAAPI) else "", way=way)
    argv = made(one, tmp_path)
    pairs = [f"{word} {value}" for word, value in pairwise(argv)]
    assert [pair for pair in words.split("|") if pair not in pairs] == []
    # The same for all: the cap, the grid, its keyframes and nothing of its own, colours, one tick per picture.
    assert after(argv, "-c:v") == [one.name]
    assert (after(argv, "-maxrate"), after(argv, "-bufsize")) == (["2500k"], ["5000k"])
    assert (after(argv, "-g"), after(argv, "-frames:v")) == (["180"], ["550"])
    assert after(argv, "-force_key_frames") == ["expr:not(mod(n,180))"]
    assert after(argv, "-enc_time_base") == ["1001:30000"] and after(argv, "-start_number") == ["1"]
    assert {after(argv, f"-{name}")[0] for name in ("color_primaries", "color_trc", "colorspace")} == {"bt709"}
    assert "-threads" not in argv, "the CPU's share of the work may take all of it"


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("codec", list(Codec))
def test_no_two_ways_of_a_family_are_the_same_and_all_are_capped(family: Family, codec: Codec) -> None:
    found = device_encoders.ways(family, rendition(codec), Encoding())
    assert len({str(sorted(way.items())) for way in found}) == len(found)
    assert family is Family.STAND_IN or all(way["maxrate"] == "2500k" for way in found)
    assert codec is not Codec.AV1 or all(way.get("bf", 0) == 0 for way in found)


@pytest.mark.parametrize("preset", ["ultrafast", "medium", "placebo"])
def test_every_preset_has_a_word_in_each_family(preset: str, tmp_path: Path) -> None:
    nvenc = after(made(device(Family.NVENC), tmp_path, preset=preset), "-preset")
    qsv = after(made(device(Family.QSV), tmp_path, preset=preset), "-preset")
    assert (nvenc[0], qsv[0]) == {
        "ultrafast": ("p1", "veryfast"),
        "medium": ("p5", "medium"),
        "placebo": ("p7", "veryslow"),
    }[preset]


# What opens the device, and how the graph ends.
WAYS = [
    (Family.NVENC, "1", [], "format=pix_fmts=yuv420p[s7]"),
    (Family.QSV, NODE, [f"vaapi=node:{NODE}", "qsv=gpu@node"], "format=pix_fmts=nv12[s8];[s8]hwupload=extra_hw_frames=16[s9]"),
    (Family.QSV, "", ["qsv=gpu"], "format=pix_fmts=nv12[s8];[s8]hwupload=extra_hw_frames=16[s9]"),
    (Family.VAAPI, NODE, [f"vaapi=gpu:{NODE}"], "format=pix_fmts=nv12[s8];[s8]hwupload=extra_hw_frames=16[s9]"),
    (Family.VIDEOTOOLBOX, "", [], "format=pix_fmts=yuv420p[s7]"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "at", "opened", "end"), WAYS)
def test_pictures_that_the_cpu_made_are_sent_up(
    family: Family, at: str, opened: list[str], end: str, tmp_path: Path
) -> None:
    argv = made(device(family, at=at), tmp_path)
    assert after(argv, "-init_hw_device") == opened and after(argv, "-hwaccel") == []
    assert after(argv, "-filter_hw_device") == (["gpu"] if opened else [])
    assert graph(argv).endswith(end)
    assert after(argv, "-gpu") == (["1"] if family is Family.NVENC else [])


STAYING = [
    (Family.NVENC, "", ["cuda=gpu:0"], ("cuda", "cuda"), "scale_cuda=format=nv12:h=720:w=1280"),
    (Family.QSV, NODE, [f"vaapi=node:{NODE}", "qsv=gpu@node"], ("qsv", "qsv"), "scale_qsv=format=nv12:h=720:w=1280"),
    (Family.VAAPI, NODE, [f"vaapi=gpu:{NODE}"], ("vaapi", "vaapi"), "scale_vaapi=format=nv12:h=720:w=1280"),
    (Family.VIDEOTOOLBOX, "", ["videotoolbox=gpu"], ("videotoolbox", "videotoolbox_vld"), "scale_vt=h=720:w=1280"),
]


@pytest.mark.parametrize(("family", "at", "opened", "reading", "scale"), STAYING)
def test_pictures_that_the_device_decodes_stay_there(
    family: Family, at: str, opened: list[str], reading: tuple[str, str], scale: str, tmp_path: Path
) -> None:
    argv = made(device(family, at=at, decodes=H264), tmp_path)
    assert after(argv, "-init_hw_device") == opened
    assert (after(argv, "-hwaccel")[0], after(argv, "-hwaccel_output_format")[0]) == reading
    assert after(argv, "-hwaccel_device") == ["gpu"] and after(argv, "-threads") == ["1"]
    assert argv.index("-init_hw_device") < argv.index("-hwaccel") < argv.index("-i")
    # The grid first, which only counts; then the one filter of the device. Nothing fetches the picture back.
    steps = [part.split("]")[1].split("[")[0].split("=")[0] for part in graph(argv).split(";")]
    assert steps == ["setpts", "fps", "tpad", "trim", scale.split("=")[0], "setsar", "setparams"]
    assert scale in graph(argv)


NOT_FOR_A_DEVICE = [
    ({"codec": "vp9"}, {}),
    ({"pixel_format": "yuv420p10le"}, {}),
    ({"pixel_format": "yuv422p"}, {}),
    ({"pixel_format": "yuvj420p", "color_range": "pc"}, {}),
    ({"color_range": "pc"}, {}),
    ({"color_space": "smpte170m"}, {}),
    ({"color_space": "", "width": 720, "height": 480}, {}),
    ({"rotation": 90}, {}),
    ({"mirrored": True}, {}),
    ({"crop": (0, 0, 0, 8)}, {}),
    ({"untimed": True}, {}),
    ({}, {"deinterlace": True}),
    ({}, {"narrow_gamut": True}),
    ({}, {"tone_map": ToneMap.ZSCALE}),
]


@pytest.mark.parametrize(("picture", "encoding"), NOT_FOR_A_DEVICE)
def test_whatever_needs_more_than_scaling_is_decoded_by_the_cpu(
    picture: dict[str, Any], encoding: dict[str, Any], tmp_path: Path
) -> None:
    one = device(Family.VAAPI, at=NODE, decodes=H264)
    assert stays_there(one, video(**PLAIN), Encoding())
    facts = video(**{**PLAIN, **picture})
    assert not stays_there(one, facts, Encoding(**encoding))
    argv = made(one, tmp_path, facts, **encoding)
    assert after(argv, "-hwaccel") == [] and "hwupload" in graph(argv)


def test_an_untagged_picture_of_high_definition_is_taken_for_what_it_is_meant_as() -> None:
    one = device(Family.NVENC, decodes=H264)
    assert stays_there(one, video(pixel_format="yuv420p", color_space=""), Encoding())


def test_encoders_are_known_by_their_names() -> None:
    assert KNOWN["h264_nvenc"] == (Family.NVENC, Codec.H264) and KNOWN["av1_vaapi"] == (Family.VAAPI, Codec.AV1)
    assert KNOWN["libsvtav1"] == (Family.STAND_IN, Codec.AV1) and "h264_amf" not in KNOWN
    assert replace(device(Family.QSV), codec=Codec.HEVC).name == "hevc_qsv"


def test_devices_are_chosen_by_node_or_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("renderD129", "renderD128", "card0"):
        (tmp_path / name).touch()
    nodes = (f"{tmp_path}/renderD128", f"{tmp_path}/renderD129")
    assert devices_of(Family.VAAPI, nodes=tmp_path) == devices_of(Family.QSV, nodes=tmp_path) == nodes
    assert devices_of(Family.VAAPI, NODE) == (NODE,) and devices_of(Family.NVENC, NODE) == ()
    assert devices_of(Family.NVENC, "1") == ("1",) and devices_of(Family.VAAPI, "1") == ()
    assert devices_of(Family.NVENC) == ("",) and devices_of(Family.VIDEOTOOLBOX) == ()
    monkeypatch.setattr("sys.platform", "darwin")
    assert devices_of(Family.VIDEOTOOLBOX) == ("",) and devices_of(Family.VAAPI) == ()
