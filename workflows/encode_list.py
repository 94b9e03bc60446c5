"""Every span of a list of qualities: a window at a time, in order, split when an encoder breaks on the list."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.transcode import TranscodeSteps
    from contracts.media import PlannedRendition, Span
    from contracts.steps import EncodeList, TranscodeSpan
    from workflows import options
    from workflows.stepping import ENCODER_FAULTS, Steps, Tries, reason


@workflow.defn
class TranscodeList:
    """A child workflow, so that a long video's history stays small; short ones call `encode_list` directly."""

    @workflow.run
    async def run(self, request: EncodeList) -> None:
        await encode_list(Steps(request.job), request)


async def encode_list(steps: Steps, request: EncodeList) -> None:
    # Scheduling everything at once would put all of a long film into the queue ahead of the next person's clip.
    window = asyncio.Semaphore(request.window)

    async def one(span: Span) -> None:
        async with window:
            await _encode(steps, request, span, request.renditions, Tries())

    await steps.together(*(one(span) for span in request.spans))


async def _encode(
    steps: Steps, request: EncodeList, span: Span, renditions: tuple[PlannedRendition, ...], tries: Tries
) -> None:
    """Encode one span of some qualities.

    A lost worker retries the list; an encoder error splits it at once, the parts inheriting the tries used.
    """
    several = len(renditions) > 1
    last = span.first_segment + span.segments - 1
    try:
        await steps.run(
            TranscodeSteps.transcode_span,
            _span_of(request, span, renditions),
            options.transcode(request.grid, renditions, span.segments, opening=request.opening),
            f"segments {span.first_segment} to {last}: {' '.join(r.quality for r in renditions)}",
            tries=tries,
            give_up_on=ENCODER_FAULTS if several else (),
        )
    except ActivityError as error:
        if not several or reason(error).code not in ENCODER_FAULTS or not steps.has_tries_left(tries):
            raise
        await steps.together(*(_encode(steps, request, span, (single,), Tries(tries.used)) for single in renditions))


def _span_of(request: EncodeList, span: Span, renditions: tuple[PlannedRendition, ...]) -> TranscodeSpan:
    job = request.job
    return TranscodeSpan(
        job_id=job.job_id,
        video_id=job.video_id,
        source_key=job.source_key,
        slug=job.slug,
        output=job.output,
        video=request.video,
        grid=request.grid,
        span=span,
        renditions=renditions,
        encoding=request.encoding,
        alone=request.alone,
        ffmpeg=request.ffmpeg,
    )
