"""Can yesterday's videos finish on today's code?"""

from contextlib import nullcontext
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from runtime.payloads import data_converter
from tests.replay import outgrown_stories
from tests.replay.stories import HISTORIES, HOUSE, STORIES
from tests.replay.webhook_stories import WEBHOOK_STORIES
from workflows.deliver_webhook import DeliverWebhook
from workflows.encode_list import TranscodeList
from workflows.housekeeping import Housekeeping
from workflows.transcode_video import TranscodeVideo


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("*.json")), ids=lambda path: path.stem)
async def test_a_recorded_history_replays(path: Path) -> None:
    history = WorkflowHistory.from_json(f"video-1-job-1-{path.stem}", path.read_text())
    workflows = [TranscodeVideo, TranscodeList, DeliverWebhook, Housekeeping]
    replayer = Replayer(workflows=workflows, data_converter=data_converter)
    outgrown = outgrown_stories.DAYS in path.stem.replace("-", " ")
    with outgrown_stories.hurried(path.stem) if outgrown else nullcontext():
        await replayer.replay_workflow(history)


def test_every_story_has_been_recorded() -> None:
    told = {story.replace(" ", "-") for story in (*STORIES, *outgrown_stories.RECORDED, *WEBHOOK_STORIES, HOUSE)}
    assert {path.stem for path in HISTORIES.glob("*.json")} >= told
