"""Files of videos and what their rows say of them, put as a test wants them."""

from typing import Any

import pytest
from sqlalchemy import text

from contracts.errors import StorageUnavailable
from mirror.sessions import Database
from mirror.writes import CreatedVideo
from storage.local import LocalStore

HOUR, DAY = 3600.0, 86400.0
REMOVE = LocalStore.delete_prefix


async def change(database: Database, sql: str, **given: Any) -> None:
    async with database.write() as s:
        await s.execute(text(sql), given)


async def put(store: LocalStore, *keys: str) -> None:
    for key in keys:
        await store.put_bytes(key, b"bytes")


def names(store: LocalStore) -> list[str]:
    return sorted(path.relative_to(store.root).as_posix() for path in store.root.rglob("*") if path.is_file())


def nothing_goes_below(stuck: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files below a prefix be somebody else's, who does not let us remove them."""

    async def fails(self: LocalStore, prefix: str) -> None:
        if prefix.startswith(stuck):
            raise StorageUnavailable("Storage did not answer: Permission denied.")
        await REMOVE(self, prefix)

    monkeypatch.setattr(LocalStore, "delete_prefix", fails)


async def completed(database: Database, video: CreatedVideo, *, ago_s: float, output: str = "r1") -> None:
    """End a video's job as ready, some time ago, with one rendition in an output."""
    await change(
        database,
        """
        WITH done AS (
            UPDATE transcoding_jobs SET completed_at = now() - make_interval(secs => :ago), output = :output
            WHERE video_id = :video RETURNING id
        )
        INSERT INTO video_qualities (video_id, job_id, quality, width, height, bitrate, prefix, codecs, frame_rate_num,
            frame_rate_den, timescale, frame_duration, segment_frames, frames, size_bytes, peak_bandwidth,
            average_bandwidth)
        SELECT :video, id, '360p', 640, 360, 600, :prefix, 'avc1', 25, 1, 25, 1, 150, 600, 1, 1, 1 FROM done
        """,
        ago=ago_s,
        output=output,
        video=video.video_id,
        prefix=f"videos/{video.slug}/{output}/360p/",
    )
