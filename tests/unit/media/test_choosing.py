"""Which renditions beside H.264, and which ffmpeg makes what: judged with builds that do not exist."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.errors import SourceUnsupported
from contracts.media import AudioFacts, FrameRate
from contracts.plan import Grid, PlannedRendition, ToneMap, TranscodePlan
from contracts.states import Codec
from contracts.steps import EncodeAudio
from media import commands
from media.choosing import filters_needed, sound_filters_needed
from media.pinning import pin_anew
from media.planning import PlanOptions, make_plan
from tests.support.media_facts import source, tool, toolbox, track, video
from tests.unit.media.test_commands import IDS, graph, request

ALL = PlanOptions(codecs=(Codec.H264, Codec.HEVC, Codec.AV1))
X264 = frozenset({"libx264", "aac", "mjpeg"})
EVERYTHING = tool("everything", encoders=X264 | {"libx265", "libsvtav1"})
SD = video(854, 480)


def made(plan: TranscodePlan) -> dict[str, str]:
    return {rendition.quality: rendition.ffmpeg for rendition in plan.renditions}


def test_each_codec_that_is_asked_for_gets_every_rung_after_h264() -> None:
    plan = make_plan(source(SD), ALL, toolbox(EVERYTHING))
    assert [(one.quality, one.codec, one.encoder, one.video_kbps) for one in plan.renditions] == [
        ("480p", "h264", "libx264", 1000),
        ("360p", "h264", "libx264", 600),
        ("480p-hevc", "hevc", "libx265", 600),
        ("360p-hevc", "hevc", "libx265", 360),
        ("480p-av1", "av1", "libsvtav1", 500),
        ("360p-av1", "av1", "libsvtav1", 300),
    ]
    assert plan.lists == (("480p", "360p"), ("360p-av1",), ("480p-av1",), ("360p-hevc",), ("480p-hevc",))
    assert plan.lowest.quality == "360p"


def test_nothing_but_h264_is_made_unasked() -> None:
    assert list(made(make_plan(source(SD), PlanOptions(), toolbox(EVERYTHING)))) == ["480p", "360p"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (("360p-av1",), ["360p", "360p-av1"]),
        (("480p", "360p-hevc"), ["480p", "360p", "360p-hevc"]),
        (("480p",), ["480p"]),
        (("1080p-av1",), ["480p", "480p-av1"]),
    ],
)
def test_an_upload_may_name_qualities_of_other_codecs(wanted: tuple[str, ...], expected: list[str]) -> None:
    """Whatever the setting says; their rungs are made in H.264 too."""
    for options in (PlanOptions(), ALL):
        assert list(made(make_plan(source(SD), options, toolbox(EVERYTHING), wanted))) == expected


def test_pictures_too_small_for_the_encoders_stay_with_h264() -> None:
    assert list(made(make_plan(source(video(100, 50)), ALL, toolbox(EVERYTHING)))) == ["50p"]


def test_every_rendition_is_pinned_to_a_build_that_can_make_it_and_the_plan_says_so() -> None:
    svt = tool("svt", encoders=frozenset({"libsvtav1"}))
    x265 = tool("x265", encoders=frozenset({"libx265"}))
    plan = make_plan(source(SD), ALL, toolbox(svt, tool("usual"), x265))
    assert made(plan) == {
        "480p": "8.1-usual",
        "360p": "8.1-usual",
        "480p-hevc": "8.1-x265",
        "360p-hevc": "8.1-x265",
        "480p-av1": "8.1-svt",
        "360p-av1": "8.1-svt",
    }
    assert plan.ffmpeg == "8.1-usual"
    assert "ffmpeg 8.1 from svt makes 480p-av1, 360p-av1." in plan.notes
    assert "ffmpeg 8.1 from usual makes 480p, 360p, the thumbnail." in plan.notes


def test_a_codec_that_no_build_makes_is_left_out_and_named() -> None:
    plan = make_plan(source(SD), ALL, toolbox(tool("x265", encoders=X264 | {"libx265"})))
    assert list(made(plan)) == ["480p", "360p", "480p-hevc", "360p-hevc"]
    assert any("480p-av1 is left out" in note and "the encoder libsvtav1" in note for note in plan.notes)


def test_alternatives_look_like_the_h264_ones_or_are_left_out() -> None:
    """The build with the encoder cannot map HDR as the others are mapped."""
    hdr = source(video(854, 480, codec="hevc", color_transfer="smpte2084"))
    best = tool("best", filters=frozenset({"zscale", "tonemap"}))
    plan = make_plan(hdr, replace(ALL, codecs=(Codec.H264, Codec.AV1)), toolbox(EVERYTHING, best))
    assert (made(plan), plan.encoding.tone_map) == ({"480p": best.build, "360p": best.build}, ToneMap.ZSCALE)
    assert any("480p-av1 is left out" in note for note in plan.notes)


def test_sound_and_thumbnail_have_builds_of_their_own() -> None:
    ears = tool("ears", decoders=frozenset({"ac4"}), encoders=frozenset({"aac"}))
    eyes = tool("eyes", encoders=frozenset({"mjpeg"}))
    picture = tool("picture", encoders=frozenset({"libx264"}))
    plan = make_plan(source(SD, track(1, codec="ac4")), PlanOptions(), toolbox(picture, ears, eyes))
    assert [one.ffmpeg for one in plan.audio] == [ears.build]
    assert (plan.renditions[0].ffmpeg, plan.ffmpeg) == (picture.build, eyes.build)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"decoders": frozenset({"vp9"})}, "a decoder for h264"),
        ({"demuxers": frozenset({"avi"})}, "a reader of mov,mp4"),
        ({"filters": frozenset({"scale"})}, "the filter fps"),
        ({"encoders": frozenset({"aac"})}, "the encoder libx264"),
    ],
)
def test_what_no_build_can_do_is_refused_by_name(change: dict[str, frozenset[str]], missing: str) -> None:
    with pytest.raises(SourceUnsupported, match=missing):
        make_plan(source(), PlanOptions(), toolbox(replace(tool(), **change)))  # type: ignore[arg-type]


def test_the_filters_that_are_asked_for_are_those_of_the_command(tmp_path: Path) -> None:
    for encoding in (make_plan(source(), PlanOptions(), toolbox()).encoding,):
        wanted = request(video(field_order="tt"), encoding=encoding.model_copy(update={"deinterlace": True}))
        words = graph(commands.transcode(tool(), Path("/data/in"), tmp_path, wanted, first_segment=0))
        used = set(re.findall(r"(?:^|[\];,])([a-z]+)(?==|\[|$)", words))
        assert used <= filters_needed(wanted.video, wanted.grid, wanted.encoding)
        assert {"bwdif", "fps", "scale", "split"} <= used


@pytest.mark.parametrize("found", [track(1), track(1, channels=1), track(1, channels=6, layout="5.1")])
def test_the_filters_of_the_sound_are_asked_for(tmp_path: Path, found: AudioFacts) -> None:
    planned = make_plan(source(SD, found), PlanOptions(), toolbox()).audio[0]
    grid = Grid(frame_rate=FrameRate(num=30), frames=60, segment_frames=30)
    wanted = EncodeAudio(**IDS, prefix="a/", audio=planned, grid=grid, video_start_s="0")
    words = graph(commands.audio(tool(), Path("/data/in"), tmp_path, wanted))
    used = set(re.findall(r"(?:^|[\];,])([a-z]+)(?==|\[|$)", words))
    assert used <= sound_filters_needed(found) and "aresample" in used


# --- a build that is gone ----------------------------------------------------------------------------------------

OLD, NEW = tool("old", encoders=X264 | {"libsvtav1"}), tool("new", encoders=X264 | {"libsvtav1"})
FACTS = source(SD, track(1))
PLAN = make_plan(FACTS, replace(ALL, codecs=(Codec.H264, Codec.AV1)), toolbox(OLD))


def test_work_whose_build_is_gone_starts_anew_with_one_that_is_here() -> None:
    anew = pin_anew(PLAN, FACTS, toolbox(NEW), pending={"480p", "480p-av1", "audio_0"})
    assert {(one.quality, one.ffmpeg, one.generation) for one in anew.renditions} == {
        ("480p", NEW.build, 1),
        ("360p", OLD.build, 0),  # done already
        ("480p-av1", NEW.build, 1),
        ("360p-av1", OLD.build, 0),
    }
    assert [(one.ffmpeg, one.generation) for one in anew.audio] == [(NEW.build, 1)]
    assert anew.ffmpeg == NEW.build
    assert any("is gone" in note and "480p-av1" in note for note in anew.notes)


def test_what_has_its_build_here_is_left_as_it_is() -> None:
    """It was another worker that lacks it."""
    assert pin_anew(PLAN, FACTS, toolbox(NEW, OLD), pending={"480p", "audio_0"}) == PLAN


def test_a_rendition_that_is_to_start_anew_does_so_alone_with_the_build_it_has_if_it_can() -> None:
    for box, build in ((toolbox(NEW, OLD), OLD.build), (toolbox(NEW), NEW.build)):
        anew = pin_anew(PLAN, FACTS, box, pending=(), anew=("480p",))
        raised = [(one.quality, one.generation, one.ffmpeg) for one in anew.renditions if one.generation]
        assert raised == [("480p", 1, build)]


def test_an_alternative_that_nobody_can_make_any_more_keeps_its_pin() -> None:
    anew = pin_anew(PLAN, FACTS, toolbox(tool("plain")), pending={"480p", "480p-av1"})
    assert [(one.quality, one.generation) for one in anew.renditions if one.generation] == [("480p", 1)]
    assert made(anew)["480p-av1"] == OLD.build


def test_hdr_is_mapped_less_well_rather_than_not_encoded() -> None:
    hdr = source(video(854, 480, codec="hevc", color_transfer="smpte2084"))
    best = tool("best", filters=frozenset({"zscale", "tonemap"}))
    plan = make_plan(hdr, PlanOptions(), toolbox(best))
    anew = pin_anew(plan, hdr, toolbox(tool("plain")), pending={"480p", "360p"})
    assert anew.encoding.tone_map is ToneMap.NONE
    assert {one.ffmpeg for one in anew.renditions} == {"8.1-plain"}


def test_a_source_that_no_build_can_read_any_more_is_refused() -> None:
    with pytest.raises(SourceUnsupported, match="a decoder for h264"):
        pin_anew(PLAN, FACTS, toolbox(tool("deaf", decoders=frozenset({"vp9"}))), pending={"480p"})


def test_a_rendition_is_an_alternative_by_its_codec() -> None:
    plain = PlannedRendition(quality="480p", width=854, height=480, video_kbps=1000)
    assert not plain.is_alternative
    assert plain.model_copy(update={"codec": Codec.AV1}).is_alternative
