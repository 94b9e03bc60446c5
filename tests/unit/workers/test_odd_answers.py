"""What stands between a remote worker and its API may answer anything: the worker asks again, and goes on living."""

import json

import pytest

from contracts.errors import InternalTransient
from contracts.queues import Pool
from storage.http_calls import Away, NotOurs
from tests.replay.fake_plans import FACTS
from tests.support.odd_answers import ODD, PAGE, Said, answering
from workers.remote_api import RemoteApi
from workers.remote_step import _failure


@pytest.mark.parametrize("body", [PAGE, b"", b"[]", b"null", json.dumps({"heartbeat_interval": None}).encode()])
async def test_an_answer_that_is_none_of_ours_is_nobody_s(body: bytes) -> None:
    async def answer(path: str, sent: bytes) -> Said:
        return Said(200, body)

    async with answering(answer) as calls:
        api = RemoteApi(calls)
        for asked in (
            api.beat("idle"),
            api.claim(Pool.CPU, 3),
            api.progress("claim", None),
            api.complete("claim", FACTS),  # else its result would be thought to have arrived
            api.fail("claim", _failure(InternalTransient("It broke."))),
            api.cancelled("claim"),
        ):
            with pytest.raises(NotOurs):
                await asked


@pytest.mark.parametrize("said", ODD, ids=lambda said: f"{said.status} {said.body[:7].decode()}")
async def test_no_word_of_a_proxy_is_taken_for_a_person_s_or_for_an_end(said: Said) -> None:
    """Not even a 401: a key is wrong when the API says so, and then the worker ends."""

    async def answer(path: str, sent: bytes) -> Said:
        return said

    async with answering(answer) as calls:
        api = RemoteApi(calls)
        for asked in (api.beat("idle"), api.progress("claim", None), api.complete("claim", FACTS)):
            with pytest.raises(Away):
                await asked
