"""One claimed step on a remote worker, and an API that is slow, refuses, is newer, or is not the one that answers."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.message import Message
from storage import http_calls
from storage.http_calls import Refused, WorkerCalls
from tests.replay.fake_plans import FACTS
from tests.support.odd_answers import ODD, Said, answering, ours, refusal
from workers import remote_step
from workers.remote_api import ClaimedStep, RemoteApi
from workers.remote_step import RemoteStepRun

ACCEPTED = ours(job_id=1, step_key="probe", accepted=True)
HELD = ours(cancel_requested=False)
REQUEST = {"job_id": 1, "video_id": 1, "source_key": "uploads/1.mp4"}
Step = Callable[[Any], Awaitable[Message]]


@dataclass
class Far:
    """An API that says of each call what is next in its list, the last of it for ever."""

    progress: list[Said] = field(default_factory=lambda: [HELD])
    complete: list[Said] = field(default_factory=lambda: [ACCEPTED])
    fail: list[Said] = field(default_factory=lambda: [ACCEPTED])
    slow_s: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    told: list[dict[str, Any]] = field(default_factory=list)  # of the end
    refused: list[Refused] = field(default_factory=list)

    async def answer(self, path: str, sent: bytes) -> Said:
        what = path.rpartition("/")[2]
        self.asked[what] += 1
        if what == "progress":
            await asyncio.sleep(self.slow_s)
        elif what in ("complete", "fail"):
            self.told.append(json.loads(sent))
        else:
            return ours(created=True)
        said: list[Said] = getattr(self, what)
        return said.pop(0) if len(said) > 1 else said[0]

    async def run(self, step: Step | None, heartbeat_s: float = 30.0, **claimed: Any) -> float:
        """Run a step to its end; gives how long that took."""
        about: dict[str, Any] = {
            "claim": "claim",
            "activity": "probe",
            "job_id": 1,
            "step_key": "probe",
            "generation": 0,
            "attempt": 1,
            "queue": "vlog-probe",
            "workflow_id": "video-1-job-1",
            "started_at": datetime.now(UTC),
            "heartbeat_timeout_s": heartbeat_s,
            "progress_every_s": 0.05,
            "request": REQUEST,
        }
        began = time.monotonic()
        async with asyncio.timeout(10), answering(self.answer) as calls:
            self.calls: WorkerCalls = calls
            await RemoteStepRun(RemoteApi(calls), ClaimedStep(**about | claimed), step, [], self.refused.append).run()
            assert not calls.heard_at
        return time.monotonic() - began


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_calls, "FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(http_calls, "LONGEST_WAIT_S", 0.05)
    monkeypatch.setattr(remote_step, "AGAIN_S", 0.05)
    monkeypatch.setattr(remote_step, "GRACE_S", 0.0)


async def probe(request: Any) -> Message:
    return FACTS


async def endless(request: Any) -> Message:
    await asyncio.sleep(600)
    return FACTS


async def test_no_word_of_a_proxy_throws_a_result_away() -> None:
    far = Far(complete=[*ODD, ACCEPTED])
    await far.run(probe)
    assert far.asked["complete"] == len(ODD) + 1 and not far.asked["fail"] and not far.refused


async def test_no_word_of_a_proxy_ends_the_beats() -> None:
    """Nor does one of the API's own that nobody expects here."""

    async def lasts(request: Any) -> Message:
        while far.asked["progress"] < len(ODD) + 3:
            await asyncio.sleep(0.01)
        return FACTS

    far = Far(progress=[*ODD, refusal(507, "STORAGE_FULL"), HELD])
    await far.run(lasts)
    assert far.asked["complete"] == 1 and not far.refused


@pytest.mark.parametrize("why", [refusal(401, "WORKER_KEY_INVALID"), refusal(403, "CLAIM_NOT_YOURS")])
async def test_an_end_that_nobody_takes_is_not_told_for_ever(why: Said) -> None:
    """Though the claim is held: the heartbeat timeout ends it."""
    far = Far(complete=[refusal(422, "INVALID_RESULT")], fail=[why])
    assert await far.run(probe, heartbeat_s=0.5) < 5
    assert far.asked["complete"] == 1 and far.asked["fail"] < 40
    assert far.told[1]["code"] == "INTERNAL_TRANSIENT"


async def test_a_claim_that_no_api_can_open_any_more_ends_its_step_when_it_runs_out() -> None:
    """As when all APIs were started with another sealing key."""
    far = Far(progress=[HELD, refusal(403, "CLAIM_NOT_YOURS")])
    assert await far.run(endless, heartbeat_s=0.5) < 5
    assert {each.answer for each in far.refused} == {"CLAIM_NOT_YOURS"}
    assert not far.told


async def test_a_claim_that_one_of_two_apis_cannot_open_is_brought_to_the_other() -> None:
    """As while keys are changed: neither beats nor a finished result are given up for it."""

    async def lasts(request: Any) -> Message:
        while far.asked["progress"] < 5:
            await asyncio.sleep(0.01)
        return FACTS

    no = refusal(403, "CLAIM_NOT_YOURS")
    far = Far(progress=[HELD, no, HELD, no, HELD], complete=[no, no, ACCEPTED])
    await far.run(lasts)
    assert far.asked["complete"] == 3 and not far.asked["fail"]


async def test_a_result_that_something_keeps_from_the_api_becomes_a_failure_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_calls, "STRANGERS_S", 0.1)
    far = Far(complete=[Said(403, b"<html>")])
    await far.run(probe)
    assert far.asked["fail"] == 1 and "did not reach the API" in far.told[-1]["error_message"]


@pytest.mark.parametrize(
    ("step", "claimed"),
    [
        (probe, {"request": {"job_id": 1, "asked_since_then": True}}),
        (probe, {"activity": "asked_since_then"}),
        (None, {}),
    ],
    ids=["a request it cannot read", "a step nobody knew", "a step it has not got"],
)
async def test_a_step_of_newer_code_is_handed_back_at_no_attempt(step: Step | None, claimed: dict[str, Any]) -> None:
    far = Far()
    await far.run(step, **claimed)
    [told] = far.told
    assert far.asked["fail"] == 1 and (told["code"], told["retry_after_s"]) == ("WORKER_FULL", 15.0)
    assert "another version than this worker" in told["error_message"]


async def test_an_api_that_is_slow_is_not_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_step, "PROGRESS_S", 0.05)
    far = Far(slow_s=0.15)

    async def lasts(request: Any) -> Message:
        await asyncio.sleep(1.3)
        return FACTS

    await far.run(lasts, heartbeat_s=0.9)
    assert far.asked["complete"] == 1


async def test_who_reads_and_writes_knows_that_its_claim_lives() -> None:
    far = Far(progress=[HELD, Said(503)])

    async def stores(request: Any) -> Message:
        for _ in range(13):
            await far.calls.insist("PUT", "/api/worker/output/x", lambda answer: answer.json(), claim="claim")
            await asyncio.sleep(0.1)
        return FACTS

    await far.run(stores, heartbeat_s=0.6)
    assert far.asked["complete"] == 1
