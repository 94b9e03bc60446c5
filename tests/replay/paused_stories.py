"""Stories of a pause or a cancel that comes after a try has failed: while the next one runs, or waits for its time.

Two tries are allowed, so that after the resume one is left; it fails.
"""

from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from contracts.steps import TranscodeSpan

RUNNING = "paused on its second try"
WAITING = "paused before its second try"
LISTS = "paused before its second try lists"  # of a list that has a workflow of its own
STORIES = (RUNNING, WAITING, LISTS)
CANCELLED_RUNNING = "cancelled on its second try"
CANCELLED_WAITING = "cancelled before its second try"
CANCELLED = (CANCELLED_RUNNING, CANCELLED_WAITING)
SECOND_RUNS = (RUNNING, CANCELLED_RUNNING)

LONG_AFTER = timedelta(minutes=5)


def is_told(story: str, request: TranscodeSpan) -> bool:
    """Tell whether a story is about this step."""
    return story in (*STORIES, *CANCELLED) and request.span.first_segment == 0 and "360p" in request.step_qualities


def wear_out(story: str, request: TranscodeSpan) -> None:
    """Fail each generation's first try; before the pause the second one comes at once, or not for long."""
    if not is_told(story, request) or activity.info().attempt > 1:
        return
    if story in SECOND_RUNS or request.generation:
        raise RuntimeError("it never works")
    raise ApplicationError("It never works.", type="INTERNAL_TRANSIENT", next_retry_delay=LONG_AFTER)
