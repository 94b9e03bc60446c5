from pathlib import Path

from tests.bench.__main__ import write
from tests.bench.cases import CASES
from tests.bench.figures import Cost, Round, Verdict, Way
from tests.bench.page import NOT_RUN, ratios_table, replaced, rounds_table, section, summary, verdict_lines

PAGE = """# Top

<!-- bench:one -->
first
<!-- /bench:one -->

between

<!-- bench:one-more -->
second
<!-- /bench:one-more -->
"""


def test_a_section_is_what_stands_between_its_markers() -> None:
    assert section(PAGE, "one") == "first"
    assert section(PAGE, "one-more") == "second"
    assert section(PAGE, "none") is None


def test_a_replaced_section_leaves_all_else_as_it_was() -> None:
    assert replaced(PAGE, "one", "new\nlines") == PAGE.replace("first", "new\nlines")


def test_a_body_with_backslashes_is_taken_literally() -> None:
    assert section(replaced(PAGE, "one", r"ffmpeg \1 \g<0> \n"), "one") == r"ffmpeg \1 \g<0> \n"


def test_an_empty_section_can_be_filled() -> None:
    empty = "<!-- bench:x -->\n<!-- /bench:x -->\n"
    assert section(replaced(empty, "x", "body"), "x") == "body"


def test_a_missing_section_goes_to_the_end() -> None:
    page = replaced(PAGE, "new", "body")
    assert page.startswith(PAGE.rstrip())
    assert section(page, "new") == "body"


def test_the_summary_collects_verdicts_and_names_what_was_not_run() -> None:
    lines = verdict_lines([Verdict("CPU a/b ≤ 1.12", "1.05", True), Verdict("wall a/c ≤ 0.8", "0.9", False)])
    page = replaced(replaced(PAGE, "one", f"text\n\n{lines}"), "later", f"## Later\n\n{NOT_RUN}")
    assert summary(page, ["one", "one-more", "later", "none"]).splitlines()[2:] == [
        "- `one` met: CPU a/b ≤ 1.12; measured 1.05",
        "- `one` **not met**: wall a/c ≤ 0.8; measured 0.9",
        "- `one-more` counts, and has no target",
        "- `later` not run yet",
        "- `none` not run yet",
    ]


def test_a_partial_run_replaces_only_its_own_sections(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    write(page, {"linearity": "- Target met: even; measured ±1 %"})
    write(page, {"playable": "- Target **not met**: soon; measured 90 s"})
    text = page.read_text()
    assert section(text, "linearity") == "- Target met: even; measured ±1 %"
    assert section(text, "playable") == "- Target **not met**: soon; measured 90 s"
    targets = section(text, "targets") or ""
    assert "`linearity` met: even" in targets and "`playable` **not met**: soon" in targets
    assert text.count(NOT_RUN) == len(CASES) - 2 + 1  # the machine was not described either


def test_tables_show_every_round_and_mark_the_loaded_one() -> None:
    ours = Cost(
        wall_s=8, ffmpeg_cpu_s=19, other_cpu_s=1, size_bytes=2_000_000, ffmpeg_mb=400, worker_mb=120, api_mb=110
    )
    bare = Cost(wall_s=10, ffmpeg_cpu_s=20, size_bytes=1_000_000, ffmpeg_mb=300)
    costs = {Way.OURS: ours, Way.BY_HAND: bare, Way.ONE_BY_ONE: bare}
    rounds = [Round(1, costs), Round(2, costs), Round(3, costs, foreign_load=True)]
    rows = rounds_table(rounds).splitlines()
    assert rows[2] == "| 1 | a ours | 8.0 | 20.0 | 1.0 (5.0%) | 2.0 | 400 | 120 / 110 |"
    assert sum("foreign load" in row for row in rows) == 3
    assert sum("**median**" in row for row in rows) == 3
    ratios = ratios_table(rounds).splitlines()
    assert "| CPU a/b | 1.000 [1.000–1.000] | 1.000 |" in ratios
    assert "| bytes a/b | 2.000 [2.000–2.000] | 2.000 |" in ratios
    assert "| peak memory a/b, of ours encoders, worker and API | 2.10 [2.10–2.10] | 2.10 |" in ratios
