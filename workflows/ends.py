"""How a job ends: published and ready, or with a reason. What is begun here is finished, whoever cancels meanwhile."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.ending import EndingSteps
    from activities.publishing import ManifestSteps, PublishSteps
    from activities.removing import RemovalSteps
    from contracts.end_steps import FailJob, Finalize, Publish, RemovePartial, VerifiedRenditions, WriteManifests
    from contracts.plan import TranscodePlan
    from contracts.states import VideoStatus
    from contracts.steps import MissingRendition, TranscodeRequest, TranscodeResult
    from workflows import options
    from workflows.reasons import reason
    from workflows.stepping import Steps, uninterrupted


async def publish(
    steps: Steps,
    job: TranscodeRequest,
    plan: TranscodePlan,
    renditions: VerifiedRenditions,
    missing: tuple[MissingRendition, ...],
    notes: tuple[str, ...],
) -> TranscodeResult:
    """Put the whole stream in its place, then say so."""
    await steps.run(
        ManifestSteps.write_manifests,
        WriteManifests(job_id=job.job_id, video_id=job.video_id, slug=job.slug, grid=plan.grid, renditions=renditions),
        options.MANIFESTS,
        "write a playlist per rendition",
    )
    await steps.run(
        PublishSteps.publish,
        Publish(job_id=job.job_id, video_id=job.video_id, slug=job.slug, renditions=renditions, keep=job.keep),
        options.PUBLISH,
        "put master.m3u8 and manifest.mpd in place",
    )
    qualities = tuple(rendition.quality for rendition in renditions.video)
    await steps.run(
        EndingSteps.finalize,
        Finalize(
            job_id=job.job_id,
            video_id=job.video_id,
            duration_s=plan.grid.duration_s,
            qualities=qualities,
            missing=missing,
            notes=notes,
            plan=plan,
        ),
        options.ENDING,
        "write that the video is ready",
    )
    return TranscodeResult(
        video_id=job.video_id,
        job_id=job.job_id,
        status=VideoStatus.READY,
        qualities=qualities,
        duration_s=plan.grid.duration_s,
        missing=missing,
    )


async def remove(steps: Steps, job: TranscodeRequest) -> None:
    """Remove what a cancelled job has made."""
    request = RemovePartial(job_id=job.job_id, video_id=job.video_id, slug=job.slug, output=job.output)
    try:
        await uninterrupted(steps.run(RemovalSteps.remove_partial, request, options.REMOVE, "remove what was made"))
    except ActivityError as error:
        # Housekeeping removes what no row names; a job that cannot end would be worse.
        workflow.logger.warning("not everything was removed: %s", reason(error).sentence)


async def fail(
    steps: Steps,
    job: TranscodeRequest,
    plan: TranscodePlan | None,
    code: str,
    sentence: str,
    failed_step: str = "",
) -> None:
    """Write the unhappy end, also while the workflow itself is being cancelled."""
    request = FailJob(
        job_id=job.job_id,
        video_id=job.video_id,
        code=code,
        sentence=sentence,
        failed_step=failed_step,
        plan=plan,
    )
    await uninterrupted(steps.run(EndingSteps.fail_job, request, options.ENDING, "write how the job ended"))
