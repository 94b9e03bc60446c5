"""Whatever is uploaded, the service goes on, says why, and touches nothing else."""

import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.e2e.service import ReadyVideo, Service
from tests.support import crafted

BAIT = "bait-segment.mp4"


def text(clip: Path, home: Path) -> bytes:
    return b"hello, this is not a video\n" * 100


def truncated(clip: Path, home: Path) -> bytes:
    whole = clip.read_bytes()
    return whole[: len(whole) // 2]


def playlist(clip: Path, home: Path) -> bytes:
    return f"#EXTM3U\n#EXT-X-TARGETDURATION:8\n#EXTINF:8,\n{home / BAIT}\n#EXT-X-ENDLIST\n".encode()


def concat(clip: Path, home: Path) -> bytes:
    return f"ffconcat version 1.0\nfile {BAIT}\n".encode()


def random_bytes(clip: Path, home: Path) -> bytes:
    return os.urandom(200_000)


def bomb(clip: Path, home: Path) -> bytes:
    return crafted.movie(samples=80_000_000)


CASES: dict[str, tuple[Callable[[Path, Path], bytes], set[str]]] = {
    "text.mp4": (text, {"SOURCE_UNREADABLE", "SOURCE_UNSUPPORTED"}),
    "truncated.mp4": (truncated, {"SOURCE_UNREADABLE"}),
    "playlist.mp4": (playlist, {"SOURCE_FORBIDDEN"}),
    "concat.mp4": (concat, {"SOURCE_FORBIDDEN"}),
    "bomb.mp4": (bomb, {"SOURCE_TOO_COMPLEX"}),
    "random.mp4": (random_bytes, {"SOURCE_UNREADABLE"}),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_bad_file_fails_with_a_sentence_and_is_kept(
    name: str, service: Service, ready_video: ReadyVideo, tmp_path: Path
) -> None:
    make, codes = CASES[name]
    bait = service.storage / "uploads" / BAIT  # right beside the upload: where a relative reference would look
    bait.write_bytes(ready_video.source.read_bytes())
    os.utime(bait, (1, 1))
    path = tmp_path / name
    path.write_bytes(make(ready_video.source, bait.parent))

    created = await service.upload(path, title=f"bad {name}")
    video = await service.ended(created["video_id"])
    assert video["status"] == "failed"
    assert video["error_code"] in codes
    assert 20 < len(video["error_message"]) <= 500
    assert str(service.home) not in video["error_message"]
    kept = service.storage / "uploads" / f"{created['video_id']}.mp4"
    assert kept.read_bytes() == path.read_bytes()
    assert bait.stat().st_atime < 100, "the bait was read"
    bait.unlink()
    assert not (service.storage / "videos" / video["slug"] / "master.m3u8").exists()


async def test_audio_only_is_refused_by_name(service: Service, tmp_path: Path, tools: object) -> None:
    import subprocess

    from media.tools import Toolbox

    assert isinstance(tools, Toolbox)
    path = tmp_path / "song.m4a"
    sound = ["-f", "lavfi", "-i", "sine=f=440:d=2", "-c:a", "aac"]
    subprocess.run([tools.pick().ffmpeg, "-v", "error", *sound, str(path)], check=True, timeout=30)
    created = await service.upload(path, title="song")
    video = await service.ended(created["video_id"])
    assert (video["status"], video["error_code"]) == ("failed", "SOURCE_UNSUPPORTED")
    assert "picture" in video["error_message"] or "video" in video["error_message"]


async def test_bad_requests_are_4xx_with_a_code(service: Service, clip: Path) -> None:
    async with httpx.AsyncClient(timeout=30) as http:
        empty = await http.put(f"{service.url}/api/videos?filename=a.mp4&title=x", content=b"")
        assert (empty.status_code, empty.json()["error"]) == (400, "SOURCE_EMPTY")
        for title in ("t" * 10_000, "bell\x07"):
            answer = await http.post(
                f"{service.url}/api/videos", files={"file": ("a.mp4", clip.read_bytes())}, data={"title": title}
            )
            assert 400 <= answer.status_code < 500
            assert answer.json()["error"].isupper()
        climbing = await http.post(
            f"{service.url}/api/videos",
            files={"file": ("../../../../etc/passwd.mp4", clip.read_bytes())},
            data={"title": "climber"},
        )
        assert climbing.status_code == 201
    video = await service.ended(climbing.json()["video_id"])
    assert video["status"] == "ready"
    assert {path.name for path in service.storage.iterdir()} <= {"remuxed", "scratch", "uploads", "videos"}
