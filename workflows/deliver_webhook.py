"""Tell one webhook of one event: post, note what became of it, wait, post again, until it arrives or a day is over."""

import itertools
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.webhooks import WebhookSteps
    from contracts.queues import TaskQueue
    from contracts.webhooks import Deliver, Delivered, Outcome, PostDelivery, Posted, RecordAttempt

# A post has a limit of its own, a minute at most; beyond this its worker is gone.
POST = timedelta(seconds=100)
RECORD = timedelta(seconds=60)
JITTER = 0.1


@workflow.defn
class DeliverWebhook:
    @workflow.run
    async def run(self, request: Deliver) -> Delivered:
        deadline = workflow.now() + timedelta(seconds=request.give_up_after_s)
        wait_s = request.first_wait_s
        for attempt in itertools.count(1):
            posted = await self._post(request, attempt, deadline - workflow.now())
            pause = timedelta(seconds=self._pause_s(wait_s, posted))
            again = posted.outcome is Outcome.FAILED and workflow.now() + pause < deadline
            told = RecordAttempt(
                delivery_id=request.delivery_id,
                round=request.round,
                attempt=attempt,
                posted=posted,
                at=workflow.now(),
                next_try_at=workflow.now() + pause if again else None,
            )
            wanted = await workflow.execute_activity_method(
                WebhookSteps.record_attempt,
                told,
                task_queue=TaskQueue.ORCHESTRATE,
                start_to_close_timeout=RECORD,
                # Until Postgres takes it: a post that was not noted would be made again.
                retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=30)),
            )
            if not again or not wanted:
                return Delivered(outcome=posted.outcome, attempts=attempt)
            await workflow.sleep(pause)
            wait_s = min(wait_s * 2, request.longest_wait_s)
        raise AssertionError

    async def _post(self, request: Deliver, attempt: int, left: timedelta) -> Posted:
        """Post once; a worker that was stopped, or that Postgres kept waiting, is an attempt like any other."""
        try:
            return await workflow.execute_activity_method(
                WebhookSteps.post_delivery,
                PostDelivery(delivery_id=request.delivery_id, attempt=attempt),
                task_queue=TaskQueue.IO,
                start_to_close_timeout=POST,
                schedule_to_close_timeout=max(left, timedelta(seconds=1)),  # a queue that nobody serves
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise  # somebody wants it to end
            return Posted(outcome=Outcome.FAILED, error="The attempt was cut short on our side.")

    @staticmethod
    def _pause_s(wait_s: float, posted: Posted) -> float:
        """Wait as long as is due, and longer where the receiver asks for it; give or take a tenth."""
        spread = 1 + JITTER * (2 * workflow.random().random() - 1)
        return max(wait_s * spread, posted.retry_after_s or 0)
