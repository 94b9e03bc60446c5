"""A video becomes playable once, while it is still being encoded, and stays so."""

from contracts.states import StepName, StepOutcome
from mirror.sessions import Database
from tests.integration.mirror.story import claim, encoded, event_names, job_row, planned, tell


async def test_a_video_is_playable_before_it_is_ready_and_is_told_so_once(database: Database) -> None:
    video = await planned(database)
    work, sound = claim(video, StepName.TRANSCODE), claim(video, StepName.AUDIO, step_key="audio:0")
    fast = encoded(1, 1).model_copy(update={"speed": 2.0})
    await tell(database, work, fast)
    assert (await job_row(database, video))["playable_at"] is None, "its sound is not there"
    await tell(database, sound, end=StepOutcome.COMPLETED)
    first = await job_row(database, video)
    assert first["playable_at"] is not None and first["video_status"] == "processing"
    await tell(database, work, encoded(2, 2).model_copy(update={"speed": 0.1}))
    await tell(database, work, end=StepOutcome.FAILED, code="ENCODER_CRASHED", sentence="Crashed.", will_retry=True)
    assert (await job_row(database, video))["playable_at"] == first["playable_at"], "it is never taken back"
    assert (await event_names(database, video)).count("video.playable") == 1
