"""The comparisons: ours, by hand and one by one, in interleaved rounds on the same source."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from contracts.plan import TranscodePlan
from tests.bench import commands
from tests.bench.bench import Bench, Case
from tests.bench.figures import Cost, Round, Way, at_most, over, spread
from tests.bench.keeping import KeptRounds
from tests.bench.machine import code, moment
from tests.bench.ours import Ours, media_bytes
from tests.bench.page import ratios_table, rounds_table, verdict_lines
from tests.bench.processes import foreign_load, measured
from tests.bench.sources import Picture

SHARE = 0.05  # of the CPU time, for all but ffmpeg
CPU_RATIO = 1.12
_SOMETHING_S = 0.05


def compare(title: str, picture: Picture, seconds: int, preset: str, wall_ratio: float | None) -> Case:
    """Compare the three ways in interleaved rounds."""

    def run(bench: Bench) -> str:
        when, began = moment(), time.monotonic()
        source = bench.source(picture, seconds)
        plan = bench.plan(source, preset)
        kept = KeptRounds(bench.kept, title, code())
        rounds = kept.rounds()
        if rounds:
            bench.say(f"{len(rounds)} rounds of this code are there already")
        longest_s = 0.0
        for number in range(len(rounds) + 1, bench.rounds + 2):
            loaded = number > bench.rounds
            # Beside a busy process everything takes longer; a round that would not fit is not begun.
            if longest_s and time.monotonic() - began + longest_s * (1.6 if loaded else 1.1) > bench.budget_s:
                bench.say("no time left for another round")
                break
            started = time.monotonic()
            with foreign_load(loaded):
                rounds.append(_round(bench, bench.service(preset), source, plan, number, loaded))
            kept.keep(rounds)
            longest_s = max(longest_s, time.monotonic() - started)
        if len(rounds) > bench.rounds:
            kept.forget()
        quiet = [one for one in rounds if not one.foreign_load]
        rungs = ", ".join(rendition.quality for rendition in plan.renditions)
        lines = [
            f"## {title}",
            f"{plan.grid.duration_s:g} s, {rungs}, preset {preset}. {when}; "
            f"{len(quiet)} of {bench.rounds} quiet rounds, {len(rounds) - len(quiet)} with foreign load.",
            rounds_table(rounds),
            ratios_table(rounds),
        ]
        after = spread(one.costs[Way.OURS].after_cpu_s for one in quiet)
        if after.median > _SOMETHING_S:
            lines.append(
                f"Once it was ready, ours spent another {after.show('.1f')} CPU s on pictures; not counted above."
            )
        verdicts = [at_most("CPU a/b", over(rounds, Round.cpu_ratio), CPU_RATIO)]
        if wall_ratio is not None:
            verdicts.append(at_most("wall a/c", over(rounds, Round.wall_ratio), wall_ratio))
        share = over(rounds, Round.other_share)
        verdicts.append(at_most("all but ffmpeg", share, SHARE, form=".1f", scale=100, unit=" %"))
        by_hand = commands.by_hand(bench.tool, source, bench.folder / "hand", plan)
        shown = commands.shown(by_hand, bench.folder / "hand", bench.folder)
        shutil.rmtree(bench.folder / "hand", ignore_errors=True)
        lines += [
            verdict_lines(verdicts),
            f"<details><summary>the command of (b)</summary>\n\n```\n{shown}\n```\n</details>",
        ]
        return "\n\n".join(lines)

    return run


def _round(bench: Bench, ours: Ours, source: Path, plan: TranscodePlan, number: int, loaded: bool) -> Round:
    limit_s = 120 + 60 * plan.grid.duration_s
    a = ours.transcode(source, within_s=limit_s)
    b = _commands(bench.folder / "hand", lambda out: [commands.by_hand(bench.tool, source, out, plan)], limit_s)
    c = _commands(
        bench.folder / "each", lambda out: commands.one_by_one(bench.tool, source, out, plan, bench.ladder), limit_s
    )
    one = Round(number, {Way.OURS: a, Way.BY_HAND: b, Way.ONE_BY_ONE: c}, loaded)
    bench.say(
        f"round {number}{' (foreign load)' if loaded else ''}: "
        f"wall {a.wall_s:.1f} / {b.wall_s:.1f} / {c.wall_s:.1f} s, "
        f"CPU {a.cpu_s:.1f} / {b.cpu_s:.1f} / {c.cpu_s:.1f} s, CPU a/b {one.cpu_ratio():.3f}, "
        f"wall a/c {one.wall_ratio():.3f}, not ffmpeg {one.other_share():.1%}"
    )
    return one


def _commands(folder: Path, make: Callable[[Path], list[list[str]]], limit_s: float) -> Cost:
    """Run commands one after the other and add them up; memory is that of the largest."""
    try:
        costs = [measured(argv, timeout_s=limit_s) for argv in make(folder)]
        return Cost(
            wall_s=sum(cost.wall_s for cost in costs),
            ffmpeg_cpu_s=sum(cost.ffmpeg_cpu_s for cost in costs),
            ffmpeg_mb=max(cost.ffmpeg_mb for cost in costs),
            size_bytes=media_bytes(folder),
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
