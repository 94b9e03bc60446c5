"""What cases share: tools, sources, the running service, and how long they may take."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from contracts.plan import LADDER, Rung, TranscodePlan
from media.planning import PlanOptions, make_plan
from media.probe import probe
from media.tools import Ffmpeg, Toolbox
from tests.bench.ours import Ours
from tests.bench.sources import TINY, Picture, make_source

QUICK_LADDER = (
    Rung(name="360p", short_side=360, video_kbps=600, audio_kbps=96),
    Rung(name="240p", short_side=240, video_kbps=300, audio_kbps=64),
)


@dataclass
class Bench:
    """One run of the benchmarks."""

    tools: Toolbox
    folder: Path
    rounds: int
    quick: bool
    budget_s: float
    say: Callable[[str], None]
    kept: Path  # rounds of comparisons that are not complete yet
    _ours: Ours | None = None
    _homes: int = field(default=0)

    @property
    def tool(self) -> Ffmpeg:
        return self.tools.pick()

    @property
    def ladder(self) -> tuple[Rung, ...]:
        return QUICK_LADDER if self.quick else LADDER

    def source(self, picture: Picture, seconds: int) -> Path:
        picture, seconds = (TINY, min(seconds // 12, 20) or 1) if self.quick else (picture, seconds)
        self.say(f"source: {seconds} s of {picture.name}")
        return make_source(self.tool, self.folder, picture, seconds)

    def service(self, preset: str) -> Ours:
        """Start one service per preset, the first time it is asked for; the one before is stopped."""
        if self._ours is None or self._ours.preset != preset:
            self.close()
            self._homes += 1
            self.say(f"starting the service with preset {preset}")
            self._ours = Ours(self.folder / f"service-{self._homes}", preset, self.ladder).__enter__()
        return self._ours

    def close(self) -> None:
        if self._ours is not None:
            ours, self._ours = self._ours, None
            try:
                ours.__exit__()
            finally:
                shutil.rmtree(ours.service.home.parent, ignore_errors=True)

    def plan(self, source: Path, preset: str) -> TranscodePlan:
        facts = asyncio.run(probe(self.tools, source))
        return make_plan(facts, PlanOptions(ladder=self.ladder, preset=preset), self.tools)


Case = Callable[[Bench], str]  # runs, and gives the body of its section of the page
