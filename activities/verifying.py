"""Is all that was encoded there, and whole? By the facts that verified segments left behind; nothing is decoded."""

from temporalio import activity

from activities.pulse import pulsing
from contracts.end_steps import BrokenRendition, VerifiedRenditions, VerifyRenditions
from contracts.errors import OutputIncomplete
from contracts.layout import INIT, rendition_prefix, segment_index
from contracts.plan import Grid, PlannedAudio, PlannedRendition
from contracts.renditions import AudioRendition, SubtitleRendition, VideoRendition
from contracts.steps import EncodedAudio
from media.boxes import InitFacts, read_init
from media.renditions import Weight, audio_rendition, video_rendition
from storage.store import Store


class VerifySteps:
    def __init__(self, store: Store) -> None:
        self._store = store

    @activity.defn
    async def verify(self, request: VerifyRenditions) -> VerifiedRenditions:
        """Check every rendition as a whole and measure its bandwidth.

        Safe to repeat: it only reads.
        """
        whole: list[VideoRendition] = []
        broken: list[BrokenRendition] = []
        async with pulsing():
            for planned in request.plan.renditions:
                try:
                    whole.append(await self._video(request, planned))
                except OutputIncomplete as error:
                    # An answer, not a failure: asking again would find the same, encoding it anew may not.
                    broken.append(BrokenRendition(quality=planned.quality, sentence=error.sentence))
            audio = await self._tracks(request)
            subtitles = tuple([text for text in request.subtitles if await self._is_there(text)])
        return VerifiedRenditions(video=tuple(whole), audio=audio, subtitles=subtitles, broken=tuple(broken))

    async def _is_there(self, text: SubtitleRendition) -> bool:
        """Subtitles that are gone are not listed; the video does without them."""
        facts = await self._store.stat(text.key)
        return facts is not None and facts.size_bytes == text.size_bytes

    async def _tracks(self, request: VerifyRenditions) -> tuple[AudioRendition, ...]:
        """Check the tracks that gave any sound; when the default one did not, the first that did takes its place."""
        audible = [encoded for encoded in request.audio if encoded.segments]
        tracks = [await self._audio(encoded, request.plan.audio) for encoded in audible]
        if tracks and not any(track.default for track in tracks):
            tracks[0] = tracks[0].model_copy(update={"default": True})
        return tuple(tracks)

    async def _video(self, request: VerifyRenditions, planned: PlannedRendition) -> VideoRendition:
        grid = request.plan.grid
        prefix = rendition_prefix(request.slug, request.output, planned.quality, planned.generation)
        init, sizes = await self._folder(prefix, grid.segments, planned.quality)
        if (init.width, init.height) != (planned.width, planned.height):
            raise OutputIncomplete(f"{planned.quality} came out as {init.width}x{init.height}.")
        return video_rendition(planned, grid, prefix, init, Weight.measured(sizes, _durations(grid)))

    async def _audio(self, encoded: EncodedAudio, planned: tuple[PlannedAudio, ...]) -> AudioRendition:
        plan = next(p for p in planned if p.track == encoded.track)
        init, sizes = await self._folder(encoded.prefix, encoded.segments, f"audio track {encoded.track}")
        durations = [length for length, count in encoded.segment_durations for _ in range(count)]
        weight = Weight.measured(sizes, [length / init.timescale for length in durations])
        return audio_rendition(plan, encoded.prefix, init, encoded.segment_durations, weight)

    async def _folder(self, prefix: str, segments: int, what: str) -> tuple[InitFacts, list[int]]:
        """Read a folder's init segment and its segments' sizes, or say what is missing."""
        sizes = {}
        for facts in await self._store.list(prefix):
            index = segment_index(facts.key)
            if index is not None:
                sizes[index] = facts.size_bytes
        missing = [index for index in range(segments) if not sizes.get(index)]
        if missing:
            raise OutputIncomplete(f"{what}: {len(missing)} of {segments} segments are missing.")
        if await self._store.stat(prefix + INIT) is None:
            raise OutputIncomplete(f"{what}: the init segment is missing.")
        return read_init(await self._store.read_bytes(prefix + INIT)), [sizes[index] for index in range(segments)]


def _durations(grid: Grid) -> list[float]:
    return [grid.seconds(grid.frames_in(segment)) for segment in range(grid.segments)]
