"""Where a worker's key may be sent without a word, and what the answers to its calls mean."""

import asyncio

import pytest

from contracts.errors import ObjectMissing, ScratchFull, StorageAway, StorageUnavailable, VlogError
from storage import http_calls
from storage.http_calls import Away, ClaimGone, NotOurs, Refused, StorageSilent, is_open_to_all
from tests.support.odd_answers import Said, answering, refusal
from workers.quarantine import BLAMES_OTHERS

A_PROXYS = b"<html>There is nothing at this address.</html>"
A_STRANGERS = b'{"error": "Unauthorized", "detail": "Log in first."}'


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("https://vlog.example.org", False),
        ("http://vlog.example.org", True),
        ("http://192.168.1.5:9000", True),
        ("http://127.0.0.1:9000", False),
        ("http://[::1]:9000", False),
    ],
)
def test_over_plain_http_a_key_can_be_read_unless_it_stays_here(url: str, is_open: bool) -> None:
    assert is_open_to_all(url) is is_open


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        (refusal(404, "OBJECT_MISSING"), ObjectMissing),
        (Said(404, A_PROXYS), NotOurs),  # it does not know the API just now: no source is lost for that
        (refusal(507, "STORAGE_FULL"), ScratchFull),  # it waits for room, as local workers do
        (refusal(409, "CLAIM_EXPIRED"), ClaimGone),
        (Said(409, A_PROXYS), NotOurs),
        (refusal(401, "WORKER_KEY_INVALID"), Refused),  # which ends the worker
        (Said(401, A_PROXYS), NotOurs),
        (Said(401, A_STRANGERS), NotOurs),
        (refusal(403, "WORKER_DISABLED"), Refused),  # by a person
        (Said(403, A_PROXYS), NotOurs),
        (Said(302, b""), NotOurs),
        (Said(507, A_PROXYS), NotOurs),
        (Said(413, A_PROXYS), Refused),
        (Said(502, A_PROXYS), Away),
        (refusal(503, "TEMPORAL_UNAVAILABLE"), Away),
        (refusal(503, "STORAGE_UNAVAILABLE"), StorageSilent),
        (Said(520, A_PROXYS), Away),  # Cloudflare, when the connection was reset …
        (Said(521, A_PROXYS), Away),  # … while the API is restarted …
        (Said(530, A_PROXYS), Away),  # … and while its tunnel is away
    ],
    ids=lambda value: f"{value.status} {value.body[:9].decode()}" if isinstance(value, Said) else value.__name__,
)
async def test_what_an_answer_means(said: Said, meaning: type[VlogError]) -> None:
    async def answer(path: str, sent: bytes) -> Said:
        return said

    async with answering(answer) as calls:
        with pytest.raises(VlogError) as asked:
            await calls.ask("GET", "/api/worker/source/uploads/1.mp4", claim="claim")
        with pytest.raises(VlogError) as read:
            async with calls.stream("/api/worker/source/uploads/1.mp4", str, claim="claim"):
                pass
        assert (asked.type, read.type) == (meaning, meaning)


@pytest.mark.parametrize(
    ("health", "meaning"),
    [(b'{"storage": {"ok": false}}', StorageAway), (b'{"storage": {"ok": true}}', StorageUnavailable)],
    ids=["all of it", "one file"],
)
async def test_a_storage_that_leaves_the_api_without_an_answer_is_asked_about_in_the_end(
    monkeypatch: pytest.MonkeyPatch, health: bytes, meaning: type[VlogError]
) -> None:
    """A step that waited on would run into its time limit: a try, for what no try can mend."""
    monkeypatch.setattr(http_calls, "STORAGE_S", 0.3)
    asked: list[str] = []

    async def answer(path: str, sent: bytes) -> Said:
        asked.append(path)
        return Said(503, health) if path == "/api/health" else refusal(503, "STORAGE_UNAVAILABLE")

    async with answering(answer) as calls:
        with pytest.raises(VlogError) as told:
            await calls.insist("GET", "/api/worker/source/uploads/1.mp4", str, claim="claim")
    assert told.type is meaning
    assert len(asked) > 2 and asked.count("/api/health") == 1


def test_no_refusal_speaks_against_the_machine() -> None:
    """Five of them in a row would set it aside."""
    assert issubclass(Refused, BLAMES_OTHERS) and issubclass(NotOurs, BLAMES_OTHERS)


async def test_an_api_that_is_away_is_waited_for_but_not_one_in_whose_place_somebody_else_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule of a firewall may dislike just this file for ever: the step is tried again, by another way perhaps."""
    monkeypatch.setattr(http_calls, "FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(http_calls, "STRANGERS_S", 0.1)
    said = Said(521)

    async def answer(path: str, sent: bytes) -> Said:
        return said

    async with answering(answer) as calls:
        asking = asyncio.create_task(calls.insist("PUT", "/api/worker/output/x", str, claim="claim"))
        assert not (await asyncio.wait([asking], timeout=0.5))[0]
        said = Said(403)
        with pytest.raises(NotOurs, match="403"):
            await asyncio.wait_for(asking, 5)
