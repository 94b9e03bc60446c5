"""Run every command that reads a stranger's file, on every file named, without the look at its first bytes.

Started by tests under strace: what ffmpeg and ffprobe open, with their own guards alone, is what the kernel saw.
"""

import asyncio
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from contracts.errors import VlogError
from contracts.plan import Grid, PlannedRendition, PlannedSubtitle, Span
from contracts.steps import EncodeAudio, MakeThumbnail, TranscodeSpan
from media import commands, encoder, picture_commands, remux, sniff
from media.probe import probe
from media.tools import Ffmpeg, find_tools
from tests.support.encoding import IDS
from tests.support.media_facts import source, track, video

GRID = Grid(frame_rate=video().frame_rate, frames=30, segment_frames=30)
RUNG = PlannedRendition(quality="180p", width=320, height=180, video_kbps=300)


def every_command(tool: Ffmpeg, path: Path, out: Path) -> list[list[str]]:
    from contracts.plan import Encoding, PlannedAudio

    picture, encoding = video(320, 180), Encoding(preset="ultrafast")
    span = TranscodeSpan(
        **IDS, slug="x", output="r1", video=picture, grid=GRID, span=Span(first_segment=0, segments=1),
        renditions=(RUNG,), encoding=encoding,
    )  # fmt: skip
    sound = EncodeAudio(
        **IDS, prefix="x/", audio=PlannedAudio(track=0, stream=1, kbps=64), grid=GRID, video_start_s="0"
    )
    thumbnail = MakeThumbnail(**IDS, slug="x", video=picture, encoding=encoding)
    return [
        remux.command(tool, path, out / "copy.mkv", source(picture, track())),
        commands.transcode(tool, path, out, span, first_segment=0),
        commands.audio(tool, path, out, sound),
        commands.subtitles(tool, path, out, (PlannedSubtitle(track=0, stream=0, codec="subrip"),)),
        picture_commands.candidate(tool, path, out / "a.jpg", out / "a.gray", thumbnail, at_s=0.0),
    ]


async def main(paths: list[Path]) -> None:
    sniff.check_head = lambda path: None
    tools = await find_tools()
    for path in paths:
        out = Path(tempfile.mkdtemp(dir=path.parent, prefix="out"))
        with suppress(VlogError):
            await probe(tools, path)
        for tool in tools.tools:
            for argv in every_command(tool, path, out):
                with suppress(VlogError):
                    await encoder.output_of(argv, timeout_s=60)
        shutil.rmtree(out)
    print("looked at", len(paths))


if __name__ == "__main__":
    asyncio.run(main([Path(word) for word in sys.argv[1:]]))
