"""What pages that stay open see: the pictures of videos and workers, kept fresh by one connection that listens."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

from api.event_stream import event
from api.schemas import Progress
from api.schemas_events import WorkerNews
from api.signed_in import SignedOut
from api.streams import Hub, Picture
from contracts.states import JobState
from mirror import reads, reads_workers
from mirror.events import TOPIC_COMPLETE, TOPIC_PROGRESS, TOPIC_SIGNED_OUT, TOPIC_WORKERS
from mirror.listening import Listener
from mirror.sessions import Database

ENDED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class Live:
    """Everything that is watched through this process, and the one connection by which it hears of changes."""

    def __init__(self, database: Database, signed_out: SignedOut) -> None:
        self._database, self._signed_out = database, signed_out
        self._listener = Listener(database.url, self._heard, self._look_anew)
        self.videos: Hub[int] = Hub(self._read_videos, _video_gone, lambda: self._listener.is_connected)
        self.workers: Hub[str] = Hub(self._read_workers, _worker_gone, lambda: self._listener.is_connected)

    def close(self) -> None:
        self.videos.close()
        self.workers.close()

    def sign_out(self, session_id: str) -> None:
        """End what this session watches; what it would open next is refused."""
        self._signed_out.add(session_id)
        self.videos.end(session_id)
        self.workers.end(session_id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self._listener.run(), name="listener"),
            asyncio.create_task(self.videos.run(), name="video streams"),
            asyncio.create_task(self.workers.run(), name="worker streams"),
        ]
        try:
            yield
        finally:
            self.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _heard(self, topic: str, about: int | str) -> None:
        if topic == TOPIC_WORKERS:
            self.workers.changed(str(about))
        elif topic == TOPIC_SIGNED_OUT:
            self.sign_out(str(about))
        elif topic in (TOPIC_PROGRESS, TOPIC_COMPLETE) and isinstance(about, int):
            self.videos.changed(about)

    def _look_anew(self) -> None:
        self.videos.look_anew()
        self.workers.look_anew()

    async def _read_videos(self, video_ids: Collection[int] | None) -> Mapping[int, Picture]:
        async with self._database.read() as session:
            views = await reads.progress_of(session, list(video_ids or ()))
        return {view.video_id: _video_picture(Progress.model_validate(view)) for view in views}

    async def _read_workers(self, worker_ids: Collection[str] | None) -> Mapping[str, Picture]:
        async with self._database.read() as session:
            views = await reads_workers.statuses(session, None if worker_ids is None else list(worker_ids))
        return {view.worker_id: Picture(event(TOPIC_WORKERS, WorkerNews.model_validate(view))) for view in views}


def _video_picture(shown: Progress) -> Picture:
    frame = event(f"{TOPIC_PROGRESS}:{shown.video_id}", shown)
    if shown.state not in ENDED:
        return Picture(frame)
    return Picture(frame, shown.job_id, event(f"{TOPIC_COMPLETE}:{shown.video_id}", shown))


def _video_gone(video_id: int) -> bytes:
    return event(f"video_deleted:{video_id}", {"video_id": video_id})


def _worker_gone(worker_id: str) -> bytes:
    return event("worker_removed", {"worker_id": worker_id})
