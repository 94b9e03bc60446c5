"""A worker is the same one after a restart, named or not; two at a time are two, and so are two of different pools."""

import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from contracts.queues import DEFAULT_POOLS, Pool
from runtime.settings import Settings
from workers.naming import Called, name_for

Start = Callable[..., Called]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a worker; give one that was started back to `stop`, which does what the kernel does at a process's end."""
    started = []

    def name(pools: Sequence[Pool] = DEFAULT_POOLS, home: str = "home", **settings: Any) -> Called:
        started.append(name_for(Settings(home=tmp_path / home, **settings), pools))
        return started[-1]

    yield name
    for each in started:
        stop(each)


def stop(worker: Called) -> None:
    if worker.seat:
        worker.seat.file.close()


@pytest.mark.parametrize(
    "given",
    [{}, {"worker_name": "studio/../größe"}, {"worker_name": 100 * "工"}],
    ids=["unnamed", "named", "at length"],
)
def test_a_worker_is_the_same_after_a_restart_and_another_beside_it_is_not(start: Start, given: dict[str, str]) -> None:
    first, second = start(**given), start(**given)
    assert first.worker_id != second.worker_id
    assert {first.name, second.name} == {given["worker_name"]} if given else first.name != second.name
    stop(first)
    again = start(**given)
    assert (again.name, again.worker_id) == (first.name, first.worker_id)
    elsewhere = start(home="of another machine", **given)
    assert elsewhere.name == first.name and elsewhere.worker_id != first.worker_id


def test_long_names_that_begin_alike_are_two_workers(start: Start) -> None:
    both = [start(worker_name=99 * "工" + end) for end in "12"]
    assert [each.seat and each.seat.number for each in both] == [1, 1]


def test_two_machines_of_one_name_and_path_are_two_workers(start: Start, tmp_path: Path) -> None:
    here = start()
    (tmp_path / "home").rename(tmp_path / "another disk")
    there = start()
    assert there.name == here.name and there.worker_id != here.worker_id


def test_workers_of_different_pools_keep_their_names_in_whatever_order_they_start(start: Start) -> None:
    kinds = {
        "cpu": ([Pool.CPU], {}),
        "orchestrate-io": ([Pool.IO, Pool.ORCHESTRATE], {}),
        "worker": (DEFAULT_POOLS[::-1], {}),
        "gpu-renderD128": ([Pool.GPU], {"gpu_device": "/dev/dri/renderD128"}),
        "gpu-renderD129": ([Pool.GPU], {"gpu_device": "/dev/dri/renderD129"}),
    }
    before = {kind: start(pools, **given) for kind, (pools, given) in kinds.items()}
    assert {kind: each.name for kind, each in before.items()} == {
        kind: f"{socket.gethostname()}-{kind}-1" for kind in kinds
    }
    for each in before.values():
        stop(each)
    after = {kind: start(pools, **given) for kind, (pools, given) in reversed(kinds.items())}
    assert {kind: each.worker_id for kind, each in after.items()} == {
        kind: each.worker_id for kind, each in before.items()
    }


def test_half_an_id_is_made_anew(start: Start, tmp_path: Path) -> None:
    first = start()
    stop(first)
    [seat] = (tmp_path / "home" / "seats").iterdir()
    seat.write_text(first.worker_id[:20])
    again = start()
    stop(again)
    assert again.worker_id not in ("", first.worker_id) and start().worker_id == again.worker_id


def test_a_home_that_cannot_be_written_costs_the_id_and_not_the_worker() -> None:
    settings = Settings(home=Path("/proc/nowhere"), worker_name="studio")
    one, other = name_for(settings, DEFAULT_POOLS), name_for(settings, DEFAULT_POOLS)
    assert one.name == other.name == "studio" and one.worker_id != other.worker_id
