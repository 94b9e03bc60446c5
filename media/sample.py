"""A clip for whoever has none at hand."""

from contextlib import aclosing
from pathlib import Path

from contracts.media import FrameRate
from media import commands, encoder
from media.tools import Toolbox

_STALL_S = 60.0


async def make_sample(
    tools: Toolbox,
    path: Path,
    *,
    seconds: float = 20,
    size: tuple[int, int] = (1920, 1080),
    rate: FrameRate | None = None,
) -> None:
    """Write an MP4 with a moving picture and a beep every second."""
    tool = tools.pick(filters=("testsrc2", "sine"))
    argv = commands.sample(tool, path, seconds=seconds, size=size, rate=rate)
    async with aclosing(encoder.run(argv, stall_s=_STALL_S)) as reports:
        async for _ in reports:
            pass
