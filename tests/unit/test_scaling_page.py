"""Do the sums of docs/scaling.md follow from what `make bench` last measured? Within a tenth: less is no edit worth."""

import re
from pathlib import Path

import pytest

from contracts.media import FrameRate
from contracts.plan import Capacity, Grid, PlannedRendition
from media.spans import choose_lists, choose_spans
from runtime.settings import Settings
from tests.bench.page import section

DOCS = Path(__file__).parents[2] / "docs"
PAGE, BENCH = (DOCS / "scaling.md").read_text(), (DOCS / "benchmarks.md").read_text()

MINUTES, ENCODES = 4, 10  # of the video that the page reckons with
DAY_S = 86_400
SOURCE_MBIT = 8
CORES = {"1 machine": (2, 8), "10 workers": (40,), "100": (400,), "1,000": (4000,)}

Row = dict[str, str]


def tables(text: str) -> list[list[Row]]:
    """Read every table of a page, as rows by the names of their columns."""
    found = []
    for lines in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        head, _, *rows = (
            [cell.strip(" *") for cell in line.strip().strip("|").split("|")] for line in lines.split("\n") if line
        )
        found.append([dict(zip(head, row, strict=True)) for row in rows])
    return found


def numbers(cell: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", cell)]


def measured(name: str) -> list[Row]:
    return tables((section(BENCH, name) or "") + "\n")[0]


def said(name: str) -> str:
    return section(BENCH, name) or ""


class Cost:
    """What one figure of `arithmetic` grows by: with encodes, or with the seconds that steps run."""

    def __init__(self, column: str, *, by: str, beats: bool = False) -> None:
        rows = measured("arithmetic")
        (x0, y0), (x1, y1) = (self._point(row, column, by, beats) for row in (rows[0], rows[-1]))
        self.each = (y1 - y0) / (x1 - x0)
        self.own = y0 - self.each * x0

    @staticmethod
    def _point(row: Row, column: str, by: str, beats: bool) -> tuple[float, float]:
        [y] = numbers(row[column])
        return numbers(row[by])[0], y - (numbers(row["step-seconds"])[0] if beats else 0)

    def of(self, many: float) -> float:
        return self.own + self.each * many


ENCODE, SECOND = "encodes of steps", "step-seconds"
HAS_TASKS = "tasks" in measured("arithmetic")[0]
OURS = next(row for row in measured("60s-veryfast") if row["round"] == "median" and row["way"] == "a ours")
CPU_S, MADE_MB = numbers(OURS["CPU s"])[0], numbers(OURS["MB made"])[0]
STEP_S = MINUTES * CPU_S / 2  # two cores a step

EVENTS = Cost("events", by=ENCODE)
HISTORY = Cost("history KB", by=ENCODE)
TRANSITIONS = Cost("transitions", by=ENCODE, beats=True)
ROWS = Cost("rows written", by=SECOND)
WAL = Cost("WAL KB", by=SECOND)


def table_with(*columns: str) -> list[Row]:
    return next(rows for rows in tables(PAGE) if list(columns) == list(rows[0])[: len(columns)])


def tasks() -> tuple[float, float]:
    """Give a video's own tasks and an encode's: measured, or as the page has them while nothing was."""
    if HAS_TASKS:
        cost = Cost("tasks", by=ENCODE)
        return cost.own, cost.each
    [row] = [row for row in table_with("figure", "a video") if row["figure"] == "tasks"]
    assert "computed" in row["from"]
    return numbers(row["a video"])[0], numbers(row["each encode"])[0]


def near(value: float) -> object:
    return pytest.approx(value, rel=0.1, abs=0.05)


def test_the_counts_are_those_of_the_last_run() -> None:
    assert table_with("seconds", ENCODE) == measured("arithmetic")


def test_what_each_encode_and_second_costs_follows_from_the_counts() -> None:
    page = {row["figure"]: row for row in table_with("figure", "a video", "each encode")}
    own, each = tasks()
    for name, a_video, an_encode, a_second in (
        ("events", EVENTS.own, EVENTS.each, None),
        ("history KB", HISTORY.own, HISTORY.each, None),
        ("tasks", own, each, None),
        ("transitions", TRANSITIONS.own, TRANSITIONS.each, 1.0),
        ("rows written", ROWS.own, None, ROWS.each),
        ("WAL KB", WAL.own, None, WAL.each),
    ):
        row = page.pop(name)
        for column, value in (("a video", a_video), ("each encode", an_encode), ("each step-second", a_second)):
            assert numbers(row[column]) == ([] if value is None else [near(value)]), (name, column, value)
        assert HAS_TASKS is ("computed" not in row["from"]) or name != "tasks"
    assert list(page) == ["steps"]


def test_what_was_measured_once_is_told_as_it_was() -> None:
    page = {row["figure"]: numbers(row["value"])[0] for row in table_with("figure", "value", "from")}
    for begins, value in (
        ("rows a second", re.search(r"writes ([\d.]+) rows", said("arithmetic"))),
        ("connections", re.search(r"hold (\d+) connections", said("arithmetic"))),
        ("200 waiting", re.search(r"a core; measured ([\d.]+)%", said("pollers"))),
    ):
        assert value is not None
        assert page.pop(next(name for name in page if name.startswith(begins))) == near(float(value[1])), begins
    assert list(page.values()) == [near(CPU_S), near(MADE_MB)]
    for row in measured("scaling")[1:]:
        assert f"{float(row['speed-up']):.1f} times" in PAGE.replace("\n", " ")


def test_more_workers_are_more_of_the_same() -> None:
    page = {row[""]: row for row in table_with("", *CORES)}
    own, each = tasks()
    for name, per_video in (
        ("videos a day", float(DAY_S)),
        ("tasks a second", own + each * ENCODES),
        ("transitions a second", TRANSITIONS.of(ENCODES) + STEP_S),
        ("rows Postgres writes a second", ROWS.of(STEP_S)),
        ("Mbit/s out to storage", MINUTES * MADE_MB * 8),
        ("Mbit/s of sources in", MINUTES * 60.0 * SOURCE_MBIT),
    ):
        for column, cores in CORES.items():
            expected = [near(each / (MINUTES * CPU_S) * per_video) for each in cores]
            assert numbers(page[name][column]) == expected, (name, column, expected)


def test_a_video_is_cut_as_the_page_says() -> None:
    grid = Grid(frame_rate=FrameRate(num=30), frames=MINUTES * 60 * 30, segment_frames=180)
    sides = (1080, 720, 480, 360)
    rungs = [PlannedRendition(quality=f"{side}p", width=side, height=side, video_kbps=1) for side in sides]

    def encodes(workers: int, jobs: int) -> int:
        capacity = Capacity(workers=workers, slots=2 * workers, jobs=jobs)
        spans = choose_spans(grid, capacity, Settings.model_fields["span_seconds"].default)
        return len(spans) * len(choose_lists(rungs, spans, grid, capacity, share=True))

    assert [encodes(20, 1), encodes(1000, 1), encodes(100, 40), encodes(100, 1000)] == [80, 80, ENCODES, 4]


def test_a_hundred_thousand_videos_a_day_are_so_much() -> None:
    page = {row[""]: row for row in table_with("", "average")}
    starts = 100_000 / DAY_S
    own, each = tasks()
    for name, value in (
        ("videos that start in a second", 1.0),
        ("cores", MINUTES * CPU_S),
        ("workers", MINUTES * CPU_S / 4),
        ("steps that run at once", STEP_S),
        ("tasks a second", own + each * ENCODES),
        ("events a second", EVENTS.of(ENCODES)),
        ("transitions a second", TRANSITIONS.of(ENCODES) + STEP_S),
        ("rows written a second", ROWS.of(STEP_S)),
        ("KB of WAL a second", WAL.of(STEP_S)),
    ):
        found = [numbers(page[name][column])[0] for column in ("average", "busy hour, three times that")]
        assert found == [near(starts * value), near(3 * starts * value)], (name, starts * value)
    [history_kb, days, gigabytes] = numbers(re.search(r"A history is .*? GB", PAGE)[0])  # type: ignore[index]
    assert history_kb == near(HISTORY.of(ENCODES))
    assert gigabytes == near(history_kb * 100_000 * days / 1e6)
