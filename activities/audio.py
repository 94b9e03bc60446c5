"""Sound, encoded once and whole: cut per span it would click at every seam."""

import asyncio
import time
from contextlib import aclosing
from itertools import groupby
from pathlib import Path

from temporalio import activity

from activities.pulse import pulsing
from activities.segments import RenditionFolder, finished_segments
from contracts.errors import OutputIncomplete
from contracts.layout import INIT, timeline_key
from contracts.renditions import AudioTimeline
from contracts.steps import EncodeAudio, EncodedAudio, StepProgress
from media import commands, encoder, verify
from media.limits import Limits
from media.tools import Toolbox
from storage.store import Store

TIMELINE_EVERY_S = 1.0


class AudioSteps:
    def __init__(self, store: Store, tools: Toolbox, *, stall_s: float, limits: Limits | None = None) -> None:
        self._store, self._tools, self._stall_s = store, tools, stall_s
        self._memory_bytes = (limits or Limits()).sound_memory_bytes

    @activity.defn
    async def encode_audio(self, request: EncodeAudio) -> EncodedAudio:
        """Encode one track and store its segments as they finish.

        Safe to repeat: the whole track is encoded again by the same pinned build, which cuts at the same
        samples; a segment that is stored already stays, and each attempt has a timeline of its own, of which readers
        take the longest. A track that gives no sound has no segments: the video does without it.
        """
        tool = self._tools.pick(encoders=("aac",), build=request.ffmpeg or None)
        work = _TrackWork(self._store, request)
        name = f"job{request.job_id}-audio{request.audio.track}-g{request.generation}a{activity.info().attempt}"
        async with (
            # By the clock too: sound that begins late, or is broken at first, is silent for long.
            pulsing(lambda: work.progress),
            self._store.local_file(request.source_key) as source,
            self._store.scratch(name) as here,
        ):
            argv = commands.audio(tool, source, here, request)
            ended = False
            async with aclosing(encoder.run(argv, stall_s=self._stall_s, memory_bytes=self._memory_bytes)) as progress:
                async for now in progress:
                    await work.keep_finished(here)
                    await work.keep_timeline()
                    share = min(1.0, now.out_time_s / max(request.grid.duration_s, 0.001))
                    work.progress = StepProgress(percent=round(100 * share, 1), speed=now.speed)
                    ended = now.ended
            if not ended:  # one that found no sound says so too: nothing at all is not the same as silence
                raise OutputIncomplete("ffmpeg stopped before the end of the sound.")
            await work.keep_finished(here)
            await work.keep_timeline(whole=True)
        return work.result()


class _TrackWork:
    def __init__(self, store: Store, request: EncodeAudio) -> None:
        self._store, self._request = store, request
        self._folder = RenditionFolder(store, request.prefix)
        attempt = activity.info().attempt
        self._timeline = timeline_key(request.prefix, request.job_id, request.generation, attempt)
        self._durations: list[int] = []
        self._tfdt: int | None = None  # where the next segment must begin; the first one says itself
        self._told = 0  # segments that the timeline names
        self._told_at = 0.0
        self.progress: StepProgress | None = None

    async def keep_finished(self, here: Path) -> None:
        """Verify and store what ffmpeg has closed since the last look."""
        for index, path in await asyncio.to_thread(finished_segments, here, len(self._durations)):
            if index == 0 and not await asyncio.to_thread(verify.has_sound, path):
                return  # what ffmpeg writes at the end of a track that gave it nothing
            init = self._folder.init or await self._folder.keep_init(here / INIT)
            facts = await asyncio.to_thread(verify.check_audio_segment, path, init, self._tfdt)
            await self._folder.keep(index, path)
            self._durations.append(facts.duration)
            self._tfdt = facts.tfdt + facts.duration

    async def keep_timeline(self, *, whole: bool = False) -> None:
        """Say how long the stored segments are, for those who watch while it encodes; now and then, and at the end."""
        now = time.monotonic()
        if not whole and (len(self._durations) == self._told or now < self._told_at + TIMELINE_EVERY_S):
            return
        self._told, self._told_at = len(self._durations), now
        init = self._folder.init
        timeline = AudioTimeline(segment_durations=self._runs(), whole=whole)
        if init is not None:
            timeline = timeline.model_copy(update={"timescale": init.timescale})
        await self._store.put_bytes(self._timeline, timeline.model_dump_json().encode())

    def _runs(self) -> tuple[tuple[int, int], ...]:
        return tuple((length, len(list(run))) for length, run in groupby(self._durations))

    def result(self) -> EncodedAudio:
        return EncodedAudio(
            track=self._request.audio.track,
            prefix=self._request.prefix,
            segments=len(self._durations),
            segment_durations=self._runs(),
        )
