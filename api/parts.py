"""What the routes work with, put together once by the entry point and handed to each request."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request
from temporalio.client import Client

from api.starting import Starter
from api.telling import Teller
from mirror.sessions import Database
from runtime.settings import Settings
from storage.store import Store


@dataclass(frozen=True)
class Parts:
    settings: Settings
    database: Database
    store: Store
    temporal: Client
    starter: Starter
    teller: Teller
    temporal_ui_url: str | None = None
    # By upload, the requests of this process that send to it: each is set when all that came with it has been counted.
    sending: dict[str, set[asyncio.Event]] = field(default_factory=lambda: defaultdict(set))


def parts_of(request: Request) -> Parts:
    return cast(Parts, request.app.state.parts)


async def _here(request: Request) -> Parts:
    """The same for FastAPI, which has a thread run what is not async: for every request."""
    return parts_of(request)


Here = Annotated[Parts, Depends(_here)]
