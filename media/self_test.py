"""Is it the file, or is it us? A few pictures of our own, through everything a video goes through on this machine."""

import asyncio
from contextlib import aclosing
from pathlib import Path

from contracts.errors import OutputIncomplete
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.layout import INIT, segment_name
from contracts.media import SourceFacts
from contracts.states import Codec
from contracts.steps import TranscodeSpan
from media import commands, encoder, verify
from media.boxes import canonical_init, read_init
from media.choosing import ENCODERS
from media.planning import PlanOptions, make_plan
from media.probe import probe
from media.tools import Ffmpeg, Needs, Toolbox

_WIDTH, _HEIGHT, _RATE, _PICTURES = 128, 72, 12, 12
_STALL_S = 60.0


async def self_test(tools: Toolbox, here: Path, *, build: str = "") -> None:
    """Probe, plan, encode and check a second of video in `here`; raise what goes wrong.

    `build` names the ffmpeg that is in doubt; without it the one that most plans choose is tried. It needs nothing
    but the machine: no Temporal, no Postgres, and no filter that makes pictures.
    """
    source = here / "self-test.y4m"
    await asyncio.to_thread(source.write_bytes, _pictures())
    facts = await probe(tools, source)
    able = [tool for tool in tools.tools if not tool.lacks(Needs(encoders=frozenset({ENCODERS[Codec.H264]})))]
    for tool in [tool for tool in able if tool.build == build] or able[:1]:
        await _encode(tool, source, facts, here / "made")


async def _encode(tool: Ffmpeg, source: Path, facts: SourceFacts, output: Path) -> None:
    plan = make_plan(facts, PlanOptions(segment_seconds=_PICTURES / _RATE, preset="ultrafast"), Toolbox((tool,)))
    request = TranscodeSpan(
        job_id=JobId(0),
        video_id=VideoId(0),
        source_key=ObjectKey("self-test"),
        slug="self-test",
        output="r0",
        video=facts.video,
        grid=plan.grid,
        span=plan.spans[0],
        renditions=plan.renditions,
        encoding=plan.encoding,
    )
    argv = commands.transcode(tool, source, output, request, first_segment=0)
    async with aclosing(encoder.run(argv, stall_s=_STALL_S)) as reports:
        async for _ in reports:
            pass
    for rendition in plan.renditions:
        await asyncio.to_thread(_check, output / rendition.quality, request)


def _check(made: Path, request: TranscodeSpan) -> None:
    if not (made / INIT).is_file() or not (made / segment_name(0)).is_file():
        raise OutputIncomplete("ffmpeg ended well and left nothing.")
    init = read_init(canonical_init((made / INIT).read_bytes()))
    verify.check_video_segment(made / segment_name(0), init, request.grid, 0)


def _pictures() -> bytes:
    """A grey that grows brighter, uncompressed: there is nothing in it that a working machine could stumble over."""
    head = f"YUV4MPEG2 W{_WIDTH} H{_HEIGHT} F{_RATE}:1 Ip A1:1 C420jpeg\n".encode()
    colours = bytes([128]) * (_WIDTH * _HEIGHT // 2)
    frames = (b"FRAME\n" + bytes([20 + 16 * n]) * (_WIDTH * _HEIGHT) + colours for n in range(_PICTURES))
    return head + b"".join(frames)
