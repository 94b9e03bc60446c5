"""Steps over HTTP: taken, told of, ended; and what becomes of them when callers, APIs or Temporal go away."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import WorkflowFailureError

from contracts.steps import TranscodedSpan
from tests.integration.api.claiming import SOURCE, WAIT, Remote, claimed, post, step
from tests.integration.api.running import Api, TemporalServer, serving
from tests.integration.api.workers import refused, register
from tests.support.eventually import eventually

PROGRESS = {
    "percent": 50.0,
    "frames": 300,
    "speed": 2.0,
    "qualities": [{"quality": "720p", "segments_total": 4, "segments_completed": 2, "percent": 50.0}],
}


async def test_a_step_is_done_over_http_and_looks_like_any_other(api: Api) -> None:
    async with step(api) as waiting:
        remote = await claimed(api)
        assert remote.claimed["request"]["source_key"] == waiting.span.source_key
        assert (remote.claimed["attempt"], remote.claimed["heartbeat_timeout_s"]) == (1, 60.0)

        whole = await remote.get(f"source/{waiting.span.source_key}")
        assert (whole.status_code, whole.content) == (200, SOURCE)
        part = await remote.get(f"source/{waiting.span.source_key}", Range="bytes=10-19")
        assert (part.status_code, part.content) == (206, SOURCE[10:20])

        for name, created in (("init.mp4", True), ("seg_00000.m4s", True), ("seg_00000.m4s", False)):
            stored = await remote.put(waiting.folder + name, name.encode())
            assert (stored.status_code, stored.json()["created"]) == (200, created), stored.text
        listed = (await remote.get(f"output/{waiting.folder}")).json()["items"]
        assert [item["key"] for item in listed] == [waiting.folder + "init.mp4", waiting.folder + "seg_00000.m4s"]
        assert (await remote.get(f"output/{waiting.folder}init.mp4")).content == b"init.mp4"

        heard = await remote.tell("progress", progress=PROGRESS)
        assert heard.json() == {"cancel_requested": False, "claim_expires_in_s": 60.0}

        async def shown() -> bool:
            rows = await api.rows(
                "SELECT s.percent, s.worker_name, s.outcome, s.queue, j.worker_id, w.status, w.asked_at"
                " FROM job_steps s JOIN transcoding_jobs j ON j.id = s.job_id"
                " JOIN workers w ON w.worker_id = s.worker_id WHERE s.job_id = :job",
                job=waiting.span.job_id,
            )
            found = [tuple(row.values())[:6] for row in rows]
            return found == [(50.0, "studio", "running", "vlog-cpu", remote.machine.worker_id, "busy")]

        await eventually(shown, within=5)
        assert (await remote.machine.row())["asked_at"] is not None

        done = await remote.tell("complete", result={"segments": 4, "encoded_frames": 600})
        assert (done.status_code, done.json()["accepted"]) == (200, True)
        assert await waiting.handle.result() == TranscodedSpan(segments=4, encoded_frames=600)

        # Said again, or when it is over: gone.
        again = [
            await remote.tell("complete", result={"segments": 4}),
            await remote.tell("progress"),
            await remote.tell("fail"),
            await remote.put(waiting.folder + "seg_00001.m4s", b"late"),
            await remote.get(f"source/{waiting.span.source_key}"),
        ]
        assert {refused(answer) for answer in again} == {(409, "CLAIM_EXPIRED")}

        async def told() -> bool:
            return await waiting.attempts() == [("completed", 0, 1, None)]

        await eventually(told, within=5)


async def test_what_a_failure_means_is_read_from_its_code(api: Api) -> None:
    async with step(api) as waiting:
        remote = await claimed(api)
        handed_back = await remote.tell("fail", code="DRAINED", error_message="The worker was stopped.")
        assert handed_back.status_code == 200
        remote = await claimed(api, machine=remote.machine)
        assert (remote.claimed["generation"], remote.claimed["attempt"]) == (1, 1)
        crashed = await remote.tell("fail", code="ENCODER_CRASHED", error_message="It broke.", retry_delay_s=0.2)
        assert crashed.status_code == 200
        remote = await claimed(api, machine=remote.machine)
        assert (remote.claimed["generation"], remote.claimed["attempt"]) == (1, 2)
        unreadable = await remote.tell("fail", code="SOURCE_UNREADABLE", error_message="No film.", detail="moov?")
        assert unreadable.status_code == 200
        # And it leaves. What its step told last does not bring it back.
        assert (await remote.machine.beat("offline")).status_code == 200
        assert await remote.machine.status() == "offline"
        with pytest.raises(WorkflowFailureError) as failed:
            await waiting.handle.result()
        assert "No film." in str(failed.value.cause.__cause__ or failed.value.cause)

        async def told() -> bool:
            return await waiting.attempts() == [
                ("partial", 0, 1, "DRAINED"),
                ("failed", 1, 1, "ENCODER_CRASHED"),
                ("failed", 1, 2, "SOURCE_UNREADABLE"),
            ]

        await eventually(told, within=5)
        assert await remote.machine.status() == "offline"


async def test_a_cancel_is_heard_with_the_next_progress(api: Api) -> None:
    async with step(api) as waiting:
        remote = await claimed(api)
        assert refused(await remote.tell("fail", code="CANCELLED")) == (400, "CLAIM_REFUSED")
        await waiting.handle.cancel()

        async def heard() -> bool:
            return bool((await remote.tell("progress")).json()["cancel_requested"])

        await eventually(heard, within=5)
        assert (await remote.tell("fail", code="CANCELLED")).status_code == 200
        with pytest.raises(WorkflowFailureError):
            await waiting.handle.result()


async def test_who_hangs_up_is_given_nothing_and_costs_nothing(api: Api) -> None:
    """Callers that go away at every moment around the one when a step comes."""
    flaky, steady = await register(api, "flaky"), await register(api, "steady")
    for late_s in (0.0, 0.002, 0.005, 0.01, 0.02, 0.03):
        asking = asyncio.create_task(post(api, flaky, "claim", **WAIT))
        await asyncio.sleep(0.2)  # it waits by now
        async with step(api, heartbeat_s=3) as waiting:
            await asyncio.sleep(late_s)
            if asking.done():  # it was given the step: no race this time
                continue
            asking.cancel()
            remote = await claimed(api, machine=steady)
            if remote.claimed["attempt"] != 1:  # only when the answer was on the wire already
                rows = await api.rows("SELECT worker_name FROM job_steps WHERE job_id = :job", job=waiting.span.job_id)
                assert "flaky" in [row["worker_name"] for row in rows]
            assert (await remote.tell("complete", result={"segments": 4})).status_code == 200
            await waiting.handle.result()


async def test_an_api_that_stops_answers_those_who_wait_and_the_next_one_knows_their_claims(
    database_url: str, tmp_path: Path, temporal_server: TemporalServer
) -> None:
    where = {"temporal_address": temporal_server.address}  # and no key: they share that of the database
    async with (
        serving(database_url, tmp_path / "storage", **where) as first,
        serving(database_url, tmp_path / "storage", **where) as second,
        step(first) as waiting,
    ):
        remote = await claimed(first)
        idle = asyncio.create_task(post(first, remote.machine, "claim", pool="cpu", wait_s=30))
        await asyncio.sleep(0.2)
        first.app.state.gateway.close()
        moved = Remote(remote.machine, second, remote.claimed)
        assert (await moved.tell("progress", progress=PROGRESS)).status_code == 200
        async with asyncio.timeout(10):
            assert (await idle).status_code == 204
        assert (await moved.put(waiting.folder + "init.mp4", b"x")).status_code == 200
        assert (await moved.tell("complete", result={"segments": 4})).status_code == 200
        await waiting.handle.result()


async def test_while_temporal_is_away_workers_are_told_to_come_back(lonely_api: Api) -> None:
    machine = await register(lonely_api)
    answer = await post(lonely_api, machine, "claim", **WAIT)
    assert refused(answer) == (503, "TEMPORAL_UNAVAILABLE")
    assert int(answer.headers["Retry-After"]) > 0
