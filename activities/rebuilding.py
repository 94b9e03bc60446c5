"""The mirror of one job, written anew from what Temporal and storage know."""

import re
from dataclasses import replace

from temporalio.client import Client

from activities.chores.knowing import known_workflow
from activities.history import HistoryReader
from contracts.end_steps import Publish
from contracts.layout import PLAYLIST
from mirror.locking import lock_job
from mirror.rebuilding import JobStory, rebuild_job
from mirror.sessions import Database
from storage.store import Store

_WORKFLOW = re.compile(r"video-(\d+)-job-(\d+)")


class MirrorRebuild:
    def __init__(self, database: Database, temporal: Client, store: Store, reader: HistoryReader) -> None:
        self._database, self._temporal, self._store, self._reader = database, temporal, store, reader

    async def rebuild(self, workflow_id: str) -> bool:
        """Rebuild the rows of a workflow's job; False when Temporal does not know it.

        Safe to repeat: the same story gives the same rows. Beside steps that run and tell: the job is locked before
        Temporal is asked, so what they tell meanwhile comes after, and is newer.
        """
        match = _WORKFLOW.fullmatch(workflow_id)
        if match is None:
            raise ValueError(f"{workflow_id} is not the workflow of a job.")
        async with self._database.write() as session:
            await lock_job(session, int(match.group(2)))
            story = await self.story(workflow_id)
            if story is None:
                return False
            await rebuild_job(session, story)
        return True

    async def story(self, workflow_id: str) -> JobStory | None:
        """Tell a job's story, with the renditions that are still stored; None when Temporal does not know it."""
        known = await known_workflow(self._temporal, workflow_id)
        if known is None:
            return None
        story = await self._reader.story(workflow_id, known)
        return replace(story, published=await self._still_stored(story.published)) if story.published else story

    async def workflow_of(self, job_id: int) -> str | None:
        """Find the workflow of a job whose row is gone: its id ends with the job's number."""
        async for run in self._temporal.list_workflows("WorkflowType = 'TranscodeVideo'"):
            if run.id.endswith(f"-job-{job_id}"):
                return run.id
        return None

    async def all_workflows(self) -> list[str]:
        """Name every job's workflow that Temporal knows, the oldest job first."""
        found = {run.id async for run in self._temporal.list_workflows("WorkflowType = 'TranscodeVideo'")}
        jobs = {name: int(match.group(2)) for name in found if (match := _WORKFLOW.fullmatch(name))}
        return sorted(jobs, key=jobs.__getitem__)

    async def _still_stored(self, wanted: Publish) -> Publish | None:
        """Leave out renditions whose files are gone: replaced and removed since, or purged."""

        async def there(prefix: str) -> bool:
            return await self._store.stat(prefix + PLAYLIST) is not None

        video = [each for each in wanted.renditions.video if await there(each.prefix)]
        audio = [each for each in wanted.renditions.audio if await there(each.prefix)]
        if not video:
            return None
        whole = wanted.renditions.model_copy(update={"video": tuple(video), "audio": tuple(audio)})
        return wanted.model_copy(update={"renditions": whole})
