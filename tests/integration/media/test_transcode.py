"""From a clip to checked segments: counts, grid, resume, sudden death."""

import shutil
from contextlib import aclosing
from pathlib import Path

import pytest

from contracts.layout import INIT, segment_index, segment_name
from media import commands, encoder
from media.boxes import read_init
from media.planning import PlanOptions
from media.tools import Toolbox
from media.verify import check_video_segment
from tests.support.clips import Clips, decoded_frames, packets
from tests.support.encoding import checked, prepare, transcode

CONSTANT = (
    "film24.mp4 pal25.mp4 ntsc.mp4 land.mp4 ntsc60.mp4 ntsc.mkv ntsc_start.mkv ntsc.ts anim.gif vp9.webm short.mp4 "
    "oneframe.mp4"
).split()


@pytest.mark.parametrize("name", CONSTANT)
async def test_every_picture_of_a_constant_rate_source_comes_out_once(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, name: str
) -> None:
    source = clips.get(name)
    work = await prepare(tools, source, options)
    await transcode(work, tmp_path)
    assert work.plan.grid.frames == packets(tools, source)
    for rung in work.plan.renditions:
        segments = checked(work, tmp_path / rung.quality)
        assert sum(segment.samples for segment in segments) == packets(tools, source)
    smallest = tmp_path / work.plan.renditions[-1].quality
    parts = [smallest / INIT, *sorted(smallest.glob("seg_*.m4s"))]
    assert decoded_frames(tools, *parts) == packets(tools, source)


@pytest.mark.parametrize("name", ["vfr.mp4", "fast120.mp4", "ntsc_edited.mp4", "interlaced.mp4"])
async def test_the_planned_count_comes_out_of_any_other_source(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, name: str
) -> None:
    work = await prepare(tools, clips.get(name), options)
    await transcode(work, tmp_path)
    for rung in work.plan.renditions:
        segments = checked(work, tmp_path / rung.quality)
        assert sum(segment.samples for segment in segments) == work.plan.grid.frames


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("portrait.mp4", (360, 640)),
        ("rot90.mp4", (360, 640)),
        ("odd444.mp4", (640, 360)),
        ("anamorphic.mp4", (654, 360)),
        ("ten_bit.mp4", (640, 360)),
        ("av1.mp4", (640, 360)),
        ("hdr10.mp4", (640, 360)),
        ("tiny.mp4", (200, 100)),
    ],
)
async def test_odd_sources_become_upright_square_pixels(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, name: str, size: tuple[int, int]
) -> None:
    work = await prepare(tools, clips.get(name), options)
    await transcode(work, tmp_path)
    largest = tmp_path / work.plan.renditions[0].quality
    checked(work, largest)
    init = read_init((largest / INIT).read_bytes())
    assert (init.width, init.height) == size


async def test_names_that_mean_something_to_ffmpeg_do_no_harm(
    tools: Toolbox, clips: Clips, odd_folder: Path, options: PlanOptions
) -> None:
    source = odd_folder / "-i %05d.mp4"
    shutil.copy(clips.get("short.mp4"), source)
    work = await prepare(tools, source, options)
    await transcode(work, odd_folder / "out")
    for rung in work.plan.renditions:
        checked(work, odd_folder / "out" / rung.quality)


@pytest.mark.parametrize("name", ["long.mp4", "ntsc_start.mkv", "ntsc.ts"])
async def test_a_resumed_span_continues_where_it_stopped(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, name: str
) -> None:
    work = await prepare(tools, clips.get(name), options)
    begin = work.plan.grid.segments - 1
    await transcode(work, tmp_path / "whole")
    await transcode(work, tmp_path / "resumed", first_segment=begin)
    for rung in work.plan.renditions:
        whole, resumed = tmp_path / "whole" / rung.quality, tmp_path / "resumed" / rung.quality
        assert (whole / INIT).read_bytes() == (resumed / INIT).read_bytes()
        assert not (resumed / segment_name(begin - 1)).exists()
        before = checked(work, whole)[begin - 1]
        after = checked(work, resumed, first_segment=begin)
        assert after[0].tfdt == before.tfdt + before.duration
        # Joined, the two are one video.
        parts = [whole / INIT, *(whole / segment_name(index) for index in range(begin))]
        parts += [resumed / segment_name(index) for index in range(begin, work.plan.grid.segments)]
        assert decoded_frames(tools, *parts) == work.plan.grid.frames


async def test_two_encodes_with_one_thread_each_are_the_same_to_the_byte(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    work = await prepare(tools, clips.get("short.mp4"), options)
    for name in ("one", "two"):
        await transcode(work, tmp_path / name, alone=False)
    for path in (tmp_path / "one").glob("*/*.m*"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


async def test_sudden_death_leaves_only_whole_segments(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    work = await prepare(tools, clips.get("long.mp4"), options)
    argv = commands.transcode(work.tool, work.source, tmp_path, work.span(), first_segment=0)
    lowest = tmp_path / work.plan.renditions[-1].quality
    # A slow source, so that there is time to kill it between two segments.
    argv.insert(argv.index("-i"), "-re")
    async with aclosing(encoder.run(argv, stall_s=30)) as reports:
        async for _ in reports:
            if (lowest / segment_name(1)).exists():
                break
    for rung in work.plan.renditions:
        folder = tmp_path / rung.quality
        init = read_init((folder / INIT).read_bytes())
        found = sorted(index for path in folder.iterdir() if (index := segment_index(path.name)) is not None)
        assert found == list(range(len(found))) and len(found) < work.plan.grid.segments
        assert init.width == rung.width
        for index in found:
            check_video_segment(folder / segment_name(index), init, work.plan.grid, index)
