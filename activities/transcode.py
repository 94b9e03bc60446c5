"""The step that costs: one span of some qualities, decoded once."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import structlog
from temporalio import activity

from activities.pulse import pulsing, told_before
from activities.segments import RenditionFolder, finished_segments
from contracts.errors import GpuFailed, SourceUnreadable, StorageUnavailable, VlogError
from contracts.layout import INIT, rendition_prefix
from contracts.steps import QualityProgress, StepProgress, TranscodedSpan, TranscodeSpan
from media import commands, encoder, seeking, verify
from media.choosing import for_device
from media.device_graphs import stays_there
from media.devices import GpuEncoder
from media.diagnosis import on_device
from media.gpu import Gpu
from media.limits import Limits
from media.tools import Ffmpeg, Toolbox
from media.verify import PicturesMissing
from storage.store import Store

log = structlog.get_logger("transcode")

_PIECE_BYTES = 8 << 20


class TranscodeSteps:
    def __init__(
        self, store: Store, tools: Toolbox, *, stall_s: float, limits: Limits | None = None, gpu: Gpu | None = None
    ) -> None:
        self._store, self._tools, self._stall_s = store, tools, stall_s
        self._limits = limits or Limits()
        self._gpu = gpu or Gpu()

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        """Encode one span and store each segment under its final key as it finishes.

        Safe to repeat: keys are derived from the request and created once; work starts at the first
        segment that some quality of the list lacks, whoever stored the ones before it.
        """
        work = _SpanWork(self._store, request)
        async with pulsing(told_before):  # a bucket that is away is asked for longer than a silent worker keeps a step
            await work.look()
        if work.is_whole():
            return work.result()
        if any(rendition.gpu for rendition in request.renditions):
            await self._encode_on_gpu(request, work)
        else:
            tool = self._tools.pick(
                decoder=request.video.codec,
                encoders=tuple({r.encoder for r in request.renditions}),
                build=request.ffmpeg or None,
            )
            await self._encode(tool, None, request, work)
        return work.result()

    async def _encode_on_gpu(self, request: TranscodeSpan, work: "_SpanWork") -> None:
        """Encode on the device; what it cannot decode after all, the CPU decodes for it before it is given up."""
        (rendition,) = request.renditions
        device = self._gpu.encoder(rendition.encoder)
        for_device(device.tool, request.video, request.grid, request.encoding)
        staying = stays_there(device, request.video, request.encoding)
        try:
            await self._encode(device.tool, device, request, work)
        except VlogError as error:
            told = on_device(error, decoded_there=staying)
            if not staying or not isinstance(told, GpuFailed):
                raise told from (None if told is error else error)  # its own cause it must not be
            log.info("gpu.decoded_by_cpu", step=request.step_key, reason=told.sentence)
        else:
            return
        try:
            await self._encode(device.tool, replace(device, decodes=frozenset()), request, work)
        except VlogError as error:
            told = on_device(error, decoded_there=False)
            raise told from (None if told is error else error)

    async def _encode(self, tool: Ffmpeg, device: GpuEncoder | None, request: TranscodeSpan, work: "_SpanWork") -> None:
        """Encode what is missing; where the source gives too little from the nearest keyframe on, read it from afar.

        Within the same attempt: the next one would fail in the same way.
        """
        name = f"job{request.job_id}-{request.step_key}-g{request.generation}a{activity.info().attempt}"
        async with (
            # By the clock too: a source that cannot seek is decoded for long before the first picture that counts.
            pulsing(lambda: work.progress(work.speed)),
            self._store.local_file(request.source_key) as source,
            self._store.scratch(name) as here,
        ):
            video, grid, output = request.video, request.grid, here
            decoded_there = device is not None and stays_there(device, video, request.encoding)
            before: tuple[object, ...] = ()
            failed: VlogError | None = None
            for number, reach in enumerate(seeking.reaches(video, grid, self._limits.least_share)):
                first = work.first_missing
                at = seeking.begins_at(video, grid, first * grid.segment_frames, reach)
                way = (first, at, reach.after)
                if way == before:
                    continue  # it would read, and find, the same
                before = way
                if failed is not None:
                    log.info("source.read_from_afar", step=request.step_key, segment=first, reason=failed.sentence)
                    await _read_through(source)
                    output = here / f"again{number}"  # what the last one left must not be taken for this one's
                argv = commands.transcode(
                    tool, source, output, request, first_segment=first, device=device, reach=reach
                )
                try:
                    return await self._run(argv, request, work, output)
                except (PicturesMissing, SourceUnreadable) as error:
                    if isinstance(error, SourceUnreadable) and at is None:
                        raise  # else nothing can be decoded from there on; before it, perhaps
                    if decoded_there:
                        raise  # the device may have lost them: the CPU decodes all before any is made up
                    failed = error
            assert failed is not None
            raise failed

    async def _run(self, argv: list[str], request: TranscodeSpan, work: "_SpanWork", output: Path) -> None:
        work.begin()
        memory_bytes = self._limits.memory(request.video, request.renditions)
        async with aclosing(encoder.run(argv, stall_s=self._stall_s, memory_bytes=memory_bytes)) as progress:
            async for now in progress:
                work.made(now.frame, now.speed)
                if await work.keep_finished(output):  # of all else the clock tells, twice a second
                    activity.heartbeat(work.progress(now.speed))
        await work.keep_finished(output)
        activity.heartbeat(work.progress(0))
        if not work.is_whole():
            raise PicturesMissing(f"ffmpeg ended after {work.segments} of {request.span.segments} segments.")


async def _read_through(source: Path) -> None:
    """Make sure that every byte can be had: to ffmpeg a disk that fails is the end of the file.

    Else a standing picture would take the place of all that comes after.
    """

    def piece(at: int) -> int:
        with source.open("rb", buffering=0) as file:
            file.seek(at)
            return len(file.read(_PIECE_BYTES))

    at = 0
    try:
        while length := await asyncio.to_thread(piece, at):
            at += length
    except OSError as error:
        raise StorageUnavailable("The source could not be read from storage.", detail=str(error.strerror)) from error


class _SpanWork:
    """What of a span is done, per quality; counts are of contiguous segments from the span's first."""

    def __init__(self, store: Store, request: TranscodeSpan) -> None:
        self._request = request
        self._first = request.span.first_segment
        self._end = request.span.first_segment + request.span.segments
        self._folders = {
            r.quality: RenditionFolder(store, rendition_prefix(request.slug, request.output, r.quality, r.generation))
            for r in request.renditions
        }
        self._next = dict.fromkeys(self._folders, self._first)
        self._frames = self._before = 0  # pictures of the encoder that runs, and of those before it
        self.speed = 0.0

    async def look(self) -> None:
        for quality, folder in self._folders.items():
            present = await folder.present()
            while self._next[quality] < self._end and self._next[quality] in present:
                self._next[quality] += 1
        self._found = self.first_missing
        self.begin()

    def begin(self) -> None:
        """Count for an encoder that begins at the first missing segment; the first of an attempt need not be the last.

        Everything from the common start on is encoded again for the qualities that were ahead; what they have stored
        already wins, so their counters stay where they are.
        """
        grid = self._request.grid
        self._before, self._frames = self.frames, 0
        self._made_from = self.first_missing
        self._wanted = min(self._end * grid.segment_frames, grid.frames) - self._made_from * grid.segment_frames
        self._watch = dict.fromkeys(self._folders, self.first_missing)

    def made(self, frames: int, speed: float) -> None:
        self._frames, self.speed = frames, speed

    @property
    def frames(self) -> int:
        """Count the pictures of this attempt."""
        return self._before + self._frames

    @property
    def first_missing(self) -> int:
        return min(self._next.values())

    @property
    def segments(self) -> int:
        return self.first_missing - self._first

    def is_whole(self) -> bool:
        return self.first_missing >= self._end

    async def keep_finished(self, here: Path) -> bool:
        """Verify and store what ffmpeg has closed since the last look; tell whether there was anything."""
        finished = await asyncio.to_thread(self._finished, here)
        for quality, index, path in finished:
            folder = self._folders[quality]
            init = folder.init or await folder.keep_init(path.with_name(INIT))
            await asyncio.to_thread(verify.check_video_segment, path, init, self._request.grid, index)
            await folder.keep(index, path)
            await asyncio.to_thread(path.unlink)  # the stored name is a link to the same bytes
            self._watch[quality] = index + 1
            self._next[quality] = max(self._next[quality], index + 1)
        return bool(finished)

    def _finished(self, here: Path) -> list[tuple[str, int, Path]]:
        """Look for all qualities at once: it is done four times a second, and mostly in vain."""
        watched = self._watch.items()
        return [(quality, *found) for quality, after in watched for found in finished_segments(here / quality, after)]

    def progress(self, speed: float) -> StepProgress:
        total = self._request.span.segments
        made = min(1.0, self._frames / max(1, self._wanted))
        share = (self._made_from - self._first + made * (self._end - self._made_from)) / total
        return StepProgress(
            percent=round(100 * share, 1),
            frames=self.frames,
            speed=speed,
            qualities=tuple(
                QualityProgress(
                    quality=quality,
                    segments_total=total,
                    segments_completed=upto - self._first,
                    percent=round(100 * max(share, (upto - self._first) / total), 1) if upto < self._end else 100.0,
                )
                for quality, upto in self._next.items()
            ),
        )

    def result(self) -> TranscodedSpan:
        return TranscodedSpan(segments=self._end - self._found, encoded_frames=self.frames)
