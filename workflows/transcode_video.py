"""The story of one video: probe, plan, encode everything at once, verify, publish."""

import asyncio
import contextlib

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.audio import AudioSteps
    from activities.ending import EndingSteps
    from activities.pictures import PictureSteps
    from activities.probing import ProbeSteps
    from activities.publishing import ManifestSteps, PublishSteps
    from activities.verifying import VerifySteps
    from contracts.errors import CANCELLED, JOB_ENDED, OutputIncomplete
    from contracts.layout import audio_prefix
    from contracts.media import PlannedAudio, PlannedRendition, SourceFacts, TranscodePlan
    from contracts.queues import SEARCH_VIDEO_STATUS
    from contracts.states import VideoStatus
    from contracts.steps import (
        EncodeAudio,
        EncodedAudio,
        EncodeList,
        FailJob,
        Finalize,
        MakePlan,
        MakeStoryboard,
        MakeThumbnail,
        Probe,
        Publish,
        SetPriority,
        TranscodeRequest,
        TranscodeResult,
        VerifiedRenditions,
        VerifyRenditions,
        WriteManifests,
    )
    from workflows import options
    from workflows.encode_list import TranscodeList, encode_list
    from workflows.stepping import Steps, failed_step, reason

# A list of more spans than this has a history of its own.
CHILD_FROM_SPANS = 16

VIDEO_STATUS = SearchAttributeKey.for_keyword(SEARCH_VIDEO_STATUS)


@workflow.defn
class TranscodeVideo:
    @workflow.init
    def __init__(self, request: TranscodeRequest) -> None:
        self._job = request
        self._steps = Steps(request)
        self._status = "waiting for a worker"
        self._over = False  # publishing has begun, or the end is being written: no command fits any more

    @workflow.run
    async def run(self, request: TranscodeRequest) -> TranscodeResult:
        try:
            return await self._make()
        except (ActivityError, ChildWorkflowError) as error:
            if is_cancelled_exception(error):
                await self._fail(CANCELLED, "The job was cancelled.")
                raise
            failure = reason(error)
            await self._fail(failure.code, failure.sentence, failed_step(error))
            raise ApplicationError(failure.sentence, type=failure.code, non_retryable=True) from error
        except ApplicationError as error:
            await self._fail(error.type or "INTERNAL_TRANSIENT", error.message)
            raise
        except asyncio.CancelledError:
            await self._fail(CANCELLED, "The job was cancelled.")
            raise

    @workflow.query
    def status(self) -> str:
        return self._status

    @workflow.update
    async def pause(self) -> None:
        """Withdraw what is queued and take back what runs; it answers at once. Twice is once."""
        self._steps.pause()

    @workflow.update
    async def resume(self) -> None:
        """Go on where the segments end. Twice is once."""
        self._steps.resume()

    @workflow.update
    async def set_priority(self, wish: SetPriority) -> None:
        self._steps.set_tier(wish.tier)

    @pause.validator
    def _may_pause(self) -> None:
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
        job = self._job
        self._say("looking at the source", VideoStatus.PROCESSING)
        facts = await self._steps.run(
            ProbeSteps.probe,
            Probe(job_id=job.job_id, video_id=job.video_id, source_key=job.source_key),
            options.probe(job.source_size_bytes),
            "look at the source",
        )

        # An activity, so that the decision is in history and kept to.
        plan = await self._steps.run(
            ProbeSteps.plan,
            MakePlan(job_id=job.job_id, video_id=job.video_id, facts=facts, qualities=job.qualities),
            options.PLAN,
            "choose qualities and frame grid",
        )

        self._say(f"encoding {', '.join(r.quality for r in plan.renditions)}")
        renditions = await self._encode(facts, plan)

        self._over = True
        self._say("publishing")
        await self._steps.run(
            ManifestSteps.write_manifests,
            WriteManifests(job_id=job.job_id, video_id=job.video_id, slug=job.slug, renditions=renditions),
            options.MANIFESTS,
            "write a playlist per rendition",
        )
        await self._steps.run(
            PublishSteps.publish,
            Publish(job_id=job.job_id, video_id=job.video_id, slug=job.slug, renditions=renditions),
            options.PUBLISH,
            "put master.m3u8 and manifest.mpd in place",
        )
        qualities = tuple(r.quality for r in renditions.video)
        await self._steps.run(
            EndingSteps.finalize,
            Finalize(job_id=job.job_id, video_id=job.video_id, duration_s=plan.grid.duration_s, qualities=qualities),
            options.ENDING,
            "write that the video is ready",
        )
        self._say("ready", VideoStatus.READY)
        await self._storyboard(facts, plan)
        return TranscodeResult(
            video_id=job.video_id,
            job_id=job.job_id,
            status=VideoStatus.READY,
            qualities=qualities,
            duration_s=plan.grid.duration_s,
        )

    async def _encode(self, facts: SourceFacts, plan: TranscodePlan) -> VerifiedRenditions:
        """Make thumbnail, sound and every span of every quality side by side, then check the whole."""
        tracks, _, _ = await self._steps.together(
            self._steps.together(*(self._audio(track, facts, plan) for track in plan.audio)),
            self._thumbnail(facts, plan),
            self._picture(facts, plan, plan.renditions),
        )
        verified = await self._verify(plan, tracks)
        if verified.broken:
            # What is stored is never changed, so a rendition that is not whole starts anew beside it, once.
            broken = {rendition.quality for rendition in verified.broken}
            plan = plan.model_copy(
                update={
                    "renditions": tuple(
                        r.model_copy(update={"generation": r.generation + 1}) if r.quality in broken else r
                        for r in plan.renditions
                    )
                }
            )
            await self._picture(facts, plan, tuple(r for r in plan.renditions if r.quality in broken))
            verified = await self._verify(plan, tracks)
        if verified.broken:
            raise ApplicationError(verified.broken[0].sentence, type=OutputIncomplete.code, non_retryable=True)
        return verified

    async def _verify(self, plan: TranscodePlan, tracks: list[EncodedAudio]) -> VerifiedRenditions:
        job = self._job
        request = VerifyRenditions(
            job_id=job.job_id,
            video_id=job.video_id,
            slug=job.slug,
            output=job.output,
            plan=plan,
            audio=tuple(tracks),
            again=any(r.generation for r in plan.renditions),
        )
        return await self._steps.run(VerifySteps.verify, request, options.VERIFY, "check every rendition as a whole")

    async def _picture(self, facts: SourceFacts, plan: TranscodePlan, renditions: tuple[PlannedRendition, ...]) -> None:
        """Encode some renditions in the plan's lists and spans."""
        lists = plan.lists or (tuple(r.quality for r in plan.renditions),)
        wanted = [tuple(r for r in renditions if r.quality in names) for names in lists]
        await self._steps.together(
            *(
                # The first list is the one that makes the video playable, when it runs ahead of others.
                self._list(chosen, facts, plan, alone=len(lists) == 1, opening=place == 0 < len(lists) - 1)
                for place, chosen in enumerate(wanted)
                if chosen
            )
        )

    async def _list(
        self,
        renditions: tuple[PlannedRendition, ...],
        facts: SourceFacts,
        plan: TranscodePlan,
        *,
        alone: bool,
        opening: bool,
    ) -> None:
        request = EncodeList(
            job=self._job,
            video=facts.video,
            grid=plan.grid,
            spans=plan.spans,
            renditions=renditions,
            encoding=plan.encoding,
            window=plan.window,
            alone=alone and len(plan.spans) == 1,
            opening=opening,
            ffmpeg=plan.ffmpeg,
        )
        if len(plan.spans) < CHILD_FROM_SPANS:
            await encode_list(self._steps, request)
            return
        names = "-".join(r.quality + (f".{r.generation}" if r.generation else "") for r in renditions)
        await workflow.execute_child_workflow(
            TranscodeList.run,
            request,
            id=f"{workflow.info().workflow_id}-{names}",
            static_summary=names.replace("-", " "),
            # Cancelled rather than terminated with its parent: the encoders stop and clean up.
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        if workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError

    async def _thumbnail(self, facts: SourceFacts, plan: TranscodePlan) -> None:
        job = self._job
        request = MakeThumbnail(
            job_id=job.job_id,
            video_id=job.video_id,
            source_key=job.source_key,
            slug=job.slug,
            video=facts.video,
            encoding=plan.encoding,
            ffmpeg=plan.ffmpeg,
        )
        try:
            await self._steps.run(PictureSteps.thumbnail, request, options.THUMBNAIL, "thumbnail")
        except ActivityError as error:
            # A video without a picture is still a video; the step's row says what went wrong.
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning("no thumbnail: %s", reason(error).sentence)

    async def _storyboard(self, facts: SourceFacts, plan: TranscodePlan) -> None:
        """Make the small pictures for the time bar; the video is ready already, and nothing here can change that."""
        job = self._job
        request = MakeStoryboard(
            job_id=job.job_id,
            video_id=job.video_id,
            source_key=job.source_key,
            slug=job.slug,
            video=facts.video,
            encoding=plan.encoding,
            duration_s=plan.grid.duration_s,
            ffmpeg=plan.ffmpeg,
        )
        try:
            await self._steps.run(PictureSteps.storyboard, request, options.storyboard(plan), "storyboard")
        except ActivityError as error:
            workflow.logger.warning("no storyboard: %s", reason(error).sentence)
        except asyncio.CancelledError:
            workflow.logger.info("cancelled after the end: no storyboard")

    async def _audio(self, track: PlannedAudio, facts: SourceFacts, plan: TranscodePlan) -> EncodedAudio:
        job = self._job
        request = EncodeAudio(
            job_id=job.job_id,
            video_id=job.video_id,
            source_key=job.source_key,
            prefix=audio_prefix(job.slug, job.output, track.track),
            audio=track,
            grid=plan.grid,
            video_start_s=facts.video.start_s,
            ffmpeg=plan.ffmpeg,
        )
        return await self._steps.run(
            AudioSteps.encode_audio, request, options.audio(plan), f"sound: {track.name} ({track.language})"
        )

    async def _fail(self, code: str, sentence: str, failed_step: str = "") -> None:
        """Write the unhappy end, also while the workflow itself is being cancelled."""
        job = self._job
        self._over = True
        self._say(f"failed: {sentence}", VideoStatus.FAILED)
        ending = asyncio.create_task(
            self._steps.run(
                EndingSteps.fail_job,
                FailJob(
                    job_id=job.job_id, video_id=job.video_id, code=code, sentence=sentence, failed_step=failed_step
                ),
                options.ENDING,
                "write that the job failed",
            )
        )
        while not ending.done():
            # A cancel that comes meanwhile must not leave the job without an end.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        await ending

    def _say(self, status: str, video_status: VideoStatus | None = None) -> None:
        self._status = status
        workflow.set_current_details(status)
        if video_status is not None:
            workflow.upsert_search_attributes([VIDEO_STATUS.value_set(video_status)])
