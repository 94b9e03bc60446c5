"""ffmpeg is really made to fail, in each way that can be had here; what it says must be understood."""

from pathlib import Path

import pytest

from contracts.errors import EncoderKilled, FailureKind, VlogError
from media import encoder
from media.probe import probe
from media.tools import Toolbox, find_tools
from tests.support.clips import Clips

OUT = ["-c:v", "libx264", "-preset", "ultrafast", "-f", "mp4", "-y"]


async def _fails(tools: Toolbox, *words: str, shell: str = "") -> str:
    ffmpeg = str(tools.pick().ffmpeg)
    argv = [ffmpeg, "-hide_banner", "-nostdin", "-v", "warning", *words]
    if shell:
        argv = ["/bin/sh", "-c", shell + ' "$0" "$@"', *argv]
    with pytest.raises(VlogError) as failed:
        await encoder.output_of(argv, timeout_s=60)
    return failed.value.code


@pytest.fixture
def land(clips: Clips) -> str:
    return f"file:{clips.get('land.mp4')}"


async def test_a_source_that_is_none(tools: Toolbox, land: str, tmp_path: Path) -> None:
    noise, cut, gone = (tmp_path / name for name in ("noise.mp4", "cut.mp4", "gone.mp4"))
    noise.write_bytes(b"hello" * 1000)
    whole = Path(land.removeprefix("file:")).read_bytes()
    cut.write_bytes(whole[: whole.index(b"moov")])  # ends before its index
    out = str(tmp_path / "o.mp4")
    assert await _fails(tools, "-i", f"file:{noise}", *OUT, out) == "SOURCE_UNREADABLE"
    assert await _fails(tools, "-i", f"file:{cut}", *OUT, out) == "SOURCE_UNREADABLE"
    assert await _fails(tools, "-i", f"file:{gone}", *OUT, out) == "STORAGE_UNAVAILABLE"


async def test_a_source_whose_pictures_are_noise(tools: Toolbox, land: str, tmp_path: Path) -> None:
    whole = Path(land.removeprefix("file:")).read_bytes()
    start, end = whole.index(b"mdat") + 4, whole.index(b"moov") - 4
    assert start < end, "the clip's index comes first"
    noise = bytes((n * 7 + 13) % 251 for n in range(end - start))
    (tmp_path / "bad.mp4").write_bytes(whole[:start] + noise + whole[end:])
    out = str(tmp_path / "o.mp4")
    assert await _fails(tools, "-i", f"file:{tmp_path}/bad.mp4", "-map", "0:v:0", *OUT, out) == "SOURCE_UNREADABLE"


@pytest.mark.parametrize(
    "wrong", [["-nope", "1"], ["-c:v", "libnope"], ["-vf", "nope"], ["-preset", "nope"], ["-f", "nope"], ["-s", "1x1"]]
)
async def test_a_command_that_cannot_be(tools: Toolbox, land: str, tmp_path: Path, wrong: list[str]) -> None:
    assert await _fails(tools, "-i", land, *OUT, *wrong, str(tmp_path / "o.mp4")) == "ENCODER_REJECTED"


async def test_a_disk_that_is_full(tools: Toolbox, land: str) -> None:
    assert await _fails(tools, "-i", land, "-f", "matroska", "-y", "/dev/full") == "SCRATCH_FULL"


async def test_an_encoder_that_is_killed(tools: Toolbox, land: str) -> None:
    slow = ["-re", "-i", land, "-f", "null", "-"]
    code = await _fails(tools, *slow, shell='"$0" "$@" & sleep 0.3; kill -9 $!; wait $!; kill -9 $$;')
    assert code == "ENCODER_CRASHED"


async def test_a_probe_that_the_system_kills_says_nothing_of_the_file(
    tools: Toolbox, clips: Clips, tmp_path: Path
) -> None:
    """Short of memory the kernel kills whom it likes: a healthy video must not be refused for good."""
    tool = tools.pick()
    (tmp_path / "ffmpeg").symlink_to(tool.ffmpeg)
    (tmp_path / "ffprobe").write_text(
        f'#!/bin/sh\ncase " $* " in *" -show_format "*) kill -9 $$ ;; esac\nexec "{tool.ffprobe}" "$@"\n'
    )
    (tmp_path / "ffprobe").chmod(0o755)
    with pytest.raises(EncoderKilled) as killed:
        await probe(await find_tools(str(tmp_path / "ffmpeg")), clips.get("land.mp4"))
    assert killed.value.kind is FailureKind.RETRYABLE
