"""What a killed run left half-written is cleared, and nothing else."""

from pathlib import Path

import pytest

from runtime.leftovers import clear_unfinished
from runtime.settings import Settings
from runtime.stack import Stack


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("scratch/transcode.x/720p/seg.m4s", "scratch/.hidden", "uploads/.12.mp4.abc", "uploads/12.mp4"):
        path = tmp_path / "storage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return tmp_path


def kept(home: Path) -> set[str]:
    return {path.relative_to(home / "storage").as_posix() for path in (home / "storage").rglob("*") if path.is_file()}


def test_scratch_and_half_uploads_go_and_uploads_stay(home: Path) -> None:
    outside = home / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (home / "storage/scratch/link").symlink_to(outside)
    assert clear_unfinished(home / "storage") == 4
    assert kept(home) == {"uploads/12.mp4"} and (outside / "file").exists()
    assert clear_unfinished(home / "never made") == 0


async def test_only_a_service_that_is_embedded_throughout_clears(home: Path) -> None:
    shared = (
        {"storage_url": (home / "storage").as_uri()},
        {"temporal_address": "t.example:7233"},
        {"database_url": "postgres://db.example/x"},
    )
    for named in shared:
        await Stack(Settings(home=home, **named))._tidy()  # type: ignore[arg-type]
        assert len(kept(home)) == 4
    await Stack(Settings(home=home))._tidy()
    assert kept(home) == {"uploads/12.mp4"}
