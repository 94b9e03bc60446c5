"""Every span of a list of qualities: a window at a time, in order, split when an encoder breaks on the list."""

import asyncio
from collections.abc import Sequence

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.transcode import TranscodeSteps
    from contracts.errors import BuildMissing
    from contracts.plan import PlannedRendition, Span
    from contracts.queues import Turn
    from contracts.steps import EncodedList, EncodeList, MissingRendition, PauseJob, SetPriority, TranscodeSpan
    from workflows import fates, openings, options
    from workflows.reasons import ENCODER_FAULTS, reason
    from workflows.stepping import Outgrown, Steps
    from workflows.tries import Tries


@workflow.defn
class TranscodeList:
    """A child workflow, so that a long video's history stays small; short ones call `encode_list` directly."""

    @workflow.init
    def __init__(self, request: EncodeList) -> None:
        self._steps = Steps(request.job, paused=request.paused)

    @workflow.run
    async def run(self, request: EncodeList) -> EncodedList:
        steps = self._steps
        try:
            encoded = await encode_list(steps, request)
        except Outgrown:
            if workflow.cancellation_reason() is not None:  # a new run would not hear of it
                raise asyncio.CancelledError from None
            counted = {"first_generation": steps.next_generation, "tier": steps.tier, "tried": steps.ledger.tried}
            job = request.job.model_copy(update=counted)
            workflow.continue_as_new(request.model_copy(update={"job": job, "paused": steps.paused}))
        folders = {rendition.folder for rendition in request.renditions}
        counted = {"next_generation": steps.next_generation, "tried": steps.ledger.of(folders)}
        return encoded.model_copy(update=counted)

    @workflow.signal
    def pause(self, asked: PauseJob) -> None:
        self._steps.pause(asked)

    @workflow.signal
    def resume(self) -> None:
        self._steps.resume()

    @workflow.signal
    def set_priority(self, wish: SetPriority) -> None:
        self._steps.set_tier(wish.tier)


async def encode_list(steps: Steps, request: EncodeList) -> EncodedList:
    if request.renditions[0].gpu:
        return await _encode_on_gpu(steps, request)
    # Scheduling everything at once would put all of a long film into the queue ahead of the next person's clip.
    window = asyncio.Semaphore(request.window)
    lost: dict[str, MissingRendition] = {}

    async def one(span: Span) -> None:
        async with window:
            wanted = tuple(r for r in request.renditions if r.quality not in lost)
            if wanted:
                await _encode(steps, request, span, wanted, Tries(), lost)

    async def all_of(spans: Sequence[Span]) -> None:
        await steps.together(*(one(span) for span in spans))

    async def behind_the_first() -> None:
        await openings.go_first(request.grid)
        await all_of(request.spans[1:])

    if request.opening and len(request.spans) > 1:
        await steps.together(one(request.spans[0]), behind_the_first())
    else:
        await all_of(request.spans)
    return EncodedList(missing=tuple(lost.values()))


async def _encode(
    steps: Steps,
    request: EncodeList,
    span: Span,
    renditions: tuple[PlannedRendition, ...],
    tries: Tries,
    lost: dict[str, MissingRendition],
) -> None:
    """Encode one span of some qualities; those that fail for good are added to `lost`, unless one is critical.

    A lost worker retries the list; an encoder error splits it at once, the parts inheriting the tries used. What was
    split in an earlier run stays so.
    """
    several = len(renditions) > 1
    asked = _span_of(request, span, renditions)

    async def split() -> None:
        parts = (_encode(steps, request, span, (one,), Tries(tries.used), lost) for one in renditions)
        await steps.together(*parts)

    if several and steps.ledger.was_split(asked):
        return await split()
    try:
        await steps.run(
            TranscodeSteps.transcode_span,
            asked,
            options.transcode(request.video, request.grid, renditions, span, _turn(request, span)),
            f"{_segments(span)}: {' '.join(r.quality for r in renditions)}",
            tries=tries,
            give_up_on=ENCODER_FAULTS if several else (),
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        failure = reason(error)
        if several and failure.code in ENCODER_FAULTS and steps.has_tries_left(tries):
            return await split()
        # What only lacks its ffmpeg is not lost yet: whoever asked finds another one.
        critical = any(rendition.quality in request.critical for rendition in renditions)
        if critical and failure.code != BuildMissing.code:
            raise
        for rendition in renditions:
            missing = lost.setdefault(rendition.quality, fates.missing(rendition.quality, failure))
            if failure.code != BuildMissing.code:
                steps.ledger.give_up(rendition.folder, missing)


def _turn(request: EncodeList, span: Span) -> Turn:
    if request.opening and span == request.spans[0]:
        return Turn.OPENING
    return Turn.AHEAD if request.ahead else Turn.REST


async def _encode_on_gpu(steps: Steps, request: EncodeList) -> EncodedList:
    """Encode a rendition span by span in the one slot that was free; what the GPU cannot do is the CPU's, all of it.

    In order, so that when it descends nothing of it waits or runs any more. Whatever went wrong, no error is final
    here: the CPU has its own tries, and a source that is broken will be so there too.
    """
    (rendition,) = request.renditions
    for span in request.spans:
        try:
            await steps.run(
                TranscodeSteps.transcode_span,
                _span_of(request, span, request.renditions),
                options.transcode_on_gpu(
                    request.video, request.grid, rendition, span, start_within_s=request.gpu_start_s
                ),
                f"{_segments(span)} on a GPU: {rendition.quality}",
                give_up_on=ENCODER_FAULTS,
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            return EncodedList(descends=fates.missing(rendition.quality, reason(error)))
    return EncodedList()


def _segments(span: Span) -> str:
    return f"segments {span.first_segment} to {span.first_segment + span.segments - 1}"


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
        ffmpeg=renditions[0].ffmpeg,
    )
