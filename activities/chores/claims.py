"""Claims that ran out, shown as such. Temporal has long decided; the mirror is told."""

from temporalio import activity
from temporalio.client import Client

from activities.chores.knowing import KnownWorkflow, known_workflow
from contracts.housekeeping import ChoreDone, KeepHouse
from contracts.ids import activity_id
from mirror.chores_claims import expired_claims, release_claims
from mirror.sessions import Database

AT_ONCE = 50


class ClaimsChore:
    def __init__(self, database: Database, temporal: Client) -> None:
        self._database, self._temporal = database, temporal

    @activity.defn
    async def release_expired_claims(self, request: KeepHouse) -> ChoreDone:
        """Mark attempts lost whose worker vanished, and tell `requeued:stale`.

        Safe to repeat: a released attempt no longer reads as running. Beside a worker that is alive and could not
        write, because Postgres was away: Temporal says that it still holds the attempt, and it is left alone. Beside
        one that comes back later: it takes its row back unless there is a newer attempt. Beside the job's end: looked
        at again under the job's lock.
        """
        async with self._database.read() as session:
            expired = await expired_claims(session, limit=AT_ONCE)
        released = 0
        for job in expired:
            known = await known_workflow(self._temporal, job.workflow_id)
            lost = [fence for fence in job.fences if _is_lost(known, *fence)]
            if lost:
                async with self._database.write() as session:
                    released += await release_claims(session, job.job_id, lost)
        return ChoreDone(count=released)


def _is_lost(known: KnownWorkflow | None, step_key: str, generation: int, attempt: int) -> bool:
    """Tell an attempt that Temporal has taken away from its worker.

    One that Temporal no longer waits for has ended, and only its recorder was silenced: nothing is given out again.
    The job's end, or a rebuild, closes its row.
    """
    if known is None or not known.is_running:
        return True  # nobody can hold a step of a workflow that is not there
    name = activity_id(step_key, generation)
    return known.awaits(name) and not known.holds(name, attempt)
