"""Send a chart through probe, plan and transcode, decode what would be published, and say what became of it."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.transcode import TranscodeSteps
from contracts.layout import INIT, segment_name
from contracts.media import SourceFacts
from contracts.plan import Rung, Span, TranscodePlan
from media.boxes import read_init
from media.limits import Limits
from media.planning import PlanOptions
from media.remux import remux
from media.tools import Toolbox
from storage.local import LocalStore
from tests.support import chart
from tests.support.encoding import PREFIX, Work, checked, prepare, transcode

LADDER = (
    Rung(name="180p", short_side=180, video_kbps=4000, audio_kbps=96),
    Rung(name="90p", short_side=90, video_kbps=2000, audio_kbps=64),
)
# One-second segments, and little loss: what is judged is the way, not the encoder's thrift.
OPTIONS = PlanOptions(ladder=LADDER, segment_seconds=1, preset="ultrafast", crf=14)


@dataclass(frozen=True)
class Outcome:
    """What came out of one source: its largest and its smallest rendition."""

    work: Work
    folder: Path
    largest: tuple[chart.Picture, ...]
    smallest: tuple[chart.Picture, ...]

    @property
    def facts(self) -> SourceFacts:
        return self.work.facts

    @property
    def plan(self) -> TranscodePlan:
        return self.work.plan

    @property
    def numbers(self) -> list[int | None]:
        """The number of every picture, in order; both renditions must agree."""
        assert [one.number for one in self.largest] == [one.number for one in self.smallest]
        return [one.number for one in self.largest]

    @property
    def size(self) -> tuple[int, int]:
        return self.plan.renditions[0].width, self.plan.renditions[0].height

    @property
    def note(self) -> str:
        return " ".join((*self.facts.warnings, *self.plan.notes))

    @property
    def corners(self) -> set[tuple[str, ...]]:
        return {picture.names for picture in (*self.largest, *self.smallest)}

    def off(self, patches: Sequence[chart.Colour] = chart.PATCHES) -> float:
        """Return how far the worst patch of the largest rendition is off, of 255."""
        return max(picture.off(patches) for picture in self.largest)


async def judge(
    tools: Toolbox, source: Path, folder: Path, *, options: PlanOptions = OPTIONS, first_segment: int = 0
) -> Outcome:
    """Transcode from `first_segment` on, check every segment and read every picture of it."""
    work = await prepare(tools, source, options)
    if work.facts.wants_remux:
        # As the step does it: what seeks badly is copied first.
        folder.mkdir(parents=True)
        copied = await remux(tools, source, folder, work.facts, Limits(), stall_s=60)
        # None: it does not fit (raw RGB). Such a source is read from its start.
        work = await prepare(tools, copied, options) if copied else work
    await transcode(work, folder, first_segment=first_segment)
    return _read(tools, work, folder, first_segment)


async def judge_step(
    tools: Toolbox, source: Path, folder: Path, *, first_segment: int = 0, **changes: object
) -> Outcome:
    """The same of a span that the step makes, from `first_segment` to the end; `changes` are to what it knows."""
    work = await prepare(tools, source, OPTIONS)
    store = LocalStore(folder)
    request = work.span()
    await store.put_file(request.source_key, source)
    rest = Span(first_segment=first_segment, segments=work.plan.grid.segments - first_segment)
    known = request.video.model_copy(update=changes)
    steps = TranscodeSteps(store, tools, stall_s=30)
    wanted = request.model_copy(update={"span": rest, "video": known})
    await ActivityEnvironment().run(steps.transcode_span, wanted)
    return _read(tools, work, folder / PREFIX / "r1", first_segment)


def _read(tools: Toolbox, work: Work, folder: Path, first_segment: int) -> Outcome:
    read = {}
    for rung in (work.plan.renditions[0], work.plan.renditions[-1]):
        segments = checked(work, folder / rung.quality, first_segment=first_segment)
        pictures = tuple(chart.read(_planes(tools, folder / rung.quality, first_segment), rung.width, rung.height))
        assert len(pictures) == sum(segment.samples for segment in segments)
        read[rung.quality] = pictures
    first, last = work.plan.renditions[0].quality, work.plan.renditions[-1].quality
    return Outcome(work, folder, read[first], read[last])


def _planes(tools: Toolbox, folder: Path, first_segment: int) -> bytes:
    """Decode init and segments, joined as a player joins them, into raw planes without converting anything."""
    joined = folder / "joined.mp4"
    names = [INIT]
    while (folder / segment_name(first_segment + len(names) - 1)).is_file():
        names.append(segment_name(first_segment + len(names) - 1))
    joined.write_bytes(b"".join((folder / name).read_bytes() for name in names))
    init = read_init((folder / INIT).read_bytes())
    argv = [str(tools.pick().ffmpeg), "-v", "error", "-nostdin", "-i", str(joined), "-fps_mode", "passthrough"]
    argv += ["-f", "rawvideo", "-c:v", "rawvideo", "pipe:1"]
    planes = subprocess.run(argv, check=True, timeout=60, capture_output=True).stdout
    joined.unlink()
    assert len(planes) % (init.width * init.height * 3 // 2) == 0
    return planes


@dataclass(frozen=True)
class Tags:
    """What a decoder is told about the colours of a rendition, and how its pictures are kept."""

    pixel_format: str
    color_range: str
    color_space: str
    color_transfer: str
    color_primaries: str


BT709 = Tags("yuv420p", "tv", "bt709", "bt709", "bt709")


def tags(tools: Toolbox, folder: Path, name: str) -> Tags:
    """Read the tags that one segment has with its init, from its first decoded picture."""
    alone = folder / "alone.mp4"
    alone.write_bytes((folder / INIT).read_bytes() + (folder / name).read_bytes())
    entries = "frame=pix_fmt,color_range,color_space,color_transfer,color_primaries"
    argv = [str(tools.ffprobe), "-v", "error", "-select_streams", "v:0", "-read_intervals", "%+#1"]
    argv += ["-show_entries", entries, "-of", "default=nw=1", str(alone)]
    told = subprocess.run(argv, check=True, timeout=60, capture_output=True, text=True).stdout
    alone.unlink()
    words = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
    names = ("pix_fmt", "color_range", "color_space", "color_transfer", "color_primaries")
    return Tags(*(words.get(name, "") for name in names))
