"""Thumbnails that show something, and storyboards that show the right moment."""

import re
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.pictures import PictureSteps
from contracts.errors import OutputIncomplete, SourceUnreadable
from contracts.ids import ObjectKey
from contracts.layout import STORYBOARD, THUMBNAIL, sheet_name
from contracts.steps import MadeStoryboard, MadeThumbnail, MakeStoryboard
from media import encoder, thumbnails
from media.pictures import Gray, Look, look_at
from media.planning import PlanOptions
from media.tools import Toolbox
from storage.local import LocalStore
from tests.support.clips import X264, Clips
from tests.support.encoding import IDS, PREFIX, Work, prepare
from tests.support.wrapping import wrapped

KEY = ObjectKey("uploads/1")
CUE = re.compile(r"--> (\d+):(\d\d):(\d\d\.\d{3})\n(\S+)#xywh=(\d+),(\d+),(\d+),(\d+)")
# Brightness tells the second: 20 levels apart, so that compression cannot confuse two of them.
SECONDS = "geq=lum='40+20*mod(floor(T),10)':cb=128:cr=128"


async def pictured(
    tools: Toolbox, source: Path, folder: Path, options: PlanOptions
) -> tuple[Work, MadeThumbnail, Path]:
    """Run the thumbnail step; return what was stored."""
    work = await prepare(tools, source, options)
    store = LocalStore(folder)
    await store.put_file(KEY, source)
    request = work.thumbnail().model_copy(update={"ffmpeg": work.plan.ffmpeg})
    made = await ActivityEnvironment().run(PictureSteps(store, tools).thumbnail, request)
    return work, made, store.path(PREFIX + THUMBNAIL)


async def boarded(
    tools: Toolbox, source: Path, folder: Path, options: PlanOptions
) -> tuple[Work, MadeStoryboard, Path]:
    """Run the storyboard step; return the folder of what was stored."""
    work = await prepare(tools, source, options)
    store = LocalStore(folder)
    await store.put_file(KEY, source)
    made = await ActivityEnvironment().run(PictureSteps(store, tools).storyboard, storyboard_of(work))
    return work, made, store.path(PREFIX + STORYBOARD).parent


def storyboard_of(work: Work) -> MakeStoryboard:
    video, encoding, seconds = work.facts.video, work.plan.encoding, work.plan.grid.duration_s
    return MakeStoryboard(
        **IDS, slug="clip", video=video, encoding=encoding, duration_s=seconds, ffmpeg=work.plan.ffmpeg
    )


async def gray(tools: Toolbox, picture: Path) -> Gray:
    """Decode a picture to its brightness, 0 to 255."""
    argv = [str(tools.pick(encoders=()).ffmpeg), "-v", "error", "-i", str(picture)]
    tail = ["-vf", "scale=in_range=full:out_range=full,format=gray", "-f", "rawvideo", "pipe:1"]
    pixels = await encoder.output_of([*argv, *tail], timeout_s=20)
    probe = [str(tools.ffprobe), "-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", str(picture)]
    width, height = (await encoder.output_of(probe, timeout_s=20)).decode().strip().split(",")[:2]
    return Gray(int(width), int(height), pixels)


async def tiles(tools: Toolbox, folder: Path) -> list[tuple[float, Gray]]:
    """Read a storyboard as a player does: when each cue ends, and what it shows."""
    sheets: dict[str, Gray] = {}
    found = []
    for hours, minutes, seconds, name, *where in CUE.findall((folder / STORYBOARD).read_text()):
        if name not in sheets:
            sheets[name] = await gray(tools, folder / name)
        sheet = sheets[name]
        x, y, width, height = map(int, where)
        assert x + width <= sheet.width and y + height <= sheet.height
        starts = range(y * sheet.width + x, (y + height) * sheet.width, sheet.width)
        pixels = b"".join(sheet.pixels[start : start + width] for start in starts)
        found.append((int(hours) * 3600 + int(minutes) * 60 + float(seconds), Gray(width, height, pixels)))
    return found


def second_of(tile: Gray) -> int:
    """Read the second that SECONDS wrote; video's 16 to 235 comes out as 0 to 255."""
    return round((look_at(tile).brightness * 219 / 255 + 16 - 40) / 20)


async def seconds_shown(tools: Toolbox, folder: Path) -> list[int]:
    return [second_of(tile) for _, tile in await tiles(tools, folder)]


def coded(clips: Clips, to: Path, seconds: float, *options: str, size: str = "160x90", rate: int = 10) -> Path:
    pattern = f"color=black:s={size}:r={rate}:d={seconds},format=yuv420p,{SECONDS}"
    clips.ffmpeg("-f", "lavfi", "-i", pattern, *X264, "-x264-params", "scenecut=0", *options, to)
    return to


# --- the thumbnail --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["land.mp4", "dark_opening.mp4", "hdr10.mp4", "anim.gif", "oneframe.mp4", "rot90.mp4", "ntsc.ts", "interlaced.mp4"],
)
async def test_a_thumbnail_shows_something(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, name: str
) -> None:
    work, _, stored = await pictured(tools, clips.get(name), tmp_path / "store", options)
    assert stored.read_bytes()[:2] == b"\xff\xd8"
    picture = await gray(tools, stored)
    shown = work.facts.video
    assert picture.width == min(640, shown.display_width)
    assert picture.height == pytest.approx(picture.width * shown.display_height / shown.display_width, abs=2)
    assert look_at(picture).brightness > 40


async def test_a_video_that_is_black_throughout_still_gets_a_thumbnail(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    _, _, stored = await pictured(tools, clips.get("black.mp4"), tmp_path / "store", options)
    assert stored.stat().st_size > 0


async def test_black_and_blurred_places_are_passed_over(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    ugly = tmp_path / "ugly.mp4"
    # Black up to 3 s, blurred up to 7 and from 8 on: of the candidates at 1, 2.5, 5, 7.5 and 9 s one is good.
    looks = "drawbox=t=fill:c=black:enable='lt(t,3)',gblur=sigma=12:enable='between(t,3,7)+gte(t,8)'"
    source = ["-f", "lavfi", "-i", "testsrc2=s=640x360:r=10:d=10"]
    clips.ffmpeg(*source, "-vf", looks, "-g", "5", *X264, ugly)
    _, made, stored = await pictured(tools, ugly, tmp_path / "store", options)
    assert made.at_s == 7.5
    good = look_at(await gray(tools, stored))
    assert good.shows_something and good.edges > 2 * (await _blurred(tools, clips, tmp_path)).edges


async def _blurred(tools: Toolbox, clips: Clips, folder: Path) -> Look:
    source = ["-f", "lavfi", "-i", "testsrc2=s=640x360:r=10:d=1", "-vf", "gblur=sigma=12"]
    clips.ffmpeg(*source, "-frames:v", "1", "-update", "1", folder / "blurred.jpg")
    return look_at(await gray(tools, folder / "blurred.jpg"))


async def test_a_clip_whose_only_keyframe_is_black_is_looked_into(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    fading = tmp_path / "fading.mp4"
    source = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=30:d=3", "-vf", "fade=in:st=0.4:d=0.6"]
    clips.ffmpeg(*source, *X264, "-g", "999", "-x264-params", "scenecut=0", fading)
    work, made, stored = await pictured(tools, fading, tmp_path / "store", options)
    assert work.facts.video.keyframe_gap_s > 2.9
    assert made.at_s > 0.5 and look_at(await gray(tools, stored)).shows_something


async def test_places_that_take_too_long_to_reach_leave_the_first_picture(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in hours of a source that cannot seek: it is read from its start up to each of them."""
    slow = wrapped(
        tools.pick(encoders=("mjpeg",)),
        tmp_path / "slow",
        'case " $* " in *" -ss "*) exec sleep 60 ;; esac\nexec "$real" "$@"',
    )
    monkeypatch.setattr(thumbnails, "TIME_LIMIT_S", 1.0)
    work = await prepare(tools, clips.get("land.mp4"), options)
    taken = await thumbnails.take_thumbnail(slow, clips.get("land.mp4"), tmp_path, work.thumbnail())
    assert taken.at_s == 0.0 and taken.look.shows_something


# --- the storyboard -------------------------------------------------------------------------------------------------


async def test_each_tile_shows_its_second(tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions) -> None:
    source = coded(clips, tmp_path / "coded.mp4", 9.5, "-g", "10")
    work, made, folder = await boarded(tools, source, tmp_path / "store 100%d", options)
    assert made == MadeStoryboard(sheets=1, tiles=10, interval_s=1)
    assert await seconds_shown(tools, folder) == list(range(10))
    ends = [end for end, _ in await tiles(tools, folder)]
    assert ends == [*map(float, range(1, 10)), pytest.approx(work.plan.grid.duration_s, abs=0.001)]


async def test_the_first_second_is_the_picture_s_own_wherever_its_clock_begins(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    source = coded(clips, tmp_path / "coded.mp4", 6, "-g", "10", "-bf", "2")
    for name in ("late.mkv", "late.ts"):
        late = tmp_path / name
        clips.ffmpeg("-i", source, "-c", "copy", "-output_ts_offset", "13.7", late)
        _, _, folder = await boarded(tools, late, tmp_path / f"store-{name}", options)
        assert await seconds_shown(tools, folder) == list(range(6)), name


async def test_sparse_keyframes_repeat_and_stay_on_time(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    source = coded(clips, tmp_path / "sparse.mp4", 10, "-g", "40")
    _, _, folder = await boarded(tools, source, tmp_path / "store", options)
    assert await seconds_shown(tools, folder) == [0, 0, 0, 0, 4, 4, 4, 4, 8, 8]


async def test_one_keyframe_for_a_long_time_makes_it_decode_the_others(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    source = coded(clips, tmp_path / "single.mp4", 20, "-g", "9999")
    work, _, folder = await boarded(tools, source, tmp_path / "store", options)
    assert work.facts.video.keyframe_gap_s > 19
    assert await seconds_shown(tools, folder) == [*range(10), *range(10)]


async def test_a_longer_video_fills_several_sheets(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    source = coded(clips, tmp_path / "long.mp4", 118, "-g", "5", size="64x36", rate=5)
    _, made, folder = await boarded(tools, source, tmp_path / "store", options)
    assert (made.sheets, made.tiles) == (2, 118)
    assert await seconds_shown(tools, folder) == [second % 10 for second in range(118)]


@pytest.mark.parametrize("name", ["oneframe.mp4", "short.mp4", "portrait.mp4", "rot90.mp4", "anim.gif", "hdr10.mp4"])
async def test_odd_videos_have_a_storyboard_too(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, name: str
) -> None:
    work, made, folder = await boarded(tools, clips.get(name), tmp_path / "store", options)
    shown = await tiles(tools, folder)
    seconds = work.plan.grid.duration_s
    assert made.tiles == len(shown) == max(1, -(-seconds // 1))
    assert shown[-1][0] == pytest.approx(seconds, abs=0.001)
    for _, tile in shown:
        assert tile.width == 160
        shape = work.facts.video.display_height / work.facts.video.display_width
        assert tile.height == pytest.approx(160 * shape, abs=1)
        assert look_at(tile).shows_something


async def test_a_storyboard_is_replaced_whole_and_its_cues_come_last(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    work = await prepare(tools, clips.get("short.mp4"), options)
    store = LocalStore(tmp_path / "store")
    await store.put_file(KEY, work.source)
    for index in (0, 1, 2):
        await store.put_bytes(PREFIX + sheet_name(index), b"of an earlier, longer one")
    order: list[str] = []

    class Watched(LocalStore):
        async def put_file(self, key: str, path: Path, *, create_only: bool = False) -> bool:
            order.append(key)
            return await super().put_file(key, path, create_only=create_only)

        async def put_bytes(self, key: str, data: bytes, *, create_only: bool = False) -> bool:
            order.append(key)
            return await super().put_bytes(key, data, create_only=create_only)

    for _ in range(2):
        await ActivityEnvironment().run(PictureSteps(Watched(store.root), tools).storyboard, storyboard_of(work))
    assert order == [PREFIX + sheet_name(0), PREFIX + STORYBOARD] * 2
    left = {facts.key for facts in await store.list(PREFIX)}
    assert left == {PREFIX + sheet_name(0), PREFIX + STORYBOARD}


async def test_nothing_is_stored_of_a_source_without_pictures(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    work = await prepare(tools, clips.get("short.mp4"), options)
    store = LocalStore(tmp_path / "store")
    # The container is whole; what was in its packets is gone.
    broken = tmp_path / "broken.mp4"
    clips.ffmpeg("-i", work.source, "-c", "copy", "-bsf:v", "noise=amount=1", broken)
    await store.put_file(KEY, broken)
    steps = PictureSteps(store, tools)
    with pytest.raises((OutputIncomplete, SourceUnreadable)):
        await ActivityEnvironment().run(steps.storyboard, storyboard_of(work))
    with pytest.raises(OutputIncomplete):
        await ActivityEnvironment().run(steps.thumbnail, work.thumbnail())
    assert await store.list(PREFIX) == []
