"""Stories of a delivery, with receivers that answer by the book; recorded beside those of videos."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import temporalio.worker.workflow_sandbox as sandbox
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from contracts.queues import TaskQueue
from contracts.webhooks import Deliver, Delivered, Outcome, PostDelivery, Posted, RecordAttempt
from workflows.deliver_webhook import DeliverWebhook

OK = Posted(outcome=Outcome.DELIVERED, status=200)
BROKEN = Posted(outcome=Outcome.FAILED, status=500, error="The receiver answered 500.")
BUSY = Posted(outcome=Outcome.FAILED, status=429, retry_after_s=0.2)
GONE = Posted(outcome=Outcome.REFUSED, status=410)
CUT = None  # the worker was stopped in the middle

# What each attempt comes to; the last one again and again.
WEBHOOK_STORIES: dict[str, tuple[Posted | None, ...]] = {
    "webhook delivered": (OK,),
    "webhook retried": (BROKEN, CUT, BUSY, OK),
    "webhook given up": (BROKEN,),
    "webhook refused": (GONE,),
    "webhook deleted": (BROKEN,),
}
ENDS = {
    "webhook delivered": (Outcome.DELIVERED, 1),
    "webhook retried": (Outcome.DELIVERED, 4),
    "webhook refused": (Outcome.REFUSED, 1),
    "webhook deleted": (Outcome.FAILED, 1),
}


class FakeReceiver:
    def __init__(self, story: str) -> None:
        self.story = story
        self.noted: list[RecordAttempt] = []

    @activity.defn
    async def post_delivery(self, request: PostDelivery) -> Posted:
        answers = WEBHOOK_STORIES[self.story]
        answer = answers[min(request.attempt, len(answers)) - 1]
        if answer is None:
            raise ApplicationError("The worker was stopped.", non_retryable=True)
        return answer

    @activity.defn
    async def record_attempt(self, request: RecordAttempt) -> bool:
        self.noted.append(request)
        return self.story != "webhook deleted"


@asynccontextmanager
async def telling_webhook(
    client: Client, receiver: FakeReceiver
) -> AsyncIterator[WorkflowHandle[DeliverWebhook, Delivered]]:
    runner = sandbox.SandboxedWorkflowRunner()
    orchestrate = Worker(
        client,
        task_queue=TaskQueue.ORCHESTRATE,
        workflows=[DeliverWebhook],
        activities=[receiver.record_attempt],
        workflow_runner=runner,
    )
    async with orchestrate, Worker(client, task_queue=TaskQueue.IO, activities=[receiver.post_delivery]):
        request = Deliver(
            delivery_id=1,
            uid=receiver.story.replace(" ", "-"),
            first_wait_s=0.1,
            longest_wait_s=0.4,
            give_up_after_s=1.5 if receiver.story == "webhook given up" else 3600,
        )
        yield await client.start_workflow(
            DeliverWebhook.run, request, id=request.workflow_id, task_queue=TaskQueue.ORCHESTRATE
        )
