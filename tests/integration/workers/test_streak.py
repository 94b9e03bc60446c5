"""Five failures in a row: a worker asks Temporal for nothing more until a test of its own is clean; then it does."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio import activity
from temporalio.client import Client

from activities.failures import FailureInterceptor
from contracts.errors import EncoderCrashed
from contracts.queues import Pool
from contracts.states import WorkerStanding
from contracts.steps import TranscodedSpan, TranscodeSpan
from mirror.sessions import Database
from tests.integration.workers.queueing import all_queued, parts_of, span
from tests.integration.workers.test_quarantine import US, is_marked, register, told
from tests.support.eventually import eventually
from tests.support.media_facts import toolbox
from workers import build
from workers.build import build_worker
from workers.gate import Gate
from workers.quarantine import STREAK, Quarantine
from workers.quarantine_notes import MirrorNotes
from workers.serving import Serving

STEPS = 8


class Sick:
    """A machine whose encodes of videos fail. Its test is clean all the same, but while it is aside and not mended."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.mended = self.is_aside = False
        self.taken = self.failed_tests = 0

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        self.taken += 1
        if not self.mended:
            raise EncoderCrashed("It crashed.")
        return TranscodedSpan(segments=1)

    async def test(self, build: str) -> None:
        if self.is_aside and not self.mended:
            self.failed_tests += 1
            raise EncoderCrashed("Not yet.")

    def changed(self, aside: Mapping[Pool, str]) -> None:
        self.is_aside = bool(aside)
        self._gate.set_aside(aside)


async def test_after_five_failures_nothing_more_is_asked_for_until_a_test_is_clean(
    client: Client, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await register(database, US)
    # What failed is back in the queue at once: a worker that asked on would be seen to.
    parts, failures = parts_of(tmp_path, 1, toolbox()), FailureInterceptor(first_delay_s=0.05)
    serving = Serving(lambda pool: build_worker(client, pool, parts, failures), failures)
    gate = Gate([Pool.CPU], serving)
    sick = Sick(gate)
    monkeypatch.setattr(build, "steps", lambda pool, parts: [sick.transcode_span])
    quarantine = Quarantine(
        MirrorNotes(database, US, heard_within_s=90),
        [Pool.CPU],
        sick.changed,
        encode=sick.test,
        encode_on_device=sick.test,
        first_wait_s=0.1,
    )
    failures.health = quarantine
    stopping = asyncio.Event()
    spans = [span(360, number) for number in range(STEPS)]
    async with all_queued(client, spans, "streak", attempts=STREAK + 1) as ended:
        running = [asyncio.create_task(serving.run(stopping)), asyncio.create_task(quarantine.run())]
        gate.heard(WorkerStanding.WELCOME)

        async def is_aside() -> bool:
            # A second of tests that fail: time enough to take what waits.
            return sick.failed_tests >= 3 and await is_marked(database)

        await eventually(is_aside, within=60)
        assert sick.taken == STREAK
        sick.mended = True
        assert await asyncio.wait_for(ended, 60) == STEPS
        stopping.set()
        await running[0]
        running[1].cancel()
        with suppress(asyncio.CancelledError):
            await running[1]
    assert sick.taken == STREAK + STEPS
    assert not await is_marked(database)
    first, back = await told(database)
    assert (first.event, back.event) == ("worker.quarantined", "worker.released")
    assert "its last 5 steps failed, at last: It crashed." in first.message
