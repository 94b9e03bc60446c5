"""A run that waited for the machine says nothing of the workers."""

import subprocess
from pathlib import Path

from tests.bench.processes import machine_ticks
from tests.bench.scaling import _PACED, SPEED, WORKERS, speed_up_verdict
from tests.support.media_facts import tool
from tests.support.wrapping import wrapped


def test_a_speed_up_counts_only_on_a_machine_with_room() -> None:
    walls, shares = [300.0, 40.0], [0.3, 0.6]
    assert speed_up_verdict(walls, shares, WORKERS, 6.5).met
    assert not speed_up_verdict([300.0, 50.0], shares, WORKERS, 6.5).met
    void = speed_up_verdict(walls, [0.3, 0.71], WORKERS, 6.5)
    assert not void.met and "void" in void.measured


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
