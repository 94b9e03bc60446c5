"""Rounds that were measured are kept, so that a comparison of an hour may be made in several sittings."""

import dataclasses
import json
from pathlib import Path

from tests.bench.figures import Cost, Round, Way


class KeptRounds:
    """The rounds of one case on one commit; of other code they say nothing."""

    def __init__(self, folder: Path, case: str, code: str) -> None:
        name = "".join(letter if letter.isalnum() else "-" for letter in f"{case} {code}".lower())
        self._file = folder / f"{name}.json"

    def rounds(self) -> list[Round]:
        if not self._file.exists():
            return []
        return [_read(one) for one in json.loads(self._file.read_text())]

    def keep(self, rounds: list[Round]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        whole = self._file.with_suffix(".new")
        whole.write_text(json.dumps([dataclasses.asdict(one) for one in rounds]))
        whole.replace(self._file)

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)


def _read(kept: dict[str, object]) -> Round:
    costs = kept["costs"]
    assert isinstance(costs, dict)
    return Round(
        number=int(str(kept["number"])),
        costs={Way(way): Cost(**cost) for way, cost in costs.items()},
        foreign_load=bool(kept["foreign_load"]),
    )
