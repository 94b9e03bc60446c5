"""While the tests of a service wait in one process, others compute in the next, until they meet."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.workermanage import WorkerController

from tests.once_more import plain_name
from tests.support.order import SERVED_BY, SERVICES, FromBothEnds, share_out

PLAIN = [f"test_{n}" for n in range(9)]


class Process:
    """Stands for one that runs tests: it remembers which it was given."""

    shutting_down = False
    gateway = SimpleNamespace(id="gw")

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Id(str):
    @classmethod
    def parse(cls, text: str) -> "Id":
        return cls(text)


def item(file: str, name: str, *fixtures: str) -> pytest.Item:
    made = SimpleNamespace(nodeid=f"{file}::{name}", _id=Id(name), fixturenames=[*fixtures, "tmp_path"])
    made.path, made.config = Path("/tests/unit") / file, SimpleNamespace(rootpath=Path("/tests"))
    return cast(pytest.Item, made)


def test_services_come_first_then_files_the_largest_last() -> None:
    first, second, *_ = SERVICES
    items = [item("a.py", "t1"), item("a.py", "t2"), item("b.py", "t3", second), item("b.py", "t4")]
    items += [item("b.py", "t5", first)]
    share_out(items)
    names = [str(cast(Any, each)._id) for each in items]
    assert names[:2] == [f"b.py::t5@{first}", f"b.py::t3@{second}"]
    assert names[2:] == ["b.py::t4@unit-b", "a.py::t1@unit-a", "a.py::t2@unit-a"]
    assert [plain_name(name) for name in names] == [each.nodeid for each in items]


def test_some_processes_take_from_the_front_and_the_others_from_the_end() -> None:
    names = [f"a.py::s{n}@{service}" for service in SERVICES[:3] for n in range(2)] + [f"a.py::{n}" for n in PLAIN]
    config = SimpleNamespace(
        getvalue=lambda name: ["popen"] * (SERVED_BY + 1), option=SimpleNamespace(loadscopereorder=False)
    )
    schedule = FromBothEnds(cast(pytest.Config, config))
    processes = [Process() for _ in range(SERVED_BY + 1)]
    for process in processes:
        schedule.add_node(cast(WorkerController, process))
        schedule.add_node_collection(cast(WorkerController, process), names)
    schedule.schedule()
    *serving, computing = processes
    assert [names[index] for index in computing.given] == [f"a.py::{name}" for name in PLAIN[-1:-3:-1]]
    for service, process in zip(SERVICES, serving, strict=False):
        assert [names[index].rpartition("@")[2] for index in process.given[:2]] == [service] * 2

    while not all(process.shutting_down for process in processes):
        for process in processes:
            for index in process.given:
                schedule.mark_test_complete(cast(WorkerController, process), index)
    given = [index for process in processes for index in process.given]
    assert sorted(given) == list(range(len(names))), "each test once"
