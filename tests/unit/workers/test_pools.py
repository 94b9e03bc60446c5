"""What a process keeps while its pools are closed and opened again."""

from pathlib import Path

from contracts.queues import Pool
from tests.integration.workers.queueing import parts_of
from tests.support.media_facts import toolbox
from workers.build import steps


def test_a_pool_that_is_opened_anew_goes_on_with_the_same_webhook_client(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, 3, toolbox())
    opened = [steps(pool, parts) for pool in (Pool.IO, Pool.ORCHESTRATE, Pool.IO)]
    keepers = {getattr(step, "__self__", None) for found in opened for step in found}
    assert [keeper for keeper in keepers if keeper is parts.webhooks] == [parts.webhooks]
    assert len([keeper for keeper in keepers if type(keeper) is type(parts.webhooks)]) == 1
