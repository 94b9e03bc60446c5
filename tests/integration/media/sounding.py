"""Clips to listen to, and what became of them: a flash and a beep each second, or a tone of its own per channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from media import commands
from media.limits import Limits
from media.planning import PlanOptions
from media.remux import remux
from media.tools import Toolbox
from tests.support.clips import Clips
from tests.support.encoding import Work, prepare, run, transcode
from tests.support.listening import BEEPS, FLASHES, Sound, flashes, listen

H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bf", "2", "-g", "60")
VP8 = ("-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "300k")
MPEG4 = ("-c:v", "mpeg4", "-q:v", "5")
SECONDS = 4


def beeping(clips: Clips, name: str, picture: Sequence[str], sound: str, rate: int = 48_000) -> Path:
    """Make a clip that flashes and beeps at 0.5, 1.5, 2.5 and 3.5 s."""
    path = clips.folder / name
    if not path.exists():
        inputs = ["-f", "lavfi", "-t", str(SECONDS), "-i", FLASHES]
        inputs += ["-f", "lavfi", "-t", str(SECONDS), "-i", BEEPS.format(rate=rate)]
        tool = clips.tools.pick(encoders=(sound,))
        clips.ffmpeg(*inputs, *picture, "-c:a", sound, path, tool=tool)
    return path


def copied(clips: Clips, name: str, *words: str | Path) -> Path:
    """Put streams of other clips into a new file without encoding them anew."""
    path = clips.folder / name
    if not path.exists():
        clips.ffmpeg(*words, "-c", "copy", path)
    return path


def toned(clips: Clips, name: str, channels: Sequence[float], layout: str, sound: str, *words: str) -> Path:
    """Make a clip of two seconds whose channels each hold a tone of half or less of full scale."""
    path = clips.folder / name
    if not path.exists():
        tones = "|".join(f"0.25*sin(2*PI*{frequency}*t)" if frequency else "0" for frequency in channels)
        inputs = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=30:d=2"]
        inputs += ["-f", "lavfi", "-i", f"aevalsrc='{tones}':c={layout}:s=48000:d=2"]
        tool = clips.tools.pick(encoders=(sound,))
        clips.ffmpeg(*inputs, *H264, "-c:a", sound, *words, path, tool=tool)
    return path


@dataclass(frozen=True)
class Heard:
    work: Work
    sound: Sound
    flashes: list[float]

    @property
    def offsets_ms(self) -> list[float]:
        """How late each beep is after its flash; negative is early."""
        return [round((beep - flash) * 1000, 1) for beep, flash in zip(self.sound.beeps(), self.flashes, strict=False)]


async def hear(tools: Toolbox, source: Path, folder: Path, options: PlanOptions, track: int = 0) -> Heard:
    """Encode one track, and listen to it. Poor seekers are remuxed first, as the workflow does."""
    folder.mkdir(parents=True, exist_ok=True)
    work = await prepare(tools, source, options)
    if work.facts.wants_remux:
        copied = await remux(tools, source, folder, work.facts, Limits(), stall_s=60)
        assert copied is not None
        work = await prepare(tools, copied, options)
    output = folder / f"audio_{track}"
    output.mkdir(parents=True)
    await run(commands.audio(work.tool, work.source, output, work.audio(track)))
    return Heard(work, listen(tools, output), [])


async def hear_and_see(tools: Toolbox, source: Path, folder: Path, options: PlanOptions) -> Heard:
    """Encode the first track and the smallest picture, and compare their times."""
    heard = await hear(tools, source, folder, options)
    await transcode(heard.work, folder)
    quality = heard.work.plan.renditions[-1].quality
    seen = flashes(tools, folder / quality, float(heard.work.plan.grid.frame_rate.fraction))
    return Heard(heard.work, heard.sound, seen)
