"""The running service tells a receiver of what happens, and shows it in numbers."""

import hashlib
import hmac
import re
from pathlib import Path

import httpx

from tests.e2e.service import Service
from tests.support.eventually import eventually
from tests.support.receiving import receiving


async def test_a_failed_video_is_told_to_its_webhook_and_counted(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "text.mp4"
    path.write_bytes(b"hello, this is not a video\n" * 100)
    async with receiving() as receiver, httpx.AsyncClient(base_url=service.url, timeout=30) as http:
        wanted = {"name": "site", "url": receiver.url, "events": ["video.failed"]}
        hook = (await http.post("/api/webhooks", json=wanted)).json()
        try:
            created = await service.upload(path)

            async def is_told() -> bool:
                return any(got.body["data"]["video"]["video_id"] == created["video_id"] for got in receiver.got)

            await eventually(is_told, within=30)
        finally:
            assert (await http.delete(f"/api/webhooks/{hook['webhook_id']}")).status_code == 204
        [got] = [got for got in receiver.got if got.body["data"]["video"]["video_id"] == created["video_id"]]
        signed = f"{got.headers['x-vlog-timestamp']}.".encode() + got.raw
        expected = hmac.new(hook["secret"].encode(), signed, hashlib.sha256).hexdigest()
        assert got.headers["x-vlog-signature"] == f"sha256={expected}"
        code = got.body["data"]["video"]["error_code"]
        assert code.startswith("SOURCE_")

        async def is_counted() -> bool:  # a scrape is up to five seconds old
            found = re.search(rf'^vlog_jobs_failed_total{{code="{code}"}} (\d+)$', await scrape(http), re.MULTILINE)
            return found is not None and int(found[1]) >= 1

        await eventually(is_counted, within=15)
        answer = await scrape(http)
        assert 'vlog_up{part="temporal"} 1' in answer and 'vlog_workers{status="idle"} ' in answer


async def scrape(http: httpx.AsyncClient) -> str:
    answer = await http.get("/metrics")
    assert answer.status_code == 200
    return answer.text
