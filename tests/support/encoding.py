"""Take a clip all the way to a published stream on disk, without storage or Temporal: only media/."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.subtitles import SubtitleSteps
from contracts.end_steps import VerifiedRenditions
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.layout import INIT, MASTER, MPD, PLAYLIST, segment_name
from contracts.media import SourceFacts
from contracts.plan import TranscodePlan
from contracts.renditions import AudioRendition, SubtitleRendition, VideoRendition
from contracts.steps import EncodeAudio, MakeThumbnail, TranscodeSpan
from contracts.subtitle_steps import MadeSubtitles, MakeSubtitles
from media import commands, encoder, manifests
from media.boxes import InitFacts, SegmentFacts, read_init
from media.planning import PlanOptions, make_plan
from media.probe import probe
from media.renditions import Weight, audio_rendition, video_rendition
from media.tools import Ffmpeg, Toolbox
from media.verify import check_audio_segment, check_video_segment
from storage.local import LocalStore

PREFIX = "videos/clip/"
STALL_S = 30.0
IDS = {"job_id": JobId(1), "video_id": VideoId(1), "source_key": ObjectKey("uploads/1")}


@dataclass(frozen=True)
class Work:
    """A clip, what is known of it and what is to be made of it."""

    source: Path
    facts: SourceFacts
    plan: TranscodePlan
    tool: Ffmpeg  # what makes the H.264 renditions
    tools: Toolbox

    def span(self, qualities: Sequence[str] = (), *, alone: bool = True) -> TranscodeSpan:
        """Ask for the whole of some renditions that share a build; without a choice, of the H.264 ones."""
        plan = self.plan
        chosen = [r for r in plan.renditions if (r.quality in qualities if qualities else not r.is_alternative)]
        return TranscodeSpan(
            **IDS,
            slug="clip",
            output="r1",
            video=self.facts.video,
            grid=self.plan.grid,
            span=self.plan.spans[0],
            renditions=tuple(chosen),
            encoding=self.plan.encoding,
            alone=alone,
            ffmpeg=chosen[0].ffmpeg,
        )

    def audio(self, track: int) -> EncodeAudio:
        start_s = self.facts.video.start_s
        planned = self.plan.audio[track]
        return EncodeAudio(**IDS, prefix=f"{PREFIX}r1/", audio=planned, grid=self.plan.grid, video_start_s=start_s)

    def subtitles(self) -> MakeSubtitles:
        return MakeSubtitles(
            **IDS,
            slug="clip",
            output="r1",
            subtitles=self.plan.subtitles,
            video_start_s=self.facts.video.start_s,
            duration_s=self.plan.grid.duration_s,
            ffmpeg=self.plan.ffmpeg,
        )

    def thumbnail(self) -> MakeThumbnail:
        return MakeThumbnail(**IDS, slug="clip", video=self.facts.video, encoding=self.plan.encoding)


async def prepare(tools: Toolbox, source: Path, options: PlanOptions) -> Work:
    facts = await probe(tools, source)
    plan = make_plan(facts, options, tools)
    return Work(source, facts, plan, tools.pick(build=plan.renditions[0].ffmpeg), tools)


async def run(argv: list[str]) -> encoder.Progress:
    last = encoder.Progress()
    async with aclosing(encoder.run(argv, stall_s=STALL_S)) as reports:
        async for report in reports:
            last = report
    return last


async def transcode(work: Work, output: Path, *, first_segment: int = 0, alone: bool = True) -> encoder.Progress:
    """Encode the picture, list by list; return the last report of the H.264 renditions."""
    last = encoder.Progress()
    for names in ((), *((r.quality,) for r in work.plan.renditions if r.is_alternative)):
        request = work.span(names, alone=alone)
        tool = work.tools.pick(build=request.ffmpeg, encoders=())
        done = await run(commands.transcode(tool, work.source, output, request, first_segment=first_segment))
        last = last if names else done
    return last


def checked(work: Work, folder: Path, *, first_segment: int = 0) -> list[SegmentFacts]:
    """Check every segment of one rendition from `first_segment` on; they must all be there."""
    init = read_init((folder / INIT).read_bytes())
    grid = work.plan.grid
    found = range(first_segment, grid.segments)
    return [check_video_segment(folder / segment_name(index), init, grid, index) for index in found]


async def publish(work: Work, root: Path) -> Path:
    """Encode picture and sound, write the manifests, and return the master playlist."""
    base = root / PREFIX
    output = base / "r1"
    await transcode(work, output)
    videos = [_video(work, output / planned.quality, planned.quality) for planned in work.plan.renditions]
    sounds = []
    for planned in work.plan.audio:
        folder = output / f"audio_{planned.track}"
        folder.mkdir(parents=True)
        await run(commands.audio(work.tool, work.source, folder, work.audio(planned.track)))
        sounds.append(_sound(work, folder, planned.track))
    texts = await _texts(work, root)
    renditions = VerifiedRenditions(video=tuple(videos), audio=tuple(sounds), subtitles=texts)
    for video in videos:
        (root / video.prefix / PLAYLIST).write_text(manifests.media_playlist_video(video))
    for sound in sounds:
        segment_s = videos[0].segment_frames / videos[0].frame_rate.fraction
        (root / sound.prefix / PLAYLIST).write_text(manifests.media_playlist_audio(sound, segment_s))
    (base / MPD).write_text(manifests.dash_manifest(renditions, PREFIX))
    (base / MASTER).write_text(manifests.master_playlist(renditions, PREFIX))
    return base / MASTER


async def _texts(work: Work, root: Path) -> tuple[SubtitleRendition, ...]:
    """Make the subtitles as the step does; they have no command of their own but the one that copies packets."""
    if not work.plan.subtitles:
        return ()
    store = LocalStore(root)
    await store.put_file(work.subtitles().source_key, work.source)
    made = await ActivityEnvironment().run(SubtitleSteps(store, Toolbox((work.tool,))).make_subtitles, work.subtitles())
    assert isinstance(made, MadeSubtitles)
    return made.tracks


def _video(work: Work, folder: Path, quality: str) -> VideoRendition:
    planned = next(one for one in work.plan.renditions if one.quality == quality)
    init = read_init((folder / INIT).read_bytes())
    segments = checked(work, folder)
    # As it came out, not as it was planned: tests look at both.
    planned = planned.model_copy(update={"width": init.width, "height": init.height})
    weight = _weight(segments, init)
    return video_rendition(planned, work.plan.grid, f"{PREFIX}r1/{quality}/", init, weight)


def _sound(work: Work, folder: Path, track: int) -> AudioRendition:
    planned = work.plan.audio[track]
    init = read_init((folder / INIT).read_bytes())
    segments: list[SegmentFacts] = []
    while (path := folder / segment_name(len(segments))).is_file():
        expected = segments[-1].tfdt + segments[-1].duration if segments else None
        segments.append(check_audio_segment(path, init, expected))
    planned = planned.model_copy(update={"track": track, "channels": init.channels})
    durations = tuple((length, len(list(same))) for length, same in groupby(one.duration for one in segments))
    return audio_rendition(planned, f"{PREFIX}r1/audio_{track}/", init, durations, _weight(segments, init))


def _weight(segments: Sequence[SegmentFacts], init: InitFacts) -> Weight:
    sizes = [segment.size_bytes for segment in segments]
    return Weight.measured(sizes, [segment.duration / init.timescale for segment in segments])
