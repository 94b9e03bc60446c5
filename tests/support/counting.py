"""An ffmpeg that tells of every picture it has encoded: what was made twice is counted, not derived.

The real program runs; a script in front of it asks for a line per picture that leaves each encoder. ffmpeg writes
every line at once, with a call of its own, so that a SIGKILL loses none.
"""

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

from media.tools import Ffmpeg

_SCRIPT = """#!/bin/sh
case " $* " in
*" libx264 "*)
    for word do
        shift
        case "$word" in
        -i){pace} ;;
        file:*/playlist.m3u8)
            # …/job7-transcode…/360p/playlist.m3u8
            folder=${{word%/playlist.m3u8}}
            step=${{folder##*/job}}
            set -- "$@" -stats_enc_post:v "{told}/job${{step%%-*}}.${{folder##*/}}.$$"
            set -- "$@" -stats_enc_post_fmt:v "{{pts}} {{tb}}"
            ;;
        esac
        set -- "$@" "$word"
    done
    ;;
esac
exec "{ffmpeg}" "$@"
"""
_FILE = re.compile(r"job(\d+)\.(\d+p)\.\d+")


class CountingFfmpeg:
    """A program to name in VLOG_FFMPEG. `pace` slows it to so many times the speed its source plays at."""

    def __init__(self, folder: Path, tool: Ffmpeg, *, pace: float | None = None) -> None:
        self._told = folder / "told"
        self._told.mkdir(parents=True)
        self.program = folder / "ffmpeg"
        reading = f' set -- "$@" -readrate {pace:g}' if pace else ""
        self.program.write_text(_SCRIPT.format(ffmpeg=tool.ffmpeg, told=self._told, pace=reading))
        self.program.chmod(0o755)
        (folder / "ffprobe").symlink_to(tool.ffprobe)

    def encoded(self, job_id: int, rate: int) -> dict[str, Counter[int]]:
        """Tell for each quality how often each picture, by its place in the video, was encoded."""
        found: dict[str, Counter[int]] = {}
        for path in self._told.iterdir():
            name = _FILE.fullmatch(path.name)
            if name and int(name[1]) == job_id:
                found.setdefault(name[2], Counter()).update(_places(path, rate))
        return found


def _places(path: Path, rate: int) -> list[int]:
    lines = (line.split() for line in path.read_text().splitlines())
    return [int(int(pts) * Fraction(base) * rate) for pts, base in lines]
