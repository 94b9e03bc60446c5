"""How much one worker may have open at a time: a key, in whoever's hands, must not fill our memory or our disk."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from api.errors import ApiError

MOST_QUESTIONS = 16  # a worker has one for each of its pools; each is a poll at Temporal
MOST_FILES = 64  # it sends a segment per rendition and slot; each lies in scratch until it is whole


class OpenCalls:
    """One per API process: several of them take so much each."""

    def __init__(self) -> None:
        self._questions: Counter[str] = Counter()
        self._files: Counter[str] = Counter()

    def question(self, worker_id: str) -> AbstractContextManager[None]:
        """Count a question for work while it is open."""
        return _counted(self._questions, worker_id, MOST_QUESTIONS, "TOO_MANY_CLAIMS", "questions")

    def file(self, worker_id: str) -> AbstractContextManager[None]:
        """Count a file while it comes."""
        return _counted(self._files, worker_id, MOST_FILES, "TOO_MANY_FILES", "files")


@contextmanager
def _counted(open_now: Counter[str], worker_id: str, most: int, code: str, what: str) -> Iterator[None]:
    if open_now[worker_id] >= most:
        raise ApiError(429, code, f"This worker has {most} {what} open already.", headers={"Retry-After": "5"})
    open_now[worker_id] += 1
    try:
        yield
    finally:
        open_now[worker_id] -= 1
        if not open_now[worker_id]:
            del open_now[worker_id]
