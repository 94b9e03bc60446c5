"""Seed 001's cap: never more at once than there are slots, whatever is queued; and fewer when they are large."""

import asyncio
import os
from itertools import accumulate
from pathlib import Path

import pytest
from temporalio.client import Client

from contracts.queues import share_of
from media.planning import PlanOptions
from media.tools import find_tools
from tests.e2e.conftest import make_clip
from tests.integration.workers.queueing import CountedSteps, all_queued, parts_of, span, worker
from tests.support.encoding import prepare
from tests.support.media_facts import toolbox
from workers import build

SLOTS = 3
LARGE = 4  # slots that the rungs of 2160p would take
WITHIN_S = 120.0  # of steps that take a tenth of a second


async def test_never_more_steps_run_than_there_are_slots_whatever_is_queued_and_large_ones_take_several(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = CountedSteps(together=SLOTS)
    monkeypatch.setattr(build, "steps", lambda pool, parts: [steps.transcode_span])
    sides = [2160, 2160, *[360] * 20, 2160]
    spans = [span(side, number) for number, side in enumerate(sides)]
    async with all_queued(client, spans, "cap") as ended, worker(client, parts_of(tmp_path, SLOTS, toolbox())):
        assert await asyncio.wait_for(ended, WITHIN_S) == len(spans)
    assert len(steps.seen) == len(spans)
    assert max(len(running) for running in steps.seen) == SLOTS
    # A large one takes two of three, and leaves the last to whoever comes.
    assert sum(running[-1] == LARGE for running in steps.seen) == sides.count(2160)
    assert all(len(running) == 2 for running in steps.seen if LARGE in running[:-1]), steps.seen
    before = [[share_of(SLOTS, weight) for weight in running[:-1]] for running in steps.seen]
    assert all(sum(taken) < SLOTS for taken in before), "somebody was asked for without a free slot"


COUNTED = """#!/bin/sh
case " $* " in
*" libx264 "*)
    echo + >> {told}
    # The first of all waits for company, so that a slow machine shows it too.
    for look in $(seq 100); do [ "$(grep -c + {told})" -ge {slots} ] && break; sleep 0.1; done
    {ffmpeg} "$@"
    code=$?
    echo - >> {told}
    exit $code
    ;;
esac
exec {ffmpeg} "$@"
"""


async def test_never_more_encoders_run_than_there_are_slots(client: Client, tmp_path: Path) -> None:
    told, real, program = tmp_path / "told", (await find_tools()).pick(), tmp_path / "ffmpeg"
    program.write_text(COUNTED.format(told=told, ffmpeg=real.ffmpeg, slots=SLOTS))
    program.chmod(0o755)
    os.symlink(real.ffprobe, tmp_path / "ffprobe")
    tools = await find_tools(str(program))
    clip = tmp_path / "clip.mp4"
    make_clip(await find_tools(), clip, seconds=1, size="160x90")
    parts = parts_of(tmp_path, SLOTS, tools)
    await parts.store.put_file("uploads/1", clip)
    work = await prepare(tools, clip, PlanOptions(preset="ultrafast"))
    told.write_text("")
    spans = [work.span(alone=False).model_copy(update={"output": f"r{number}"}) for number in range(10)]
    async with all_queued(client, spans, "encoders") as ended, worker(client, parts):
        await asyncio.wait_for(ended, WITHIN_S)
    running = list(accumulate(1 if line == "+" else -1 for line in told.read_text().split()))
    assert len(running) == 2 * len(spans) and max(running) == SLOTS
