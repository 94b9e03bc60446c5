"""Sources that give an encoder real work: a moving crop of a pattern, a fractal and noise, at a camera's bit rate.

A clip of some seconds is made once and repeated without encoding it again, so that every minute costs the same.
"""

from dataclasses import dataclass
from pathlib import Path

from media.tools import Ffmpeg
from tests.bench.processes import measured

RATE = 24


@dataclass(frozen=True)
class Picture:
    width: int
    height: int
    kbps: int
    clip_s: int  # how much is really made; the rest repeats it

    @property
    def name(self) -> str:
        return f"{self.width}x{self.height}"


HD = Picture(1920, 1080, kbps=8000, clip_s=20)
UHD = Picture(3840, 2160, kbps=24000, clip_s=5)
TINY = Picture(640, 360, kbps=1200, clip_s=5)


def make_source(tool: Ffmpeg, folder: Path, picture: Picture, seconds: int) -> Path:
    """Make a source of that length, or return the one that is there."""
    path = folder / f"{picture.name}-{seconds}s.mp4"
    if not path.exists():
        clip = _clip(tool, folder, picture)
        part = path.with_suffix(".part.mp4")
        repeats = -(-seconds // picture.clip_s) - 1
        # Voice-like enough for AAC: coloured noise that swells twice a second.
        sound = f"anoisesrc=color=pink:amplitude=0.4:sample_rate=48000:duration={seconds},tremolo=f=2:d=0.7"
        words = ["-stream_loop", str(repeats), "-i", str(clip), "-f", "lavfi", "-i", sound]
        words += ["-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "aac", "-b:a", "160k", "-ac", "2"]
        _run(tool, *words, "-t", str(seconds), "-movflags", "+faststart", str(part))
        part.rename(path)
    return path


def make_large(tool: Ffmpeg, path: Path, size_bytes: int) -> Path:
    """Make a real video of many bytes that is soon encoded: small pictures as they are, uncompressed."""
    per_second = TINY.width * TINY.height * 3 // 2 * RATE
    seconds = -(-size_bytes // per_second)
    pictures = f"testsrc2=s={TINY.name}:r={RATE}:d={seconds}"
    sound = f"sine=f=330:r=48000:d={seconds}"
    words = ["-f", "lavfi", "-i", pictures, "-f", "lavfi", "-i", sound, "-pix_fmt", "yuv420p"]
    _run(tool, *words, "-c:v", "rawvideo", "-c:a", "pcm_s16le", "-shortest", str(path))
    return path


def _clip(tool: Ffmpeg, folder: Path, picture: Picture) -> Path:
    path = folder / f"{picture.name}-clip.mp4"
    if not path.exists():
        width, height = picture.width, picture.height
        wide, high = width * 7 // 6 // 2 * 2, height * 7 // 6 // 2 * 2
        away_x, away_y = (wide - width) // 2, (high - height) // 2
        pan = f"x='{away_x}+{away_x}*sin(t*0.7)':y='{away_y}+{away_y}*cos(t*0.9)'"
        graph = (
            f"testsrc2=s={wide}x{high}:r={RATE},crop={width}:{height}:{pan},format=yuv420p[pattern];"
            f"mandelbrot=s=480x270:r={RATE},scale={width}:{height}:flags=bicubic,format=yuv420p[fractal];"
            "[pattern][fractal]blend=all_mode=average,noise=alls=10:allf=t,format=yuv420p[picture]"
        )
        # B-frames, long groups and a capped rate, as cameras and editors write them.
        rate = ["-b:v", f"{picture.kbps}k", "-maxrate", f"{picture.kbps * 3 // 2}k", "-bufsize", f"{picture.kbps * 2}k"]
        coding = ["-c:v", "libx264", "-preset", "veryfast", *rate, "-bf", "3", "-g", "120"]
        frames = str(picture.clip_s * RATE)
        part = path.with_suffix(".part.mp4")
        _run(tool, "-filter_complex", graph, "-map", "[picture]", "-frames:v", frames, *coding, str(part))
        part.rename(path)
    return path


def _run(tool: Ffmpeg, *words: str) -> None:
    measured([str(tool.ffmpeg), "-y", "-v", "error", "-nostdin", "-nostats", *words], timeout_s=400)
