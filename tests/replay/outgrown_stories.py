"""Stories of a disk that is full for so long that the workflow which waits for it goes on in a new run."""

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from contracts.steps import EncodeAudio, TranscodeSpan
from workflows import options

DAYS = "full for days"
LISTS = "full for days lists"  # the lists wait, and the sound beside them
WIDE = "full for days wide"
PAUSED = "remuxed and full for days"  # by somebody, while it goes on in its new run
RECORDED = (DAYS, LISTS, PAUSED)
STORIES = (*RECORDED, WIDE)

# What Temporal finds a long history.
CONFIG = "limit.historyCount.suggestContinueAsNew=60"


def hurried(story: str) -> AbstractContextManager[Any]:
    """Let few waits be many."""
    long: dict[str, Any] = {"LONG_HISTORY": 200} if story == WIDE else {"LONG_WAITS": 2}
    hurry: AbstractContextManager[Any] = mock.patch.multiple(options, WAITS_DOUBLE=0, **long)
    return hurry


def is_full(story: str, request: EncodeAudio | TranscodeSpan, run: int, sent_away: int) -> bool:
    """Tell whether the disk is full for a step: until its job goes on in a new run, or its list has asked often."""
    if story not in STORIES or isinstance(request, EncodeAudio):
        return story == LISTS and run == 1
    if story == WIDE:
        return run == 1
    return request.span.first_segment == 0 and (sent_away < 14 if story == LISTS else run == 1)
