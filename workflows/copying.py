"""A source that seeks badly: its packets are copied first, and the copy goes when the job has ended."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.remuxing import RemuxSteps
    from contracts.layout import remux_key
    from contracts.media import SourceFacts
    from contracts.remux_steps import DropRemux, Remux
    from contracts.steps import RemuxedSource, TranscodeRequest
    from workflows import options
    from workflows.stepping import Steps


async def remux(steps: Steps, job: TranscodeRequest, facts: SourceFacts) -> RemuxedSource:
    """Name what later steps read, and what is known of it."""
    return await steps.run(
        RemuxSteps.remux,
        Remux(job_id=job.job_id, video_id=job.video_id, source_key=job.source_key, facts=facts),
        options.remux(job.source_size_bytes),
        "copy the source to a container that seeks",
    )


async def drop_remux(job: TranscodeRequest) -> None:
    """Remove the copy, however the job ended. Not one of its steps: its rows are written already."""
    await workflow.execute_activity_method(
        RemuxSteps.drop_remux,
        DropRemux(source_key=remux_key(job.video_id, job.job_id)),
        activity_id="drop-remux",
        task_queue=options.TIDY.queue,
        start_to_close_timeout=options.TIDY.limit(),
        retry_policy=options.retries(options.TIDY, attempts_left=1),
        summary="remove the copy of the source",
    )
