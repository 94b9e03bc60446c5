"""The story of one video: probe, plan, encode everything at once, verify, publish."""

import asyncio

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from activities.probing import ProbeSteps
    from activities.verifying import VerifySteps
    from contracts.end_steps import VerifiedRenditions, VerifyRenditions
    from contracts.errors import CANCELLED, JOB_ENDED, OutputIncomplete
    from contracts.media import SourceFacts
    from contracts.plan import PlannedAudio, TranscodePlan
    from contracts.queues import SEARCH_VIDEO_STATUS
    from contracts.renditions import SubtitleRendition
    from contracts.states import JobKind, VideoStatus
    from contracts.steps import (
        EncodedAudio,
        MissingRendition,
        PauseJob,
        Probe,
        SetPriority,
        TranscodeRequest,
        TranscodeResult,
    )
    from workflows import copying, ends, fates, options, sides
    from workflows.children import Children
    from workflows.encode_list import TranscodeList
    from workflows.picture import Picture
    from workflows.planned import Planned
    from workflows.reasons import failed_step, reason
    from workflows.stepping import Outgrown, Steps, uninterrupted

NOTHING_SEEN = PauseJob()  # of somebody who pauses in Temporal's own page
VIDEO_STATUS = SearchAttributeKey.for_keyword(SEARCH_VIDEO_STATUS)


@workflow.defn
class TranscodeVideo:
    @workflow.init
    def __init__(self, request: TranscodeRequest) -> None:
        self._job = request
        self._planned: Planned | None = None
        self._steps = Steps(request, paused=request.paused)
        self._status = "waiting for a worker"
        self._notes: list[str] = []  # what people should know of this video at its end
        self._texts: tuple[SubtitleRendition, ...] = ()
        self._over = False  # publishing has begun, or the end is being written: no command fits any more
        self._missing: dict[str, MissingRendition] = {}
        self._children = Children(self._steps)
        self._remuxes = request.copied is not None  # there may be a copy of the source

    @workflow.run
    async def run(self, request: TranscodeRequest) -> TranscodeResult:
        # No `finally`: a workflow that the SDK puts out of its cache has to go without waiting for anything.
        try:
            result = await self._make_or_fail()
        except Outgrown:
            workflow.continue_as_new(self._rest_of(request))
        except (Exception, asyncio.CancelledError):
            await self._leave()
            raise
        await self._leave()
        return result

    async def _make_or_fail(self) -> TranscodeResult:
        """Make the video; when that fails or is cancelled, write the end before the error goes on."""
        try:
            return await self._make_or_outgrow()
        except (ActivityError, ChildWorkflowError) as error:
            if is_cancelled_exception(error):
                await self._cancelled()
                raise
            failure = reason(error)
            await self._fail(failure.code, failure.sentence, failed_step(error))
            raise ApplicationError(failure.sentence, type=failure.code, non_retryable=True) from error
        except ApplicationError as error:
            await self._fail(error.type or "INTERNAL_TRANSIENT", error.message)
            raise
        except asyncio.CancelledError:
            await self._cancelled()
            raise

    async def _make_or_outgrow(self) -> TranscodeResult:
        """Make the video, or say that the next run has to. After this nothing is awaited: that one hears no cancel.

        One that comes later still is in time: Temporal refuses to go on from a run that has not heard of it.
        """
        try:
            return await self._make()
        except Outgrown:
            await workflow.wait_condition(workflow.all_handlers_finished)
            if workflow.cancellation_reason() is not None:
                raise asyncio.CancelledError from None
            raise

    def _rest_of(self, request: TranscodeRequest) -> TranscodeRequest:
        """Ask for what is left, as for a job that Temporal had forgotten: by its own plan, in later generations."""
        steps, copied = self._steps, self._job.copied
        said = {"tier": steps.tier, "paused": steps.paused}
        counted = {"first_generation": steps.next_generation, "tried": steps.ledger.tried}
        plan = {"plan": self._planned.plan, "resumes": True} if self._planned else {}
        return request.model_copy(update={**said, **counted, **plan, "copied": copied})

    async def _leave(self) -> None:
        if self._remuxes:
            await uninterrupted(copying.drop_remux(self._job))
        await workflow.wait_condition(workflow.all_handlers_finished)

    @workflow.query
    def status(self) -> str:
        return self._status

    @workflow.update
    async def pause(self, asked: PauseJob = NOTHING_SEEN) -> None:
        """Withdraw what is queued and take back what runs; it answers at once. Twice is once."""
        self._steps.pause(asked)
        await self._children.tell(TranscodeList.pause, asked)

    @workflow.update
    async def resume(self) -> None:
        """Go on where the segments end. Twice is once."""
        self._steps.resume()
        await self._children.tell(TranscodeList.resume)

    @workflow.update
    async def set_priority(self, wish: SetPriority) -> None:
        self._steps.set_tier(wish.tier)
        await self._children.tell(TranscodeList.set_priority, wish)

    @pause.validator
    def _may_pause(self, asked: PauseJob = NOTHING_SEEN) -> None:
        self._refuse_when_over()

    @resume.validator
    def _may_resume(self) -> None:
        self._refuse_when_over()

    @set_priority.validator
    def _may_set_priority(self, wish: SetPriority) -> None:
        self._refuse_when_over()

    def _refuse_when_over(self) -> None:
        """Refuse what no longer fits: the API answers 409 with this code and sentence."""
        if self._over:
            raise ApplicationError("The job is ending or has ended.", type=JOB_ENDED)

    async def _make(self) -> TranscodeResult:
        self._say("looking at the source", VideoStatus.PROCESSING)
        facts = await self._look()

        planned = Planned(self._steps, self._job, facts)
        plan = await planned.choose()
        self._planned = planned

        self._say(f"encoding {', '.join(r.quality for r in plan.renditions)}")
        renditions = await self._encode(facts, planned)
        plan = planned.plan

        # A pause may have come with the last step's answer; once `_over`, no resume would be heard either.
        await self._steps.resumed()
        self._over = True
        self._say("publishing")
        # From here on a cancel comes too late: half a flip would be worse than either stream.
        missing, notes = tuple(self._missing.values()), tuple(self._notes)
        result = await uninterrupted(ends.publish(self._steps, self._job, plan, renditions, missing, notes))
        self._say("ready", VideoStatus.READY)
        await sides.storyboard(self._steps, self._job, facts, plan)
        return result

    async def _look(self) -> SourceFacts:
        """Look at the source; one that seeks badly is copied, and whatever follows reads the copy."""
        job, copied = self._job, self._job.copied
        if copied is None:
            facts = await self._steps.run(
                ProbeSteps.probe,
                Probe(job_id=job.job_id, video_id=job.video_id, source_key=job.source_key),
                options.probe(job.source_size_bytes),
                "look at the source",
            )
            if not facts.wants_remux:
                return facts
            self._say("copying the source to a container that seeks")
            self._remuxes = True
            copied = await copying.remux(self._steps, job, facts)
        self._job = job.model_copy(update={"source_key": copied.source_key, "copied": copied})
        return copied.facts

    async def _encode(self, facts: SourceFacts, planned: Planned) -> VerifiedRenditions:
        """Make thumbnail, sound and every span of every quality side by side, then check the whole."""
        plan = planned.plan
        picture = Picture(self._steps, self._job, facts, planned, self._children)
        tracks, self._texts, _, missing = await self._steps.together(
            self._steps.together(*(self._audio(track, facts, planned) for track in plan.audio)),
            sides.subtitles(self._steps, self._job, facts, plan, self._notes),
            sides.thumbnail(self._steps, self._job, facts, plan),
            picture.make([r.quality for r in plan.renditions]),
        )
        self._lose(*missing)
        heard = [track for track in tracks if track is not None]
        verified = await self._verify(planned.plan, heard)
        if verified.broken:
            # What is stored is never changed, so a rendition that is not whole starts anew beside it, once.
            anew = tuple(rendition.quality for rendition in verified.broken)
            await planned.start_anew(anew)
            self._lose(*await picture.make(anew))
            verified = await self._verify(planned.plan, heard, again=True)
        for broken in verified.broken:
            lost = MissingRendition(name=broken.quality, code=OutputIncomplete.code, sentence=broken.sentence)
            if broken.quality in fates.critical_qualities(self._job, planned.plan):
                raise fates.lost(lost)
            self._lose(lost)
        if self._missing and not verified.video and not verified.audio:
            raise fates.lost(next(iter(self._missing.values())))
        picture_lost = fates.lost_picture(self._job, verified, self._missing)
        if picture_lost is not None:
            raise fates.lost(picture_lost)
        return verified

    def _lose(self, *lost: MissingRendition) -> None:
        """Note what the video does without; its fate is its own."""
        for each in lost:
            workflow.logger.warning("%s is missing: %s", each.name, each.sentence)
            self._missing.setdefault(each.name, each)

    async def _verify(
        self, plan: TranscodePlan, tracks: list[EncodedAudio], *, again: bool = False
    ) -> VerifiedRenditions:
        job = self._job
        made = tuple(r for r in plan.renditions if r.quality not in self._missing)
        request = VerifyRenditions(
            job_id=job.job_id,
            video_id=job.video_id,
            slug=job.slug,
            output=job.output,
            plan=plan.model_copy(update={"renditions": made}),
            audio=tuple(tracks),
            subtitles=self._texts,
            again=again,
        )
        return await self._steps.run(VerifySteps.verify, request, options.VERIFY, "check every rendition as a whole")

    async def _audio(self, track: PlannedAudio, facts: SourceFacts, planned: Planned) -> EncodedAudio | None:
        """Encode a track; None when the video does without it."""
        try:
            encoded = await sides.audio(self._steps, self._job, track.track, facts, planned)
        except ActivityError as error:
            if is_cancelled_exception(error) or fates.is_critical_sound(self._job, track):
                raise
            self._lose(fates.missing(f"audio_{track.track}", reason(error)))
            return None
        if not encoded.segments:
            self._notes.append(f"The sound “{track.name}” holds nothing that can be decoded, and is left out.")
        return encoded

    async def _cancelled(self) -> None:
        """Remove what was made, then say that it was cancelled: only then may another job of this video begin."""
        self._over = True
        self._say("cancelled: removing what was made")
        await ends.remove(self._steps, self._job)
        await self._fail(CANCELLED, workflow.cancellation_reason() or "The job was cancelled.")

    async def _fail(self, code: str, sentence: str, failed_step: str = "") -> None:
        self._over = True
        self._say(f"failed: {sentence}", VideoStatus.FAILED)
        plan = self._planned.plan if self._planned else None
        await ends.fail(self._steps, self._job, plan, code, sentence, failed_step)

    def _say(self, status: str, video_status: VideoStatus | None = None) -> None:
        self._status = status
        workflow.set_current_details(status)
        if video_status is not None:
            if self._job.keep or self._job.kind is JobKind.RETRANSCODE:
                video_status = VideoStatus.READY  # it streams throughout, whatever becomes of this job
            workflow.upsert_search_attributes([VIDEO_STATUS.value_set(video_status)])
