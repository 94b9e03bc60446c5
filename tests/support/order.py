"""Which tests stay together when several processes share them out, and which begin first.

Two kinds of tests take long. Those of a whole service wait: for a heartbeat to be missed, for a player to play. The
others compute. So some processes take the services, the longest first, and the others begin at the other end, with the
largest files: while the one kind waits, the other has the machine, and where they meet only small ones are left.
"""

from collections import Counter
from collections.abc import Sequence

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

# Fixtures that start everything: seconds, and hundreds of MB. The tests of one are run by one process, so that it is
# started once. In the order in which they begin, by how long their tests take.
SERVICES = (
    "slow_service",
    "lone_service",
    "service",
    "gated_service",
    "gpu_service",
    "two_workers",
    "bucket_service",
    "remote_service",
)
SERVED_BY = 2  # so many processes begin with services


def share_out(items: list[pytest.Item]) -> None:
    """Name each test's group, its service or else its file, and put them in order.

    A file's own fixtures are made once, too. Every process must come to the same order.
    """
    groups = {id(item): _service(item) or _file(item) for item in items}
    sizes = Counter(groups.values())

    def turn(item: pytest.Item) -> tuple[int, str]:
        group = groups[id(item)]
        return (SERVICES.index(group) - len(SERVICES), group) if group in SERVICES else (sizes[group], group)

    items.sort(key=turn)
    for item in items:
        # What `xdist_group` marks should do: xdist 3.8 writes a name that pytest 9.2 no longer reads.
        item._id = type(item._id).parse(f"{item.nodeid}@{groups[id(item)]}")


def _service(item: pytest.Item) -> str:
    wanted: Sequence[str] = getattr(item, "fixturenames", ())
    return next((name for name in SERVICES if name in wanted), "")


def _file(item: pytest.Item) -> str:
    return "-".join(item.path.relative_to(item.config.rootpath).with_suffix("").parts)


class FromBothEnds(LoadGroupScheduling):  # type: ignore[misc]
    """Gives the first processes what is at the front of the line, and the others what is at its end."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.nodes.index(node) >= SERVED_BY:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
