"""The test by which a worker knows itself: the real path, on an ffmpeg that works and on some that do not."""

from pathlib import Path

import pytest

from contracts.errors import SourceUnreadable, VlogError
from media.self_test import self_test
from media.tools import Toolbox, find_tools

# What each of these does when it is asked to encode; it always knows its name.
BROKEN = {
    "fails": "exit 1",
    "says yes and makes nothing": "exit 0",
    "is killed": "kill -9 $$",
    "makes half of it": 'for w do shift; [ "$p" = -frames:v ] && w=5; p=$w; set -- "$@" "$w"; done',
}


async def test_every_ffmpeg_of_this_machine_passes(tools: Toolbox, tmp_path: Path) -> None:
    for number, tool in enumerate(tools.tools):
        here = tmp_path / str(number)
        here.mkdir()
        await self_test(tools, here, build=tool.build)
        assert list(here.rglob("seg_00000.m4s"))


@pytest.mark.parametrize("how", BROKEN)
async def test_an_ffmpeg_that_is_broken_does_not(tools: Toolbox, tmp_path: Path, how: str) -> None:
    real = tools.pick()
    script = f'#!/bin/sh\ncase " $* " in *" libx264 "*) {BROKEN[how]} ;; esac\nexec "{{ffmpeg}}" "$@"\n'
    (tmp_path / "ffmpeg").write_text(script.replace("{ffmpeg}", str(real.ffmpeg)))
    (tmp_path / "ffmpeg").chmod(0o755)
    (tmp_path / "ffprobe").symlink_to(real.ffprobe)
    broken = await find_tools(str(tmp_path / "ffmpeg"))
    with pytest.raises(VlogError):
        await self_test(broken, tmp_path, build=broken.tools[0].build)


async def test_nor_does_a_machine_whose_ffprobe_is_broken(tools: Toolbox, tmp_path: Path) -> None:
    real = tools.pick()
    (tmp_path / "ffmpeg").symlink_to(real.ffmpeg)
    (tmp_path / "ffprobe").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ffprobe").chmod(0o755)
    broken = await find_tools(str(tmp_path / "ffmpeg"))
    with pytest.raises(SourceUnreadable):
        await self_test(broken, tmp_path)
