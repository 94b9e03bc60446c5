"""A worker is the same one after a restart, named or not; two at a time are two."""

from pathlib import Path

from runtime.settings import Settings
from workers.naming import name_for


def test_a_worker_without_a_name_is_the_same_after_a_restart_and_another_beside_it_is_not(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    first, second = name_for(settings), name_for(settings)
    assert len({first.name, second.name}) == len({first.worker_id, second.worker_id}) == 2
    assert first.seat and second.seat
    first.seat.close()  # as the kernel does when its process ends, however it ends
    again = name_for(settings)
    assert (again.name, again.worker_id) == (first.name, first.worker_id)
    elsewhere = name_for(Settings(home=tmp_path / "other"))
    assert elsewhere.name == first.name and elsewhere.worker_id != first.worker_id
    for each in (second, again, elsewhere):
        assert each.seat
        each.seat.close()


def test_a_name_that_is_given_is_the_one_it_has() -> None:
    settings = Settings(home=Path("/nowhere"), worker_name="studio")
    assert name_for(settings) == name_for(settings) and name_for(settings).name == "studio"


def test_a_home_that_cannot_be_written_costs_the_name_and_not_the_worker() -> None:
    settings = Settings(home=Path("/proc/nowhere"))
    assert name_for(settings).worker_id != name_for(settings).worker_id
