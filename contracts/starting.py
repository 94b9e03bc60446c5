"""What can become of handing a job to Temporal, for all who do it: an upload, a command, housekeeping."""

from collections.abc import Awaitable, Callable
from enum import Enum, auto

from contracts.steps import TranscodeRequest


class Start(Enum):
    STARTED = auto()
    AWAY = auto()  # Temporal does not answer: nothing else will start either
    REFUSED = auto()  # Temporal answers and does not take this one, now or ever
    LATER = auto()  # refused, while the reason may still pass


# Takes a job and its video's title; gives what became of it, and Temporal's own words for a refusal.
HandOver = Callable[[TranscodeRequest, str], Awaitable[tuple[Start, str]]]

START_REFUSED = "START_REFUSED"
