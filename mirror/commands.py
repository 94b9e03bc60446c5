"""What the writers of commands share: how a command is refused, and what Temporal has to be told."""

from dataclasses import dataclass
from datetime import datetime

from contracts.ids import JobId, VideoId, workflow_id
from contracts.states import Tier
from mirror.tables import Job
from mirror.words import Command


class Refused(Exception):
    """A command that does not fit the state: nothing was changed."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


@dataclass(frozen=True)
class Wish:
    """What people want of a job, as its row says it, and what of that Temporal has not heard."""

    job_id: JobId
    video_id: VideoId
    untold: tuple[Command, ...]
    at: datetime | None  # of the last command; tells a newer wish from the one that was told
    started: bool
    ended: bool
    paused: bool
    tier: Tier

    @property
    def workflow_id(self) -> str:
        return workflow_id(self.video_id, self.job_id)


def wish_of(job: Job, *, ended: bool) -> Wish:
    return Wish(
        job_id=JobId(job.id),
        video_id=VideoId(job.video_id),
        untold=tuple(Command(name) for name in job.untold),
        at=job.command_at,
        started=job.workflow_started_at is not None,
        ended=ended,
        paused=job.paused_at is not None,
        tier=job.tier,
    )
