"""Sources that seek badly are copied to Matroska first: every picture once, in order, also after a seek."""

import subprocess
from pathlib import Path

import pytest

from contracts.errors import ScratchFull
from contracts.layout import INIT, segment_name
from contracts.plan import Capacity
from media import remux
from media.limits import Limits
from media.planning import PlanOptions, make_plan
from media.probe import probe
from media.tools import Toolbox
from tests.support import numbered
from tests.support.encoding import Work, prepare, transcode

FRAMES = 100
X264 = ("-c:v", "libx264", "-preset", "veryfast", "-bf", "3", "-g", "250")  # reordered, and one keyframe in all
AAC = ("-c:a", "aac")

KINDS: dict[str, tuple[str, ...]] = {
    "ntsc.ts": (*X264, *AAC, "-output_ts_offset", "12.345"),
    "mpeg2.ts": ("-c:v", "mpeg2video", "-bf", "2", "-q:v", "3", "-c:a", "mp2"),
    "disc.vob": ("-c:v", "mpeg2video", "-bf", "2", "-q:v", "3", "-c:a", "ac3", "-f", "vob"),
    "old.flv": (*X264, *AAC),
    "plain.avi": ("-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-g", "250", "-c:a", "libmp3lame"),
    "divx.avi": ("-c:v", "mpeg4", "-bf", "2", "-q:v", "3", "-c:a", "libmp3lame"),
    "windows.wmv": ("-c:v", "wmv2", "-q:v", "3", "-c:a", "wmav2"),
    "camera.mxf": ("-c:v", "mpeg2video", "-q:v", "3", "-c:a", "pcm_s16le"),
    "raw.m2v": ("-c:v", "mpeg2video", "-bf", "2", "-q:v", "3", "-an", "-f", "mpeg2video"),
}


# Reordered and without times: nothing but a decoder knows when these are shown.
UNTIMED: dict[str, tuple[str, ...]] = {
    "h264.avi": (*X264, "-c:a", "libmp3lame"),
    "cuts.avi": ("-c:v", "libx264", "-preset", "veryfast", "-bf", "3", "-g", "17", "-c:a", "libmp3lame"),
    "raw.h264": (*X264, "-an", "-f", "h264"),
    "raw.hevc": (
        "-c:v",
        "libx265",
        "-preset",
        "ultrafast",
        "-x265-params",
        "bframes=3:log-level=error",
        "-an",
        "-f",
        "hevc",
    ),
}


async def prepared(tools: Toolbox, source: Path, folder: Path, options: PlanOptions) -> Work:
    """Do what the steps do: probe, copy, probe the copy, plan."""
    before = await probe(tools, source)
    assert before.wants_remux and not before.video.seekable
    folder.mkdir()
    copied = await remux.remux(tools, source, folder, before, Limits(), stall_s=60)
    assert copied is not None
    facts = await probe(tools, copied)
    assert facts.video.seekable and facts.video.packets == before.video.packets
    plan = make_plan(facts, options, tools, capacity=Capacity(workers=1, slots=1))
    return Work(copied, facts, plan, tools.pick(build=plan.ffmpeg), tools)


@pytest.mark.parametrize("name", KINDS)
async def test_every_picture_of_a_poor_seeker_comes_out_once_and_in_order(
    tools: Toolbox, tmp_path: Path, options: PlanOptions, name: str
) -> None:
    source = tmp_path / name
    rate = "30000/1001" if name == "ntsc.ts" else "25"
    numbered.make(tools, source, *KINDS[name], frames=FRAMES, rate=rate)
    work = await prepared(tools, source, tmp_path / "copy", options)
    assert str(work.plan.grid.frame_rate) == (rate if "/" in rate else f"{rate}/1")
    assert work.plan.grid.frames == FRAMES
    quality = work.plan.renditions[-1].quality

    await transcode(work, tmp_path / "whole")
    whole = tmp_path / "whole" / quality
    parts = [whole / segment_name(index) for index in range(work.plan.grid.segments)]
    assert numbered.read(tools, whole / INIT, *parts) == list(range(FRAMES))

    # From the third segment on, as a worker begins that was given the rest: by a seek.
    await transcode(work, tmp_path / "rest", first_segment=2)
    rest = tmp_path / "rest" / quality
    parts = [rest / segment_name(index) for index in range(2, work.plan.grid.segments)]
    assert numbered.read(tools, rest / INIT, *parts) == list(range(2 * work.plan.grid.segment_frames, FRAMES))


@pytest.mark.parametrize("name", UNTIMED)
async def test_pictures_without_times_are_read_from_the_start_and_all_come_out(
    tools: Toolbox, tmp_path: Path, options: PlanOptions, name: str
) -> None:
    source = tmp_path / name
    numbered.make(tools, source, *UNTIMED[name], frames=FRAMES)
    work = await prepare(tools, source, options)
    assert work.facts.video.untimed and not work.facts.wants_remux
    assert (str(work.plan.grid.frame_rate), work.plan.grid.frames, len(work.plan.spans)) == ("25/1", FRAMES, 1)
    quality = work.plan.renditions[-1].quality
    for first in (0, 2):
        await transcode(work, tmp_path / str(first), first_segment=first)
        folder = tmp_path / str(first) / quality
        parts = [folder / segment_name(index) for index in range(first, work.plan.grid.segments)]
        assert numbered.read(tools, folder / INIT, *parts) == list(range(first * 25, FRAMES))


@pytest.mark.parametrize("first", ["early", "late"])
async def test_a_clock_that_was_set_in_the_middle_is_straightened(
    tools: Toolbox, tmp_path: Path, options: PlanOptions, first: str
) -> None:
    early, late, joined = tmp_path / "early.ts", tmp_path / "late.ts", tmp_path / "joined.ts"
    numbered.make(tools, early, *X264, *AAC, frames=50)
    numbered.make(tools, late, *X264, *AAC, "-output_ts_offset", "5000", frames=50)
    order = (early, late) if first == "early" else (late, early)
    joined.write_bytes(b"".join(part.read_bytes() for part in order))
    before = await probe(tools, joined)
    assert before.clock_jumps
    work = await prepared(tools, joined, tmp_path / "copy", options)
    assert work.facts.video.end_s == pytest.approx(4.0, abs=0.3)
    await transcode(work, tmp_path / "out")
    folder = tmp_path / "out" / work.plan.renditions[-1].quality
    seen = numbered.read(tools, folder / INIT, *sorted(folder.glob("seg_*.m4s")))
    kept = [number for place, number in enumerate(seen) if place == 0 or number != seen[place - 1]]
    assert kept == [*range(50), *range(50)]


async def test_sound_that_matroska_cannot_hold_is_kept_without_loss(tools: Toolbox, tmp_path: Path) -> None:
    source = tmp_path / "broadcast.ts"
    sound = ("-c:a", "s302m", "-strict", "-2", "-ac", "2")
    numbered.make(tools, source, "-c:v", "mpeg2video", "-q:v", "3", *sound, frames=50)
    before = await probe(tools, source)
    assert [track.codec for track in before.audio] == ["s302m"]
    copied = await remux.remux(tools, source, tmp_path, before, Limits(), stall_s=60)
    assert copied is not None
    facts = await probe(tools, copied)
    assert [track.codec for track in facts.audio] == ["flac"]
    assert facts.video.packets == 50 and facts.audio[0].end_s == pytest.approx(2.0, abs=0.1)


async def test_a_copy_waits_for_room_on_the_disk(tools: Toolbox, tmp_path: Path) -> None:
    source = tmp_path / "a.ts"
    numbered.make(tools, source, *X264, *AAC, frames=10)
    facts = (await probe(tools, source)).model_copy(update={"size_bytes": 1 << 60})
    with pytest.raises(ScratchFull):
        await remux.remux(tools, source, tmp_path, facts, Limits(), stall_s=60)


async def test_what_cannot_be_copied_leaves_nothing_and_says_so(tools: Toolbox, tmp_path: Path) -> None:
    source = tmp_path / "a.ts"
    numbered.make(tools, source, *X264, *AAC, frames=10)
    facts = await probe(tools, source)
    wrong = facts.model_copy(update={"video": facts.video.model_copy(update={"stream": 9}), "audio": ()})
    assert await remux.remux(tools, source, tmp_path, wrong, Limits(), stall_s=60) is None


async def test_good_seekers_and_short_pictures_are_not_copied(tools: Toolbox, tmp_path: Path) -> None:
    for name, codecs in {"a.mp4": (*X264, *AAC), "a.mkv": (*X264, *AAC), "a.gif": ("-c:v", "gif", "-an")}.items():
        numbered.make(tools, tmp_path / name, *codecs, frames=10)
        assert not (await probe(tools, tmp_path / name)).wants_remux


@pytest.mark.parametrize("name", ["flash.mpg", "flash.ts", "flash.flv"])
async def test_picture_and_sound_stay_together_in_the_copy(tools: Toolbox, tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    flash = "color=black:s=320x180:r=25:d=2,drawbox=t=fill:c=white:enable='gte(t,0.99)'"
    beep = "aevalsrc='sin(2*PI*1000*t)*gte(t,1)':s=48000:d=2"
    ffmpeg = str(tools.pick().ffmpeg)
    make = [ffmpeg, "-y", "-v", "error", "-f", "lavfi", "-i", flash, "-f", "lavfi", "-i", beep]
    codec = ("-c:v", "mpeg2video", "-bf", "2", "-c:a", "mp2") if name == "flash.mpg" else (*X264, *AAC)
    subprocess.run([*make, *codec, "-pix_fmt", "yuv420p", str(source)], check=True, timeout=60)
    facts = await probe(tools, source)
    copied = await remux.remux(tools, source, tmp_path, facts, Limits(), stall_s=60)
    assert copied is not None
    # Both from the moment the picture starts, as every rendition is.
    start_s = float((await probe(tools, copied)).video.start_s)
    look = ["-map", "0:v", "-vf", f"setpts=PTS-{start_s}/TB,fps=25:start_time=0,scale=1:1,format=gray"]
    hear = ["-map", "0:a", "-af", f"asetpts=PTS-{start_s}/TB,aresample=async=1:first_pts=0", "-ac", "1", "-ar", "48000"]
    read = [ffmpeg, "-v", "error", "-copyts", "-i", str(copied)]
    levels = subprocess.run([*read, *look, "-f", "rawvideo", "-"], capture_output=True, check=True, timeout=60).stdout
    heard = subprocess.run([*read, *hear, "-f", "s8", "-"], capture_output=True, check=True, timeout=60).stdout
    seen_s = next(place for place, level in enumerate(levels) if level > 128) / 25
    heard_s = next(place for place, level in enumerate(heard) if 20 < level < 236) / 48000
    assert abs(seen_s - heard_s) < 0.04
