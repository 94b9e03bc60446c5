"""`vlog workers` against the real API: what the one asks for is what the other answers."""

import asyncio
import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cli.main import app
from tests.integration.api.running import Api, serving
from tests.integration.api.workers import Machine, refused


async def vlog(api: Api, *words: str) -> str:
    env = {"VLOG_API_URL": api.url, "VLOG_ADMIN_SECRET": "ruler", "VLOG_WORKER_ADMIN_SECRET": "hirer"}
    result = await asyncio.to_thread(CliRunner().invoke, app, ["workers", *words], env=env)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.stdout


async def test_a_worker_s_life_from_the_command_line(database_url: str, tmp_path: Path) -> None:
    secrets = {"admin_secret": "ruler", "worker_admin_secret": "hirer"}
    async with serving(database_url, tmp_path / "storage", **secrets) as api:

        async def told(*words: str) -> Any:
            # The API runs in this process, and its log goes where the command prints.
            return json.loads((await vlog(api, *words, "--json")).splitlines()[-1])

        assert "No workers" in await vlog(api)
        made = await told("register", "studio", "--capabilities", '{"slots": {"cpu": 2}}')
        studio = Machine(api, made["worker_id"], made["api_key"], "ruler")
        assert (await studio.beat("busy")).json()["standing"] == "welcome"
        assert [worker["status"] for worker in (await told("list", "--status", "busy"))["items"]] == ["busy"]
        assert "cpu:2" in await vlog(api, "list")
        assert "Worker studio is disabled." in await vlog(api, "disable", "studio")
        assert refused(await studio.beat()) == (403, "WORKER_DISABLED")
        assert (await told("enable", studio.worker_id[:8]))["standing"] == "welcome"
        printed = await vlog(api, "key", "studio", "--days", "2")
        new = Machine(api, studio.worker_id, printed.split("key     ")[1].split()[0], "ruler")
        assert (await new.beat()).status_code == 200
        first = (await told("show", "studio"))["keys"][-1]["key_id"]
        assert (await told("revoke", "studio", "--key", str(first)))["standing"] == "welcome"
        assert refused(await studio.beat()) == (401, "WORKER_KEY_REVOKED")
        assert "last used" in await vlog(api, "show", "studio")
        assert "is revoked" in await vlog(api, "revoke", "studio")
        assert refused(await new.beat()) == (401, "WORKER_KEY_REVOKED")
        assert (await told("delete", "studio"))["deleted"]
        assert (await told())["items"] == []
