"""What an audio step says of its segments while it runs, on real ffmpeg and a real folder."""

from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities import audio
from activities.audio import AudioSteps
from contracts.ids import ObjectKey
from contracts.layout import TIMELINE, segment_name
from contracts.media import AudioTimeline
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
        if key.endswith(TIMELINE):
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

    # A later attempt is further than this one will ever be: its word stands.
    further = AudioTimeline(segment_durations=((48_000, 9),))
    await LocalStore.put_bytes(store, FOLDER + TIMELINE, further.model_dump_json().encode())
    store.told.clear()
    await ActivityEnvironment().run(steps.encode_audio, request)
    assert store.told == []
