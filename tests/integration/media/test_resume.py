"""A step goes on at the first segment that its list lacks, and what stopped halfway is told as what it was."""

import asyncio
import dataclasses
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities import pulse
from activities.failures import translate
from activities.transcode import TranscodeSteps
from contracts.errors import EncoderStalled
from contracts.ids import ObjectKey
from contracts.layout import rendition_prefix, segment_name
from contracts.steps import StepProgress, TranscodedSpan
from media.gpu import Gpu
from media.planning import PlanOptions
from media.tools import Toolbox
from runtime.settings import Settings
from storage.local import LocalStore
from storage.store import ObjectFacts
from tests.support.clips import Clips
from tests.support.encoding import PREFIX, Work, prepare
from tests.support.wrapping import wrapped
from workers.build import encoding_steps
from workflows.reasons import ENCODER_FAULTS

FOLDER = f"{PREFIX}r1/"
# It makes two of three segments, one second of pictures and another of copies of the last, and then stands still.
FROZEN = """"$real" -t 1 "$@" | sed -u s/=end/=continue/; exec sleep 300"""


class Attempts:
    """Attempts at the same step, one after the other, and what each has told while it ran."""

    def __init__(self, work: Work, store: LocalStore) -> None:
        self._work, self._store = work, store
        self._number = 0
        self.told: list[StepProgress] = []

    async def next(self, tools: Toolbox | None = None, *, stall_s: float = 30) -> TranscodedSpan:
        self._number += 1
        self.told = []
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, attempt=self._number)
        environment.on_heartbeat = lambda *details: self.told.extend(details)
        settings = Settings(home=self._store.root / "home", stall_seconds=stall_s)  # VLOG_STALL_SECONDS
        transcode, *_ = encoding_steps(settings, self._store, tools or self._work.tools, Gpu())
        done = await environment.run(transcode, self._work.span().model_copy(update={"ffmpeg": ""}))
        assert isinstance(done, TranscodedSpan)
        return done

    async def stored(self) -> dict[str, str]:
        return {facts.key: facts.etag for facts in await self._store.list(FOLDER)}

    def segments(self) -> list[dict[str, int]]:
        return [{each.quality: each.segments_completed for each in told.qualities} for told in self.told]


@pytest.fixture
async def attempts(tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions) -> Attempts:
    store = LocalStore(tmp_path / "store")
    work = await prepare(tools, clips.get("land.mp4"), options)
    await store.put_file(ObjectKey("uploads/1"), work.source)
    return Attempts(work, store)


async def test_a_list_goes_on_at_the_first_segment_that_any_of_it_lacks(attempts: Attempts, tmp_path: Path) -> None:
    assert await attempts.next() == TranscodedSpan(segments=3, encoded_frames=90)
    whole = await attempts.stored()
    gone = [rendition_prefix("clip", "r1", *each) for each in (("360p", 0), ("240p", 0))]
    gone = [gone[0] + segment_name(2), gone[1] + segment_name(1)]
    for key in gone:
        (tmp_path / "store" / key).unlink()

    assert await attempts.next() == TranscodedSpan(segments=2, encoded_frames=60)
    told = attempts.segments()
    # From its first word on it tells what is there, and never takes anything back.
    assert told[0] == {"360p": 2, "240p": 1, "144p": 3}
    assert told[-1] == {"360p": 3, "240p": 3, "144p": 3}
    for quality in told[0]:
        counts = [each[quality] for each in told]
        assert counts == sorted(counts)
    shares = [each.percent for each in attempts.told]
    assert shares == sorted(shares) and shares[0] == pytest.approx(100 / 3, abs=0.1) and shares[-1] == 100
    again = await attempts.stored()
    assert again.keys() == whole.keys()
    assert {key: again[key] for key in whole if key not in gone} == {
        key: whole[key] for key in whole if key not in gone
    }, "what was there stays the very same"

    assert await attempts.next() == TranscodedSpan(segments=0, encoded_frames=0)


async def test_a_store_that_is_slow_to_answer_is_no_silent_worker(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "EVERY_S", 0.01)
    beats: list[object] = []

    class Slow(LocalStore):
        async def list(self, prefix: str) -> list[ObjectFacts]:
            before = len(beats)
            async with asyncio.timeout(10):
                while len(beats) < before + 2:
                    await asyncio.sleep(0.01)
            return await super().list(prefix)

    store = Slow(tmp_path / "store")
    work = await prepare(tools, clips.get("short.mp4"), options)
    await store.put_file(ObjectKey("uploads/1"), work.source)
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details)
    done = await environment.run(TranscodeSteps(store, tools, stall_s=30).transcode_span, work.span())
    assert done.segments == work.plan.grid.segments


async def test_an_encoder_whose_pictures_stop_is_killed_and_its_segments_are_kept(
    attempts: Attempts, tools: Toolbox, tmp_path: Path
) -> None:
    frozen = Toolbox((wrapped(tools.pick(), tmp_path / "frozen", FROZEN),))
    with pytest.raises(EncoderStalled, match="no progress for 1 seconds") as stalled:
        await attempts.next(frozen, stall_s=1)
    told = translate(stalled.value, attempt=1)
    assert (told.type, told.non_retryable) == ("ENCODER_STALLED", False)
    assert told.type in ENCODER_FAULTS, "a list that stalls is split"
    assert attempts.segments()[-1] == {"360p": 2, "240p": 2, "144p": 2}
    assert await attempts.next() == TranscodedSpan(segments=1, encoded_frames=30)
