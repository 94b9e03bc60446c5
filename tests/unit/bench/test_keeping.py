from pathlib import Path

from tests.bench.figures import Cost, Round, Way
from tests.bench.keeping import KeptRounds


def test_rounds_come_back_as_they_were_measured_and_only_to_their_own_code(tmp_path: Path) -> None:
    cost = Cost(wall_s=1.5, ffmpeg_cpu_s=2, other_cpu_s=0.1, size_bytes=7, ffmpeg_mb=3)
    rounds = [Round(1, dict.fromkeys(Way, cost)), Round(2, dict.fromkeys(Way, cost), foreign_load=True)]
    kept = KeptRounds(tmp_path / "new", "60 s, medium", "commit 1")
    kept.keep(rounds)
    assert KeptRounds(tmp_path / "new", "60 s, medium", "commit 1").rounds() == rounds
    assert KeptRounds(tmp_path / "new", "60 s, medium", "commit 2").rounds() == []
    kept.forget()
    assert kept.rounds() == []
