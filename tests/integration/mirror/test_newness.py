"""Threads ask whether there is no video yet, for as long as that is so."""

import asyncio
from typing import NoReturn

import pytest

from mirror import newness
from mirror.sessions import Database
from tests.integration.mirror.story import upload


async def test_a_service_is_new_until_there_is_a_video(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = await newness.newness(database)
    assert await asyncio.to_thread(ask)

    async def away(database: Database) -> NoReturn:
        raise OSError("Postgres is away")

    with monkeypatch.context() as patched:
        patched.setattr(newness, "is_new", away)
        assert not await asyncio.to_thread(ask), "who cannot ask makes no storage"
    assert await asyncio.to_thread(ask)
    await upload(database)
    assert not await asyncio.to_thread(ask)
    monkeypatch.setattr(newness, "is_new", away)
    assert not await asyncio.to_thread(ask)
