"""The embedded Temporal: our names, our retention, and histories that survive a kill."""

import asyncio
import json
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from runtime.embedded import embedded_temporal
from runtime.joining import Joined
from runtime.processes import identity
from runtime.temporal import connect, ensure_search_attributes, retention_of
from runtime.temporal_server import EmbeddedTemporal
from tests.support.eventually import eventually


async def client_of(server: EmbeddedTemporal) -> Client:
    joined = Joined("", server.address, server.namespace, "", embedded_temporal=True)
    return await connect(joined, connect_timeout=timedelta(seconds=5))


def server_pid(folder: Path) -> int:
    return int(json.loads((folder / "pids" / "temporal").read_text())["pid"])


async def test_it_starts_in_seconds_with_its_page_its_names_and_thirty_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A person's own profile, for a server far away, must not reach this one.
    monkeypatch.setenv("TEMPORAL_API_KEY", "somebody-else")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "203.0.113.1:7233")
    monkeypatch.setenv("TEMPORAL_TLS", "true")
    began = time.monotonic()
    async with embedded_temporal(tmp_path) as server:
        assert time.monotonic() - began < 20
        client = await client_of(server)
        assert await retention_of(client) == timedelta(days=30)
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
        assert {"VideoId", "VideoStatus", "VideoOwner", "Tier"} <= set(known.custom_attributes)
        assert await asyncio.gather(*(ensure_search_attributes(client) for _ in range(2))) == [True, True]
        async with httpx.AsyncClient(trust_env=False) as browser:
            page = await browser.get(server.ui_url, follow_redirects=True)
        assert page.status_code == 200 and "html" in page.headers["content-type"]
        pid = server_pid(tmp_path)
    assert identity(pid) is None


async def test_a_killed_server_comes_back_with_its_workflows(tmp_path: Path) -> None:
    async with embedded_temporal(tmp_path) as server:
        client = await client_of(server)
        await client.start_workflow("TranscodeVideo", id="video-1-job-1", task_queue="nobody-serves-this")
        pid = server_pid(tmp_path)
        os.kill(pid, signal.SIGKILL)

        async def known() -> bool:
            try:
                handle = client.get_workflow_handle("video-1-job-1")
                described = await handle.describe(rpc_timeout=timedelta(seconds=1))
            except RPCError:
                return False
            return described.status == WorkflowExecutionStatus.RUNNING

        async def another() -> bool:
            try:
                return server_pid(tmp_path) != pid
            except (FileNotFoundError, ValueError):
                return False

        await eventually(another, within=5)
        await eventually(known, within=10)
    async with embedded_temporal(tmp_path) as server:
        described = await (await client_of(server)).get_workflow_handle("video-1-job-1").describe()
        assert described.status == WorkflowExecutionStatus.RUNNING
