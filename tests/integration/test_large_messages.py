"""More to say of a video than Temporal takes: the job fails with a code, instead of standing still for ever."""

import pytest
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from contracts.end_steps import FailJob
from contracts.errors import MESSAGE_TOO_LARGE
from contracts.media import SourceFacts
from contracts.steps import EncodeAudio, EncodedAudio, Probe
from tests.replay.fake_plans import FACTS, PLAN
from tests.replay.fake_steps import FakeSteps
from tests.replay.stories import telling, temporal_for_stories

LONG = ((288_768, 1), (287_744, 1)) * 60_000  # about 1.3 MB of JSON


class Verbose(FakeSteps):
    """Its answer alone is too large."""

    @activity.defn
    async def probe(self, request: Probe) -> SourceFacts:
        return FACTS.model_copy(update={"warnings": ("x" * 3_000_000,)})


class ManySounds(FakeSteps):
    """Each answer can be told, and all of them together cannot."""

    def __init__(self) -> None:
        super().__init__("many sounds")
        [track] = PLAN.audio
        self.planned = PLAN.model_copy(update={"audio": (track, track.model_copy(update={"track": 1}))})

    @activity.defn
    async def encode_audio(self, request: EncodeAudio) -> EncodedAudio:
        return EncodedAudio(track=request.audio.track, prefix="p/", segments=len(LONG), segment_durations=LONG)


@pytest.mark.parametrize("steps", [Verbose, ManySounds])
async def test_a_message_that_is_too_large_fails_its_job(steps: type[FakeSteps]) -> None:
    fake = steps()
    async with temporal_for_stories() as client, telling(client, fake) as handle:
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, ApplicationError) and failed.value.cause.type == MESSAGE_TOO_LARGE
    assert isinstance(fake.ended, FailJob) and fake.ended.code == MESSAGE_TOO_LARGE
    assert "more than Temporal takes" in fake.ended.sentence
