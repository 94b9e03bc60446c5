"""Can yesterday's videos finish on today's code?"""

from contextlib import nullcontext
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from tests.replay import outgrown_stories
from tests.replay.stories import HISTORIES, HOUSE, STORIES
from tests.replay.webhook_stories import WEBHOOK_STORIES
from tests.support.replaying import replay


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("*.json")), ids=lambda path: path.stem)
async def test_a_recorded_history_replays(path: Path) -> None:
    history = WorkflowHistory.from_json(f"video-1-job-1-{path.stem}", path.read_text())
    outgrown = outgrown_stories.DAYS in path.stem.replace("-", " ")
    with outgrown_stories.hurried(path.stem) if outgrown else nullcontext():
        await replay(history)


def test_every_story_has_been_recorded() -> None:
    told = {story.replace(" ", "-") for story in (*STORIES, *outgrown_stories.RECORDED, *WEBHOOK_STORIES, HOUSE)}
    assert {path.stem for path in HISTORIES.glob("*.json")} >= told
