"""What an audio step says of its segments while it runs, on real ffmpeg and a real folder."""

import dataclasses
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities import audio
from activities.audio import AudioSteps
from contracts.ids import ObjectKey
from contracts.layout import TIMELINES, segment_name, timeline_key
from contracts.renditions import AudioTimeline
from media.planning import PlanOptions
from media.tools import Toolbox
from storage.local import LocalStore
from tests.support.clips import Clips
from tests.support.encoding import PREFIX, prepare

FOLDER = f"{PREFIX}r1/audio_0/"


class Watched(LocalStore):
    """A folder that remembers every timeline it was given, and that its segments were there before."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.told: list[AudioTimeline] = []

    async def put_bytes(self, key: str, data: bytes, *, create_only: bool = False) -> bool:
        if f"/{TIMELINES}" in key:
            self.told.append(AudioTimeline.model_validate_json(data))
            assert all([await self.stat(FOLDER + segment_name(n)) for n in range(self.told[-1].segments)])
        return await super().put_bytes(key, data, create_only=create_only)


async def test_a_timeline_follows_the_stored_segments_and_never_gets_shorter(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audio, "TIMELINE_EVERY_S", 0.0)
    source = clips.get("land.mp4")
    work = await prepare(tools, source, options)
    request = work.audio(0).model_copy(update={"prefix": FOLDER, "ffmpeg": work.plan.ffmpeg})
    store = Watched(tmp_path / "store")
    await store.put_file(ObjectKey("uploads/1"), source)

    steps = AudioSteps(store, tools, stall_s=30)
    done = await ActivityEnvironment().run(steps.encode_audio, request)
    assert done.segments >= 3
    lengths = [timeline.segments for timeline in store.told]
    assert lengths == sorted(lengths)
    assert store.told[-1] == AudioTimeline(timescale=48_000, segment_durations=done.segment_durations, whole=True)

    # Another attempt, in whatever order they wake, leaves every stored byte as it is and tells its own tale beside.
    before = {facts.key: facts.etag for facts in await store.list(FOLDER)}
    again = ActivityEnvironment()
    again.info = dataclasses.replace(again.info, attempt=2)
    store.told.clear()
    assert await again.run(steps.encode_audio, request) == done
    after = {facts.key: facts.etag for facts in await store.list(FOLDER)}
    assert {key: after[key] for key in before} == before
    assert [key for key in after if key not in before] == [timeline_key(FOLDER, request.job_id, 0, 2)]
    assert store.told[-1].whole


def test_of_several_tales_the_furthest_counts() -> None:
    short, long = (AudioTimeline(segment_durations=((48_000, count),)) for count in (2, 9))
    assert long.is_further_than(short) and short.is_further_than(None)
    assert not short.is_further_than(long) and not long.is_further_than(long)
    assert AudioTimeline(whole=True).is_further_than(long), "who has seen the end knows"
