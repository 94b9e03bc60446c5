"""The JSON of task queues."""

from pydantic import Field

from api.schemas import Answer, example
from contracts.queues import TaskQueue

QUEUE = {
    "queue": "vlog-cpu",
    "backlog": 12,
    "oldest_wait_seconds": 34.5,
    "running": 2,
    "workers": 1,
    "added_per_second": 0.4,
    "begun_per_second": 0.3,
}


class Queue(Answer):
    model_config = example(**QUEUE)
    queue: TaskQueue
    backlog: int = Field(description="Steps that wait, about; of `vlog-orchestrate` decisions of workflows too")
    oldest_wait_seconds: float = Field(description="How long the oldest of them waits")
    running: int | None = Field(description="Steps that a worker holds; null while Postgres is away")
    workers: int = Field(description="Processes that asked for work of this queue within five minutes")
    added_per_second: float = Field(description="Over the last half minute")
    begun_per_second: float


class Queues(Answer):
    model_config = example(items=[QUEUE])
    items: tuple[Queue, ...]
