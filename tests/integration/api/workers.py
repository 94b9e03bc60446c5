"""Workers as the API sees them: registered over HTTP, speaking with their key."""

from dataclasses import dataclass
from typing import Any

import httpx

from mirror.chores_workers import mark_silent_workers_offline
from tests.integration.api.running import Api

SILENT_S = 300.0


async def mark(api: Api) -> list[str]:
    """Mark offline who has been silent for too long, as housekeeping does."""
    async with api.database.write() as s:
        return await mark_silent_workers_offline(s, silent_s=SILENT_S, start_grace_s=0)


@dataclass(frozen=True)
class Machine:
    """A registered worker and its key."""

    api: Api
    worker_id: str
    key: str
    secret: str = ""

    async def beat(self, status: str | None = "idle", **more: Any) -> httpx.Response:
        body = more | ({"status": status} if status else {})
        return await self.api.http.post("/api/worker/heartbeat", json=body, headers={"X-Worker-API-Key": self.key})

    async def command(self, method: str, verb: str = "", **more: Any) -> httpx.Response:
        """Do something with it as a person would."""
        headers = {"X-Admin-Secret": self.secret, "X-Actor": "ana"}
        path = f"/api/workers/{self.worker_id}" + (f"/{verb}" if verb else "")
        return await self.api.http.request(method, path, headers=headers, **more)

    async def status(self) -> str:
        return str((await self.row())["status"])

    async def row(self) -> Any:
        [row] = await self.api.rows("SELECT * FROM workers WHERE worker_id = :id", id=self.worker_id)
        return row

    async def silent_for(self, seconds: float) -> None:
        await self.api.change(
            "UPDATE workers SET last_heartbeat = now() - make_interval(secs => :s) WHERE worker_id = :id",
            s=seconds,
            id=self.worker_id,
        )


async def register(api: Api, name: str = "studio", secret: str = "", **more: Any) -> Machine:
    headers = {"X-Admin-Secret": secret, "X-Actor": "ana"}
    answer = await api.http.post("/api/worker/register", json={"worker_name": name, **more}, headers=headers)
    assert answer.status_code == 201, answer.text
    return Machine(api, answer.json()["worker_id"], answer.json()["api_key"], secret)


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.json().keys() == {"error", "detail"}, answer.text
    return answer.status_code, answer.json()["error"]


async def events(api: Api) -> list[tuple[str, str | None]]:
    """Give the audit log: what happened, and who did it."""
    rows = await api.rows("SELECT event, actor FROM job_events WHERE job_id IS NULL ORDER BY id")
    return [(row["event"], row["actor"]) for row in rows]
