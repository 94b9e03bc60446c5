"""docs/benchmarks.md: sections between comment markers, so that a partial run replaces its own and no other."""

import re
from collections.abc import Sequence

from tests.bench.figures import Cost, Round, Verdict, Way, over, quiet, spread

TARGET = "- Target "  # a line that the summary collects
NOT_RUN = "_Not run yet._"
WAYS = {Way.OURS: "ours", Way.BY_HAND: "by hand", Way.ONE_BY_ONE: "one by one"}


def section(page: str, name: str) -> str | None:
    """Give what stands between the markers of a section, or None when the page has no such section."""
    match = _markers(name).search(page)
    return match.group(1).strip("\n") if match else None


def replaced(page: str, name: str, body: str) -> str:
    """Put a new body between the markers of a section; a section that is missing goes to the end."""
    block = f"<!-- bench:{name} -->\n{body.strip()}\n<!-- /bench:{name} -->"
    if _markers(name).search(page):
        return _markers(name).sub(lambda _: block, page, count=1)
    return f"{page.rstrip()}\n\n{block}\n" if page.strip() else f"{block}\n"


def _markers(name: str) -> re.Pattern[str]:
    escaped = re.escape(name)
    return re.compile(rf"<!-- bench:{escaped} -->\n(.*?)\n?<!-- /bench:{escaped} -->", re.DOTALL)


def summary(page: str, names: Sequence[str]) -> str:
    """Collect every verdict that the sections hold, and name those that hold none yet."""
    lines = []
    for name in names:
        found = [line for line in (section(page, name) or "").splitlines() if line.startswith(TARGET)]
        was_run = NOT_RUN not in (section(page, name) or NOT_RUN)
        none = "counts, and has no target" if was_run else "not run yet"
        lines += [f"- `{name}` {line.removeprefix(TARGET)}" for line in found] or [f"- `{name}` {none}"]
    return "## Targets\n\n" + "\n".join(lines)


def verdict_lines(verdicts: Sequence[Verdict]) -> str:
    return "\n".join(f"{TARGET}{verdict}" for verdict in verdicts)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def rounds_table(rounds: Sequence[Round]) -> str:
    """Show every round, the medians of the quiet ones, and the ratios."""
    head = ["round", "way", "wall s", "CPU s", "of it not ffmpeg", "MB made", "peak ffmpeg MB", "peak worker / API MB"]
    rows = []
    for one in rounds:
        mark = f"{one.number} (foreign load)" if one.foreign_load else str(one.number)
        rows += [[mark, f"{way} {WAYS[way]}", *_cells(cost)] for way, cost in one.costs.items()]
    counted = quiet(rounds)
    if len(counted) > 1:
        for way in Way:
            rows.append(["**median**", f"{way} {WAYS[way]}", *_cells(_median([one.costs[way] for one in counted]))])
    return table(head, rows)


def ratios_table(rounds: Sequence[Round]) -> str:
    """Show the ratios of each round beside those of the quiet rounds together."""
    loaded = [one for one in rounds if one.foreign_load]
    figures = (
        ("CPU a/b", Round.cpu_ratio, ".3f", 1.0, ""),
        ("wall a/c", Round.wall_ratio, ".3f", 1.0, ""),
        ("bytes a/b", Round.size_ratio, ".3f", 1.0, ""),
        ("peak memory a/b, of ours encoders, worker and API", Round.memory_ratio, ".2f", 1.0, ""),
        ("share of CPU that is not ffmpeg", Round.other_share, ".1f", 100.0, " %"),
    )
    rows = []
    for name, figure, form, scale, unit in figures:
        beside = spread(figure(one) for one in loaded).show(form, scale, unit) if loaded else "–"
        rows.append([name, over(rounds, figure).show(form, scale, unit), beside])
    return table(["ratio, computed inside each round", "median [min–max]", "with foreign load"], rows)


def _cells(cost: Cost) -> list[str]:
    other = f"{cost.other_cpu_s:.1f} ({cost.other_share:.1%})" if cost.other_cpu_s else "–"
    ours = f"{cost.worker_mb:.0f} / {cost.api_mb:.0f}" if cost.worker_mb else "–"
    size = f"{cost.size_bytes / 1e6:.1f}"
    return [f"{cost.wall_s:.1f}", f"{cost.cpu_s:.1f}", other, size, f"{cost.ffmpeg_mb:.0f}", ours]


def _median(costs: Sequence[Cost]) -> Cost:
    def of(name: str) -> float:
        return spread(float(getattr(cost, name)) for cost in costs).median

    return Cost(
        wall_s=of("wall_s"),
        ffmpeg_cpu_s=of("ffmpeg_cpu_s"),
        other_cpu_s=of("other_cpu_s"),
        size_bytes=round(of("size_bytes")),
        ffmpeg_mb=of("ffmpeg_mb"),
        worker_mb=of("worker_mb"),
        api_mb=of("api_mb"),
    )
