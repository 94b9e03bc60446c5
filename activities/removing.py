"""What a cancelled job leaves behind goes away; what is published stays."""

from temporalio import activity

from contracts.end_steps import RemovePartial, VerifiedRenditions
from contracts.layout import video_prefix
from mirror import reads
from mirror.locking import lock_job
from mirror.sessions import Database
from mirror.states import has_ended
from storage.store import Store


class RemovalSteps:
    def __init__(self, store: Store, database: Database) -> None:
        self._store, self._database = store, database

    @activity.defn
    async def remove_partial(self, request: RemovePartial) -> None:
        """Remove the folders of this job's output that no rendition's row names.

        Safe to repeat: removing what is gone changes nothing. No other job of the video begins before this one has
        ended, and its row is held meanwhile, so that it cannot end; of a job that had ended before, cancelled while
        it was being started, nothing is removed: a retry may be at work in the same output. Rows are read first: a
        retry works beside renditions that people are watching.
        """
        async with self._database.write() as session:
            job = await lock_job(session, request.job_id)
            if job is not None and not has_ended(job):
                await self._remove(request, await reads.renditions(session, request.video_id))

    async def _remove(self, request: RemovePartial, current: VerifiedRenditions) -> None:
        named = {video.prefix for video in current.video} | {audio.prefix for audio in current.audio}
        named |= {text.prefix for text in current.subtitles}
        output = f"{video_prefix(request.slug)}{request.output}/"
        folders = {
            f"{output}{rest.partition('/')[0]}/"
            for facts in await self._store.list(output)
            if "/" in (rest := facts.key.removeprefix(output))
        }
        for folder in sorted(folders - named):
            await self._store.delete_prefix(folder)
        if not folders & named:
            await self._store.delete_prefix(output)
