"""One service for all end-to-end tests, and one video that has been through it."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from media.tools import Toolbox, find_tools
from tests.e2e.service import OFTEN_KEPT, QUICK, ReadyVideo, Service

SECONDS, RATE = 8, 30

DASHBOARD = """
    SELECT v.status, j.progress_percent, j.current_step
    FROM transcoding_jobs j JOIN videos v ON v.id = j.video_id WHERE v.id = $1
"""


@pytest.fixture(scope="session")
def tools() -> Toolbox:
    return asyncio.run(find_tools())


@pytest.fixture(scope="session")
def clip(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A moving picture with sound, 720p, eight seconds, keyframes where the encoder liked them."""
    path = tmp_path_factory.mktemp("clips") / "clip.mp4"
    make_clip(tools, path, seconds=SECONDS, size="1280x720")
    return path


def make_clip(tools: Toolbox, path: Path, *, seconds: float, size: str, rate: int = RATE) -> None:
    source = f"testsrc2=s={size}:r={rate}:d={seconds}"
    sound = f"sine=f=440:r=48000:d={seconds}"
    encode = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"]
    inputs = ["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", sound]
    subprocess.run(
        [str(tools.pick().ffmpeg), "-y", "-v", "error", *inputs, *encode, str(path)],
        check=True,
        timeout=60 + seconds,  # ten minutes of pictures take their time on a busy machine
    )


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("service") / "home")
    running.start()
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0
    assert left == []


# An encoder that reads its source at twice the speed it plays: what must happen meanwhile can, on any machine.
# What a file `broken` beside it names, it refuses to make.
SLOW = """#!/bin/sh
if [ -e "{folder}/broken" ]; then
    word=$(cat "{folder}/broken")
    case " $* " in
    *"$word"*) echo "Unrecognized option 'broken'." >&2; exit 1 ;;
    esac
fi
case " $* " in
*" libx264 "*)
    for word do
        shift
        [ "$word" = -i ] && set -- "$@" -readrate 2
        set -- "$@" "$word"
    done
    ;;
esac
exec "{ffmpeg}" "$@"
"""


def paced(tools: Toolbox, folder: Path) -> Path:
    """Put such an encoder into a folder."""
    tool = tools.pick()
    (folder / "ffmpeg").write_text(SLOW.format(ffmpeg=tool.ffmpeg, folder=folder))
    (folder / "ffmpeg").chmod(0o755)
    (folder / "ffprobe").symlink_to(tool.ffprobe)
    return folder / "ffmpeg"


@pytest.fixture(scope="session")
def slow_service(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose encoders are paced, for tests in which something happens in the middle of an encode."""
    folder = tmp_path_factory.mktemp("slow")
    running = Service(folder / "home", QUICK | OFTEN_KEPT | {"VLOG_FFMPEG": str(paced(tools, folder))})
    running.start()
    try:
        yield running
    finally:
        code = running.stop()
        left = running.processes()
    assert code == 0
    assert left == []


@pytest.fixture(scope="session")
def ready_video(service: Service, clip: Path) -> ReadyVideo:
    async def make() -> ReadyVideo:
        created = await service.upload(clip, title="A clip", owner="ann", tier="creator")
        seen: list[tuple[str, int, str | None]] = []
        while not seen or seen[-1][0] not in ("ready", "failed"):
            rows = await service.query(DASHBOARD, created["video_id"])
            row = (rows[0]["status"], rows[0]["progress_percent"], rows[0]["current_step"])
            if not seen or seen[-1] != row:
                seen.append(row)
            await asyncio.sleep(0.05)
        video = await service.ended(created["video_id"])
        assert video["status"] == "ready", video
        master = service.storage / "videos" / video["slug"] / "master.m3u8"
        return ReadyVideo(video, clip, master, SECONDS, SECONDS * RATE, tuple(seen))

    return asyncio.run(make())
