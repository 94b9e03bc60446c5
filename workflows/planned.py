"""A job's plan as it is now. What it decides is decided by a step, so it is in history, and the mirror knows of it."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.planning import PlanSteps
    from contracts.media import SourceFacts
    from contracts.plan import TranscodePlan
    from contracts.steps import MakePlan, MissingRendition, TranscodeRequest
    from workflows import options
    from workflows.stepping import Steps


class Planned:
    """Asks for the plan, and again when a rendition starts anew, a worker lacks an ffmpeg, or a GPU is looked for."""

    def __init__(self, steps: Steps, job: TranscodeRequest, facts: SourceFacts) -> None:
        self._steps, self._job, self._facts = steps, job, facts
        self._asking = asyncio.Lock()  # sound and picture may both want to move
        self._asked = 0
        self._plan: TranscodePlan | None = None

    @property
    def plan(self) -> TranscodePlan:
        assert self._plan is not None
        return self._plan

    async def choose(self) -> TranscodePlan:
        """Plan the job, or go on with the plan of the one that it continues."""
        job = self._job
        self._plan = await self._ask(
            MakePlan(
                job_id=job.job_id,
                video_id=job.video_id,
                facts=self._facts,
                qualities=job.qualities,
                continues=job.plan,
                same_output=job.same_output,
                keep=job.keep,
            )
        )
        return self._plan

    async def start_anew(self, names: tuple[str, ...]) -> TranscodePlan:
        """Raise the generation of some renditions: what is stored of them is not to be used."""
        return await self._again(anew=names)

    async def find_builds(self, names: tuple[str, ...]) -> TranscodePlan:
        """Move unfinished work to ffmpegs that are there, where the ones it was begun with are not."""
        return await self._again(pending=names)

    async def route(self, names: tuple[str, ...]) -> TranscodePlan:
        """Look for idle GPUs anew: the ones that were there when the job began may be busy by now, or others free."""
        job = self._job
        return await self._again(routes=names, begun=self.plan.goes_on_with(job.plan) if job.same_output else ())

    async def descend(self, lost: MissingRendition) -> TranscodePlan:
        """Give a rendition that no GPU makes to the CPU, which begins anew: its init segment is another."""
        return await self._again(descends=lost)

    async def _again(
        self,
        *,
        anew: tuple[str, ...] = (),
        pending: tuple[str, ...] = (),
        routes: tuple[str, ...] = (),
        begun: tuple[str, ...] = (),
        descends: MissingRendition | None = None,
    ) -> TranscodePlan:
        async with self._asking:
            self._asked += 1
            request = MakePlan(
                job_id=self._job.job_id,
                video_id=self._job.video_id,
                facts=self._facts,
                continues=self.plan,
                anew=anew,
                pending=pending,
                routes=routes,
                begun=begun,
                descends=descends,
                again=self._asked,
            )
            self._plan = await self._ask(request)
            return self._plan

    async def _ask(self, request: MakePlan) -> TranscodePlan:
        return await self._steps.run(PlanSteps.plan, request, options.PLAN, "choose qualities and frame grid")
