"""Run ffmpeg for a storyboard's sheets: by keyframes where they serve, by every picture where they do not."""

import asyncio
from contextlib import aclosing
from pathlib import Path

from contracts.errors import EncoderCrashed, OutputIncomplete, SourceUnreadable
from contracts.layout import sheet_name
from contracts.media import VideoFacts
from contracts.steps import MakeStoryboard
from media import encoder, picture_commands
from media.storyboard import Storyboard
from media.tools import Ffmpeg

_SPARSE_S = 12.0  # x264 and x265 put a keyframe every 250 pictures: 10.4 s of film
_SHORT_S = 1200.0  # a longer video is not decoded in full for its storyboard: a tile may stand for long


async def make_sheets(
    tool: Ffmpeg,
    source: Path,
    folder: Path,
    request: MakeStoryboard,
    board: Storyboard,
    memory_bytes: int = encoder.MEMORY_BYTES,
) -> list[Path]:
    """Write every sheet into `folder` and return them in order; all of them, or it fails."""
    sheets = [folder / sheet_name(index) for index in range(board.sheets)]
    for only_keyframes in (True, False) if keyframes_serve(request.video, board) else (False,):
        argv = picture_commands.storyboard(tool, source, folder, request, board, only_keyframes=only_keyframes)
        try:
            # No stall limit: a sheet is one picture of the output, and a hundred tiles long in the making.
            limit_s = 600 + 2 * request.duration_s
            async with aclosing(encoder.run(argv, timeout_s=limit_s, memory_bytes=memory_bytes)) as reports:
                async for _ in reports:
                    pass
        except (EncoderCrashed, SourceUnreadable):
            if not only_keyframes:
                raise
        if await asyncio.to_thread(_are_there, sheets):
            return sheets
    raise OutputIncomplete("ffmpeg did not make all sheets of the storyboard.")


def keyframes_serve(video: VideoFacts, board: Storyboard) -> bool:
    """Tell whether keyframes alone, a twentieth of the work, show enough of the video."""
    near = video.keyframe_gap_s <= max(_SPARSE_S, 2 * board.interval_s)
    return near or board.duration_ms > 1000 * _SHORT_S


def _are_there(sheets: list[Path]) -> bool:
    return all(sheet.is_file() and sheet.stat().st_size for sheet in sheets)
