"""A look at a source that takes too long is taken once more before the source is refused for it."""

from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities import probing
from contracts.errors import EncoderOutOfMemory, EncoderStalled, SourceTooComplex, VlogError
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.steps import Probe
from storage.local import LocalStore
from tests.support.media_facts import toolbox


@pytest.mark.parametrize(
    ("cause", "attempt", "said"),
    [
        (EncoderStalled("ffprobe stood still."), 1, EncoderStalled),
        (EncoderStalled("ffprobe stood still."), 2, SourceTooComplex),
        (EncoderOutOfMemory("It took all there is."), 1, SourceTooComplex),  # that has nothing to do with who is busy
    ],
)
async def test_what_takes_too_long_is_looked_at_once_more(
    cause: VlogError, attempt: int, said: type[VlogError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def probe(*_: object) -> None:
        raise SourceTooComplex("Reading the file takes too long.") from cause

    monkeypatch.setattr(probing, "probe", probe)
    store = LocalStore(tmp_path)
    await store.put_bytes("uploads/1.mp4", b"x")
    here = ActivityEnvironment()
    here.info = replace(here.info, attempt=attempt)
    request = Probe(job_id=JobId(1), video_id=VideoId(1), source_key=ObjectKey("uploads/1.mp4"))
    with pytest.raises(said):
        await here.run(probing.ProbeSteps(store, toolbox()).probe, request)
