"""Small ugly videos, generated once per session by the ffmpegs that are found. None is committed."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from media.tools import Ffmpeg, Toolbox

X264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]


class Clips:
    """Clips by name, made on first use in one folder."""

    def __init__(self, tools: Toolbox, folder: Path) -> None:
        self.tools = tools
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str) -> Path:
        """Return the clip `name`, such as `land.mp4`, making it and what it is made from."""
        path = self.folder / name
        if not path.exists():
            part = self.folder / f"part-{name}"
            RECIPES[name](self, part)
            part.rename(path)
        return path

    def ffmpeg(self, *words: str | Path, tool: Ffmpeg | None = None) -> None:
        argv = [str((tool or self.tools.pick()).ffmpeg), "-y", "-v", "error", "-nostdin", *map(str, words)]
        subprocess.run(argv, check=True, timeout=60, stderr=subprocess.DEVNULL)


def _pattern(size: str = "640x360", rate: str = "30", seconds: float = 3) -> list[str]:
    return ["-f", "lavfi", "-i", f"testsrc2=s={size}:r={rate}:d={seconds}"]


def _tone(seconds: float = 3, frequency: int = 440, rate: int = 48000) -> list[str]:
    return ["-f", "lavfi", "-i", f"sine=f={frequency}:r={rate}:d={seconds}"]


def _plain(size: str = "640x360", rate: str = "30", seconds: float = 3) -> Callable[[Clips, Path], None]:
    def make(clips: Clips, to: Path) -> None:
        # B-frames and long groups, as cameras and editors write them.
        codec = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "26", "-bf", "3", "-g", "250", "-pix_fmt", "yuv420p"]
        sound = ["-c:a", "libopus" if to.suffix == ".webm" else "aac", "-shortest"]
        clips.ffmpeg(*_pattern(size, rate, seconds), *_tone(seconds), *codec, *sound, to)

    return make


def _remuxed(name: str, *options: str) -> Callable[[Clips, Path], None]:
    def make(clips: Clips, to: Path) -> None:
        clips.ffmpeg("-i", clips.get(name), "-c", "copy", *options, to)

    return make


def _pictures(
    *options: str, size: str = "640x360", rate: str = "30", seconds: float = 3
) -> Callable[[Clips, Path], None]:
    def make(clips: Clips, to: Path) -> None:
        clips.ffmpeg(*_pattern(size, rate, seconds), *options, to)

    return make


def _written(content: bytes) -> Callable[[Clips, Path], None]:
    def make(_: Clips, to: Path) -> None:
        to.write_bytes(content)

    return make


def _cut(name: str, share: float) -> Callable[[Clips, Path], None]:
    def make(clips: Clips, to: Path) -> None:
        whole = clips.get(name).read_bytes()
        to.write_bytes(whole[: int(len(whole) * share)])

    return make


def _zero_tail(clips: Clips, to: Path) -> None:
    """A download that made room first and broke off."""
    whole = clips.get("faststart.mp4").read_bytes()
    kept = int(len(whole) * 0.6)
    to.write_bytes(whole[:kept] + bytes(len(whole) - kept))


def _rotated(clips: Clips, to: Path) -> None:
    clips.ffmpeg("-display_rotation", "90", "-i", clips.get("land.mp4"), "-c", "copy", to)


def _two_tracks(clips: Clips, to: Path) -> None:
    named = ["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu"]
    maps = ["-map", "0", "-map", "1", "-map", "2", *X264, "-c:a", "aac", "-disposition:a:1", "default"]
    clips.ffmpeg(*_pattern(), *_tone(), *_tone(3, 880, 44100), *maps, "-disposition:a:0", "0", *named, to)


def _with_cover(clips: Clips, to: Path) -> None:
    cover = clips.folder / "cover.jpg"
    clips.ffmpeg(*_pattern("300x300", "25", 0.04), "-frames:v", "1", "-update", "1", cover)
    maps = ["-map", "0", "-map", "1", "-c:a", "libmp3lame", "-c:v", "copy", "-disposition:v", "attached_pic"]
    clips.ffmpeg(*_tone(), "-i", cover, *maps, to)


def _av1(clips: Clips, to: Path) -> None:
    tool = clips.tools.pick(encoders=("libsvtav1",))
    clips.ffmpeg(
        *_pattern(seconds=2),
        "-c:v",
        "libsvtav1",
        "-svtav1-params",
        "lp=1",
        "-preset",
        "12",
        "-pix_fmt",
        "yuv420p",
        to,
        tool=tool,
    )


def _hdr(clips: Clips, to: Path) -> None:
    tool = clips.tools.pick(encoders=("libx265",), filters=("zscale",))
    wide = "setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc:range=tv,format=yuv420p10le"
    params = "log-level=error:hdr10=1:repeat-headers=1:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc"
    codec = ["-vf", wide, "-c:v", "libx265", "-preset", "ultrafast", "-x265-params", params, "-tag:v", "hvc1"]
    clips.ffmpeg(*_pattern("640x360", "24", 2), *codec, to, tool=tool)


def _referring(clips: Clips, to: Path) -> None:
    """An MP4 whose data reference says `the media lie in another file`."""
    whole = clips.get("noaudio.mp4").read_bytes()
    at = whole.index(b"dref")
    # dref: version+flags, count, then one `url ` entry: size, kind, version+flags (1 = in this file).
    to.write_bytes(whole[: at + 20] + b"\0\0\0\0" + whole[at + 24 :])


RECIPES: dict[str, Callable[[Clips, Path], None]] = {
    "land.mp4": _plain(),
    "film24.mp4": _plain(rate="24"),
    "pal25.mp4": _plain(rate="25"),
    "ntsc.mp4": _plain(rate="30000/1001"),
    "ntsc60.mp4": _plain(size="320x180", rate="60000/1001", seconds=2),
    "ntsc.mkv": _remuxed("ntsc.mp4"),
    "ntsc_start.mkv": _remuxed("ntsc.mp4", "-output_ts_offset", "13.724"),
    "ntsc.ts": _remuxed("ntsc.mp4", "-output_ts_offset", "12.345"),
    "ntsc_edited.mp4": lambda clips, to: clips.ffmpeg("-ss", "0.7", "-i", clips.get("ntsc.mp4"), "-c", "copy", to),
    "long.mp4": _plain(seconds=6),
    "portrait.mp4": _plain(size="360x640"),
    "hd.mp4": _plain(size="1280x720", seconds=4),
    "rot90.mp4": _rotated,
    "odd444.mp4": _pictures("-vf", "format=yuv444p,pad=641:361", "-c:v", "libx264", "-preset", "ultrafast"),
    "anamorphic.mp4": _pictures("-vf", "setsar=16/11", *X264, size="720x576", rate="25"),
    "ten_bit.mp4": _pictures("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le"),
    "vfr.mp4": _pictures(
        *["-vf", "select='not(mod(n,7))+lt(mod(t,2),0.5)'", "-fps_mode", "vfr", *X264], rate="60", seconds=4
    ),
    "fast120.mp4": _pictures(*X264, size="320x180", rate="120", seconds=2),
    "noaudio.mp4": _pictures(*X264),
    "multiaudio.mp4": _two_tracks,
    "short.mp4": _pictures(*X264, seconds=0.5),
    "oneframe.mp4": _pictures("-frames:v", "1", *X264, seconds=1),
    "tiny.mp4": _pictures(*X264, size="200x100", seconds=1),
    "interlaced.mp4": _pictures(
        *["-vf", "interlace=scan=tff,setfield=tff", "-flags", "+ildct+ilme", "-x264-params", "tff=1", *X264],
        size="720x480",
        rate="60000/1001",
    ),
    "anim.gif": _pictures("-c:v", "gif", rate="15", seconds=2),
    "vp9.webm": _pictures("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", seconds=2),
    "av1.mp4": _av1,
    "hdr10.mp4": _hdr,
    "black.mp4": _pictures("-vf", "drawbox=t=fill:c=black", *X264, seconds=2),
    "dark_opening.mp4": _pictures("-vf", "drawbox=t=fill:c=black:enable='lt(t,1.5)'", "-g", "15", *X264),
    "audioonly.m4a": lambda clips, to: clips.ffmpeg(*_tone(), "-c:a", "aac", to),
    "cover.mp3": _with_cover,
    "faststart.mp4": _remuxed("noaudio.mp4", "-movflags", "+faststart"),
    "truncated.mp4": _cut("faststart.mp4", 0.6),
    "zero_tail.mp4": _zero_tail,
    "short_cut.mp4": _cut("faststart.mp4", 0.3),
    "short_cut.mkv": _cut("noaudio.mkv", 0.3),
    "nomoov.mp4": _cut("noaudio.mp4", 0.6),
    "truncated.mkv": _cut("noaudio.mkv", 0.6),
    "noaudio.mkv": _remuxed("noaudio.mp4"),
    "clusters.mkv": _remuxed("noaudio.mp4", "-cluster_time_limit", "300"),
    "referring.mp4": _referring,
    "empty.mp4": _written(b""),
    "text.mp4": _written(b"hello, this is not a video\n" * 40),
    "random.mp4": _written(bytes((index * 7919 + (index >> 3)) % 251 for index in range(50_000))),
}


def decoded_frames(tools: Toolbox, *parts: Path) -> int:
    """Count the pictures that really come out of these bytes, joined."""
    joined = b"".join(part.read_bytes() for part in parts)
    argv = [str(tools.pick().ffmpeg), "-v", "error", "-xerror", "-i", "pipe:0", "-map", "0:v:0"]
    argv += ["-fps_mode", "passthrough", "-f", "null", "-progress", "pipe:1", "-nostats", "-"]
    done = subprocess.run(argv, input=joined, capture_output=True, check=True, timeout=60)
    return max(int(line.split(b"=")[1]) for line in done.stdout.splitlines() if line.startswith(b"frame="))


def packets(tools: Toolbox, path: Path) -> int:
    """Count the video packets of a file."""
    argv = [str(tools.ffprobe), "-v", "error", "-select_streams", "v:0", "-count_packets"]
    argv += ["-show_entries", "stream=nb_read_packets", "-of", "json", str(path)]
    found = json.loads(subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout)
    return int(found["streams"][0]["nb_read_packets"])
