"""Chart videos of every kind, made once per session by whichever ffmpeg has the encoder. None is committed."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from contracts.errors import SourceUnsupported
from media.tools import Ffmpeg, Toolbox
from tests.support import chart
from tests.support.missing import missing

X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-crf", "8")
X264_B = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "8", "-bf", "3", "-g", "48", "-sc_threshold", "0")
Tags = Mapping[str, str]  # as the filter setparams names them
BT709: Tags = {"colorspace": "bt709", "color_trc": "bt709", "color_primaries": "bt709", "range": "tv"}


def yuv(pixel_format: str = "yuv420p", matrix: str = "bt709", *, full: bool = False, tags: Tags | None = None) -> str:
    """Convert the chart's R'G'B' with this matrix, and tag it BT.709 but for `tags`; an empty one is left untagged."""
    said = {**BT709, **({"range": "pc"} if full else {}), **(tags or {})}
    words = ":".join(f"{name}={value or 'unknown'}" for name, value in said.items())
    reach = "full" if full else "limited"
    scale = f"scale=out_color_matrix={matrix}:out_range={reach}:flags=accurate_rnd+full_chroma_int"
    return f"{scale},format={pixel_format},setparams={words}"


class Charts:
    """Makes chart videos in one folder; the same name is made once."""

    def __init__(self, tools: Toolbox, folder: Path) -> None:
        self.tools, self.folder = tools, folder
        folder.mkdir(parents=True, exist_ok=True)

    def tool(self, encoder: str = "libx264", filters: Sequence[str] = ()) -> Ffmpeg:
        try:
            return self.tools.pick(encoders=(encoder,), filters=filters)
        except SourceUnsupported:
            missing(f"an ffmpeg with {', '.join((encoder, *filters))}")

    def make(
        self,
        name: str,
        *codec: str,
        size: tuple[int, int] = (320, 180),
        rate: str = "24",
        numbers: Sequence[int] = range(48),
        pictures: str = yuv(),
        patches: Sequence[chart.Colour] = chart.PATCHES,
        inputs: Sequence[str] = (),
        filters: Sequence[str] = (),
    ) -> Path:
        """Encode the chart with these numbers at `rate`; `pictures` is the filter that makes the source's colours."""
        path = self.folder / name
        if not path.exists():
            codec = codec or X264
            tool = self.tool(codec[codec.index("-c:v") + 1], filters)
            raw = b"".join(chart.draw(number, *size, patches) for number in numbers)
            source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", rate, "-i", "pipe:0"]
            self.ffmpeg(*source, *inputs, "-vf", pictures, *codec, to=path, tool=tool, given=raw)
        return path

    def again(self, name: str, source: Path, *options: str, before: Sequence[str] = ()) -> Path:
        """Write `source` once more with other options, its pictures untouched unless they say otherwise."""
        path = self.folder / name
        if not path.exists():
            self.ffmpeg(*before, "-i", str(source), *options, to=path)
        return path

    def ffmpeg(self, *words: str, to: Path, tool: Ffmpeg | None = None, given: bytes | None = None) -> None:
        # Under another name until it is whole: a failed recipe must not be found by the next test.
        part = to.with_name(f"part-{to.name}")
        argv = [str((tool or self.tools.pick()).ffmpeg), "-y", "-v", "error", *words, str(part)]
        done = subprocess.run(argv, input=given or b"", capture_output=True, timeout=60)
        assert done.returncode == 0 and part.stat().st_size, done.stderr.decode(errors="replace")[-600:]
        part.rename(to)
