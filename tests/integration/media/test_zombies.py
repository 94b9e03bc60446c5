"""An attempt that sleeps through its successor and wakes: it changes no byte that is stored, of picture or sound."""

import asyncio
import dataclasses
from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.audio import AudioSteps
from activities.transcode import TranscodeSteps
from contracts.ids import ObjectKey
from contracts.layout import TIMELINES, segment_index
from media.planning import PlanOptions
from media.tools import Toolbox
from storage.local import LocalStore
from tests.support.clips import Clips
from tests.support.encoding import PREFIX, prepare

FOLDER = f"{PREFIX}r1/"


class Sleepy(LocalStore):
    """The store of a worker that falls asleep with its first finished segment in its hands."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asleep, self.wake = asyncio.Event(), asyncio.Event()

    async def put_file(self, key: str, path: Path, *, create_only: bool = False) -> bool:
        if segment_index(key) is not None:
            self.asleep.set()
            await self.wake.wait()
        return await super().put_file(key, path, create_only=create_only)


def attempt(number: int) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=number)
    return environment


async def contents(store: LocalStore) -> dict[str, tuple[str, bytes]]:
    return {facts.key: (facts.etag, await store.read_bytes(facts.key)) for facts in await store.list(FOLDER)}


async def test_a_transcode_that_wakes_late_changes_nothing(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    source = clips.get("land.mp4")
    work = await prepare(tools, source, options)
    store, sleepy = LocalStore(tmp_path / "store"), Sleepy(tmp_path / "store")
    await store.put_file(ObjectKey("uploads/1"), source)
    request = work.span()

    zombie = asyncio.create_task(attempt(1).run(TranscodeSteps(sleepy, tools, stall_s=30).transcode_span, request))
    await asyncio.wait_for(sleepy.asleep.wait(), 60)
    done = await attempt(2).run(TranscodeSteps(store, tools, stall_s=30).transcode_span, request)
    assert done.segments == work.plan.grid.segments, "the sleeper had stored none"
    stored = await contents(store)
    sleepy.wake.set()
    await asyncio.wait_for(zombie, 60)
    assert await contents(store) == stored


async def test_sound_that_wakes_late_changes_nothing_but_its_own_timeline(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    source = clips.get("land.mp4")
    work = await prepare(tools, source, options)
    store, sleepy = LocalStore(tmp_path / "store"), Sleepy(tmp_path / "store")
    await store.put_file(ObjectKey("uploads/1"), source)
    request = work.audio(0).model_copy(update={"prefix": f"{FOLDER}audio_0/", "ffmpeg": work.plan.ffmpeg})

    zombie = asyncio.create_task(attempt(1).run(AudioSteps(sleepy, tools, stall_s=30).encode_audio, request))
    await asyncio.wait_for(sleepy.asleep.wait(), 60)
    done = await attempt(2).run(AudioSteps(store, tools, stall_s=30).encode_audio, request)
    stored = await contents(store)
    sleepy.wake.set()
    assert await asyncio.wait_for(zombie, 60) == done
    after = await contents(store)
    assert {key: after[key] for key in stored} == stored
    assert [key for key in after if key not in stored and f"/{TIMELINES}" not in key] == []
