"""Machines that reach only the API encode a video between them, while the API itself is killed, or rolled."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from media.tools import Toolbox
from tests.e2e.conftest import SLOW, make_clip
from tests.e2e.joined import check_joined
from tests.e2e.remote import answering, asking, encoding, remote_worker, serving_elsewhere, steps
from tests.e2e.rolling import rolling
from tests.e2e.service import Service
from tests.e2e.test_crashes import pids
from tests.support.eventually import eventually

SECONDS, RATE = 16, 30
LONG_S = 40


@pytest.fixture(scope="module")
def remote_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    # Long enough for an API to come back on a busy machine; nobody waits for it to run out.
    patience = {"VLOG_STEP_HEARTBEAT_TIMEOUT_SECONDS": "30"}
    with serving_elsewhere(tmp_path_factory.mktemp("remote"), patience) as service:
        yield service


@pytest.fixture(scope="module")
def paced(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An encoder that is slow enough for something to happen meanwhile."""
    folder, tool = tmp_path_factory.mktemp("paced"), tools.pick()
    (folder / "ffmpeg").write_text(SLOW.format(ffmpeg=tool.ffmpeg, folder=folder))
    (folder / "ffmpeg").chmod(0o755)
    (folder / "ffprobe").symlink_to(tool.ffprobe)
    return str(folder / "ffmpeg")


async def test_machines_that_reach_only_the_api_encode_through_its_death_and_hand_back_when_stopped(
    remote_service: Service, tools: Toolbox, paced: str, tmp_path: Path
) -> None:
    clip = tmp_path / "clip.mp4"
    make_clip(tools, clip, seconds=SECONDS, size="320x180", rate=RATE)
    with ExitStack() as machines:
        one, two = (
            machines.enter_context(remote_worker(remote_service, name, tmp_path, VLOG_FFMPEG=paced))
            for name in ("one", "two")
        )
        await asking(remote_service, one.name, two.name)

        # The API dies and comes back: nothing is lost, nobody begins anew.
        created = await remote_service.upload(clip, title="restarted")
        await encoding(remote_service, created["job_id"], created["slug"], one.name, two.name)
        [api] = pids(remote_service, "api")
        os.kill(api, signal.SIGKILL)
        await answering(remote_service)
        video = await remote_service.ended(created["video_id"], within=120)
        assert video["status"] == "ready", video
        made = await steps(remote_service, created["job_id"])
        assert {name for _, name, *_ in made} <= {"one", "two"}
        assert {(generation, attempt) for _, _, generation, attempt, _ in made} == {(0, 1)}, made
        await check_joined(remote_service, tools, created["slug"], SECONDS * RATE)
        # One download of the source for all of a machine's steps.
        assert all(len(list((each.home / "work/cache").glob("[0-9a-f]*"))) == 1 for each in (one, two))

        # One that is told to stop leaves at once when it has nothing, and else hands back what it has.
        two.process.terminate()
        assert two.process.wait(30) == 0
        created = await remote_service.upload(clip, title="drained")
        await encoding(remote_service, created["job_id"], created["slug"], one.name)
        one.process.terminate()
        assert one.process.wait(30) == 0

        async def handed_back() -> bool:
            outcomes = {outcome for *_, outcome in await steps(remote_service, created["job_id"])}
            return "partial" in outcomes

        await eventually(handed_back, within=10)
        [row] = await remote_service.query("SELECT status FROM workers WHERE worker_name = 'one'")
        assert row["status"] == "offline"
        with remote_worker(remote_service, "three", tmp_path):
            video = await remote_service.ended(created["video_id"], within=120)
        assert video["status"] == "ready", video
        made = await steps(remote_service, created["job_id"])
        assert {attempt for _, _, _, attempt, _ in made} == {1}, made


async def test_a_rolling_restart_of_the_apis_loses_no_attempt_of_remote_workers(
    remote_service: Service, tools: Toolbox, paced: str, tmp_path: Path
) -> None:
    """Two APIs behind one address; while a video is encoded every one of them is replaced, more than once."""
    clip = tmp_path / "clip.mp4"
    make_clip(tools, clip, seconds=LONG_S, size="320x180", rate=RATE)
    async with rolling(remote_service, tmp_path / "apis.log") as apis:
        with ExitStack() as machines:
            four, five = (
                machines.enter_context(remote_worker(remote_service, name, tmp_path, api=apis.url, VLOG_FFMPEG=paced))
                for name in ("four", "five")
            )
            await asking(remote_service, four.name, five.name)
            created = await remote_service.upload(clip, title="rolled")
            await encoding(remote_service, created["job_id"], created["slug"], four.name, five.name)
            rolls = 0
            while (await remote_service.get(f"/api/videos/{created['video_id']}"))["status"] == "processing":
                assert await apis.roll() == 0, (tmp_path / "apis.log").read_text()[-3000:]
                rolls += 1
            video = await remote_service.ended(created["video_id"], within=120)
            assert video["status"] == "ready", video
            assert rolls >= 2, "it was over before both were replaced"
            assert (four.process.poll(), five.process.poll()) == (None, None)
        made = await steps(remote_service, created["job_id"])
        print(f"{rolls} APIs replaced; given back at no attempt: {sum(row[-1] == 'partial' for row in made)}")
        assert {attempt for _, _, _, attempt, _ in made} == {1}, made
        assert {outcome for *_, outcome in made} <= {"completed", "partial"}, made
        await check_joined(remote_service, tools, created["slug"], LONG_S * RATE)
