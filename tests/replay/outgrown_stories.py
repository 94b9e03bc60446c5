"""Stories of a disk that is full for so long that the workflow which waits for it goes on in a new run."""

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from temporalio import activity

from contracts.plan import Span, TranscodePlan
from contracts.steps import EncodeAudio, TranscodeSpan
from workflows import options

DAYS = "full for days"
LISTS = "full for days lists"  # the lists wait, and the sound beside them
COMMANDED = "full for days commanded lists"  # until somebody lets it go
WIDE = "full for days wide"
DRAINED = "drained for days"  # by workers that come and go
PAUSED = "remuxed and full for days"  # by somebody, while it goes on in its new run
STORIES = (DAYS, LISTS, PAUSED, WIDE, DRAINED)  # that end well
TIRED = "full for days and tired"  # a try was used before, and all later ones fail
LOST = "full for days and partial"  # a quality and a sound are lost before
CANCELLED = "remuxed and full for days cancelled"  # while it stops to go on in a new run
CANCELLED_LISTS = "full for days cancelled lists"  # likewise, while one of its lists does
RECORDED = (DAYS, LISTS, PAUSED, TIRED, LOST, CANCELLED)

# What Temporal finds a long history.
CONFIG = "limit.historyCount.suggestContinueAsNew=60"


def hurried(story: str) -> AbstractContextManager[Any]:
    """Let few waits be many."""
    long: dict[str, Any] = {"LONG_HISTORY": 200} if story in (WIDE, DRAINED) else {"LONG_WAITS": 2}
    hurry: AbstractContextManager[Any] = mock.patch.multiple(options, WAITS_DOUBLE=0, **long)
    return hurry


def is_full(story: str, request: EncodeAudio | TranscodeSpan, run: int, sent_away: int) -> bool:
    """Tell whether the disk is full for a step: until its job goes on in a new run, or its list has asked often."""
    if story not in (*STORIES, *RECORDED, CANCELLED_LISTS, COMMANDED) or isinstance(request, EncodeAudio):
        return story == LISTS and run == 1
    if story == LOST and "720p" in request.step_qualities:
        return False
    if story in (WIDE, DRAINED):
        return run == 1
    return request.span.first_segment == 0 and (sent_away < 14 if story == LISTS else run == 1)


def stops_slowly(story: str, request: EncodeAudio | TranscodeSpan, run: int) -> bool:
    """Tell whether a step holds up the workflow that stops to go on in a new run."""
    if isinstance(request, EncodeAudio):
        return story in (PAUSED, CANCELLED) and run == 1
    return story == CANCELLED_LISTS and request.span.first_segment > 0


def wear_out(story: str, request: TranscodeSpan, run: int) -> None:
    """Use the first try, and fail every one after the disk was full."""
    if story == TIRED and (run > 1 or (request.generation == 0 and activity.info().attempt == 1)):
        raise RuntimeError("it never works")


def cut_anew(story: str, plan: TranscodePlan, run: int) -> TranscodePlan:
    """Cut the spans for other workers than there were before."""
    if story != TIRED or run == 1:
        return plan
    return plan.model_copy(update={"spans": (Span(first_segment=0, segments=2), Span(first_segment=2, segments=2))})
