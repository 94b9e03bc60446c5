"""A delivery's workflow, with receivers that answer by the book, on a real Temporal."""

import asyncio

import pytest
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from contracts.webhooks import Outcome, PostDelivery, Posted
from tests.replay.stories import temporal_for_stories
from tests.replay.webhook_stories import ENDS, FakeReceiver, telling_webhook


async def test_every_delivery_ends_as_its_receiver_wants_and_a_silent_one_in_time() -> None:
    async with temporal_for_stories() as client:
        for story, end in ENDS.items():
            receiver = FakeReceiver(story)
            async with telling_webhook(client, receiver) as handle:
                result = await handle.result()
            assert (result.outcome, result.attempts) == end, story
            assert [note.attempt for note in receiver.noted] == list(range(1, end[1] + 1))
            assert (receiver.noted[-1].next_try_at is None) == (story != "webhook deleted")
            if story == "webhook retried":
                cut, busy = receiver.noted[1:3]
                assert cut.posted.error == "The attempt was cut short on our side."
                # The receiver's own wish is longer than the usual wait.
                assert busy.next_try_at and (busy.next_try_at - busy.at).total_seconds() >= 0.2

        receiver = FakeReceiver("webhook given up")
        async with telling_webhook(client, receiver) as handle:
            result = await handle.result()
        assert result.outcome is Outcome.FAILED and result.attempts == len(receiver.noted)
        *earlier, last = receiver.noted
        assert last.next_try_at is None
        planned = [(note.next_try_at - note.at).total_seconds() for note in earlier if note.next_try_at]
        for waits, usual in zip(planned, [0.1, 0.2, *[0.4] * len(planned)], strict=False):
            assert waits == pytest.approx(usual, rel=0.11)


class HangingReceiver(FakeReceiver):
    """Says nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__("webhook delivered")
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    @activity.defn
    async def post_delivery(self, request: PostDelivery) -> Posted:
        self.asked.set()
        await self.let_go.wait()
        return await super().post_delivery(request)


async def test_a_delivery_that_is_cancelled_in_the_middle_of_a_post_ends() -> None:
    receiver = HangingReceiver()
    async with temporal_for_stories() as client, telling_webhook(client, receiver) as handle:
        await asyncio.wait_for(receiver.asked.wait(), 60)
        await handle.cancel()
        try:
            with pytest.raises(WorkflowFailureError) as failed:
                await asyncio.wait_for(handle.result(), 60)
        finally:
            receiver.let_go.set()
    assert isinstance(failed.value.cause, CancelledError)
    assert receiver.noted == []
