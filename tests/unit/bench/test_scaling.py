"""A run that waited for the machine says nothing of the workers."""

import subprocess
from pathlib import Path

from tests.bench.ours import Busy
from tests.bench.processes import machine_ticks
from tests.bench.scaling import _PACED, SPEED, WORKERS, speed_up_verdict
from tests.support.media_facts import tool
from tests.support.wrapping import wrapped


def run(wall_s: float, share: float) -> Busy:
    return Busy(wall_s=wall_s, machine_s=2 * wall_s, busy_s=2 * wall_s * share, ours_s={"ffmpeg": wall_s * share})


def test_a_speed_up_counts_only_on_a_machine_with_room() -> None:
    assert speed_up_verdict({1: run(300, 0.3), 8: run(40, 0.6)}, WORKERS, 6.5).met
    assert not speed_up_verdict({1: run(300, 0.3), 8: run(50, 0.6)}, WORKERS, 6.5).met
    void = speed_up_verdict({1: run(300, 0.3), 8: run(40, 0.72)}, WORKERS, 6.5)
    assert not void.met and "7.50, void: the machine was 72% busy, 36% of it with others" in void.measured
    assert not speed_up_verdict({8: run(40, 0.72)}, WORKERS, 6.5).met, "the others need not be run"


def test_encodes_are_paced_and_nothing_else(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    real.chmod(0o755)
    made = wrapped(tool(), tmp_path / "paced", _PACED.replace('"$real"', str(real)))

    def said(*words: str) -> str:
        return subprocess.run([made.ffmpeg, *words], capture_output=True, text=True, check=True, timeout=10).stdout

    assert said("-ss", "3", "-i", "a b.mp4", "-c:v", "libx264", "o") == (
        f"-ss|3|-readrate|{SPEED}|-i|a b.mp4|-c:v|libx264|o|"
    )
    assert said("-i", "a.mp4", "-c:v", "mjpeg", "o") == "-i|a.mp4|-c:v|mjpeg|o|"


def test_a_machine_is_never_busier_than_it_is_long() -> None:
    busy, all_of_it = machine_ticks()
    assert 0 < busy < all_of_it
