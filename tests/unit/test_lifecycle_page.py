"""docs/lifecycle.md names tests that exist, in every row, or says what superseded the documented mechanism."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "lifecycle.md"
_NAMED = re.compile(r"`(test_\w+)`")
_EXCUSED = re.compile(r"\| (superseded by \w+|later: issue \d\b|not built yet: \S)")
EVENTS = "## Events"  # a list of words; what is proved stands in the tables of the seeds
_TOLD = re.compile(r"[\"'`]((?:job|quality|video|step|worker)\.[a-z_]+|(?:requeued|aborted):[a-z]+)[\"'`]")


def sections() -> dict[str, list[str]]:
    """Give the rows of every table, by the heading above it."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line
        elif line.startswith("| ") and not line.startswith("| ---"):
            found.setdefault(heading, []).append(line)
    return {heading: rows[1:] for heading, rows in found.items()}


def rows() -> list[str]:
    return [row for heading, found in sections().items() if heading != EVENTS for row in found]


def written() -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    trees = (ast.parse(path.read_text()) for path in TESTS.rglob("test_*.py"))
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)}


def test_every_row_names_a_test_or_says_why_not() -> None:
    assert len(rows()) > 100
    assert [row for row in rows() if not _NAMED.search(row) and not _EXCUSED.search(row)] == []


def test_every_named_test_is_written_somewhere() -> None:
    named = {name for row in rows() for name in _NAMED.findall(row)}
    assert sorted(named - written()) == []


def test_every_event_of_the_code_is_explained_and_no_other() -> None:
    explained = set(_TOLD.findall("\n".join(sections()[EVENTS])))
    sources = (path.read_text() for path in (TESTS.parent / "mirror").rglob("*.py"))
    told = {name for text in sources for name in _TOLD.findall(text)}
    assert {name for name in explained if not name.startswith("step.")} == {
        name for name in told if not name.startswith("step.")
    }
    assert {name for name in told if name.startswith("step.")} <= explained
