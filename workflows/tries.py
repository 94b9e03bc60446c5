"""Real tries of each piece of work, over generations, over the split of a list, and over the runs of a workflow.

The plan cuts spans anew in each run, so a piece is a step by its key or, of a transcode, a rendition and the segments
of it: whoever makes some of those again goes on counting.
"""

from collections.abc import Collection, Iterator, Sequence

from temporalio.exceptions import ActivityError, ApplicationError, RetryState

from contracts.errors import FailureKind
from contracts.plan import Span
from contracts.steps import MissingRendition, StepFailure, StepRequest, Tried


class Tries:
    """What one piece of work has used."""

    def __init__(self, used: int = 0) -> None:
        self.used = used


class Ledger:
    """Remembers what unfinished work has cost, for the run that goes on from this one."""

    def __init__(self, tried: tuple[Tried, ...] = ()) -> None:
        self._tried = {(each.work, each.span): each for each in tried}

    @property
    def tried(self) -> tuple[Tried, ...]:
        return tuple(self._tried.values())

    def of(self, work: Collection[str]) -> tuple[Tried, ...]:
        """Tell what some pieces have used."""
        return tuple(each for each in self._tried.values() if each.work in work)

    def take(self, work: Collection[str], tried: Sequence[Tried]) -> None:
        """Note what somebody else, to whom they were given, has counted of some pieces."""
        self._tried = {key: each for key, each in self._tried.items() if each.work not in work}
        for each in tried:
            self._put(each)

    def used_by(self, request: StepRequest) -> int:
        """Count the tries of a step's pieces: the one that has had most counts."""
        return max((each.used for work in request.work for each in self._of(work, request.step_span)), default=0)

    def was_split(self, request: StepRequest) -> bool:
        """Tell whether the pieces of a list have had fates of their own: then they go on one by one."""
        fates = set()
        for work in request.work:
            found = list(self._of(work, request.step_span))
            fates.add((max((each.used for each in found), default=0), any(each.failure for each in found)))
        return len(fates) > 1

    def lost(self, request: StepRequest) -> ActivityError | None:
        """Give the error by which an earlier run gave a piece up, as if it had come again."""
        for work in request.work:
            for each in self._of(work, request.step_span):
                if each.failure is not None:
                    return _as_it_came(request, each.failure)
        return None

    def note(self, request: StepRequest, used: int, failure: StepFailure | None = None) -> None:
        """Note what a step has used, and the failure when it is one for good.

        One of a list says nothing of its pieces: split, all but one may go well. Who does not split it gives them up.
        """
        failure = failure if len(request.work) == 1 else None
        if used or failure:
            short = failure.model_copy(update={"kind": FailureKind.FATAL, "detail": ""}) if failure else None
            for work in request.work:
                self._put(Tried(work=work, span=request.step_span, used=used, failure=short))

    def give_up(self, work: str, lost: MissingRendition) -> None:
        """Note that a rendition will be missing, all of it."""
        failure = StepFailure(code=lost.code, kind=FailureKind.FATAL, sentence=lost.sentence)
        self._put(Tried(work=work, used=0, failure=failure))

    def finish(self, request: StepRequest) -> None:
        """Forget what a step has cost that is done."""
        done = request.step_span
        for each in [each for work in request.work for each in self._of(work, done)]:
            if done is None or (each.span is not None and done.contains(each.span)):
                del self._tried[each.work, each.span]

    def _put(self, tried: Tried) -> None:
        self._tried[tried.work, tried.span] = tried

    def _of(self, work: str, span: Span | None) -> Iterator[Tried]:
        for each in self._tried.values():
            if each.work == work and (span is None or each.span is None or each.span.overlaps(span)):
                yield each


def _as_it_came(request: StepRequest, failure: StepFailure) -> ActivityError:
    error = ActivityError(
        failure.sentence,
        scheduled_event_id=0,
        started_event_id=0,
        identity="",
        activity_type="",
        activity_id=request.step_key,
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    error.__cause__ = ApplicationError(
        failure.sentence, failure.model_dump(mode="json"), type=failure.code, non_retryable=True
    )
    return error
