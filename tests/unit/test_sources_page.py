"""docs/sources.md and the tests that prove it name each other."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCES = TESTS / "integration" / "sources"
PAGE = TESTS.parent / "docs" / "sources.md"
_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows() -> list[str]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [line for line in lines if not re.match(r"\| (---|source |case )", line)]


def written_in(path: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}
    return {name for name in found if name.startswith("test_")}


def named() -> set[tuple[Path, str]]:
    found = _NAMED.findall("\n".join(rows()))
    return {((TESTS if "/" in file else SOURCES) / file, name) for file, name in found}


def test_every_row_names_a_test() -> None:
    assert rows()
    assert [row for row in rows() if not _NAMED.search(row)] == []


def test_every_named_test_exists() -> None:
    assert named()
    missing = [f"{file.name}::{name}" for file, name in named() if not file.is_file() or name not in written_in(file)]
    assert missing == []


def test_every_test_of_a_source_is_named() -> None:
    written = {(file, name) for file in SOURCES.rglob("test_*.py") for name in written_in(file)}
    assert {f"{file.name}::{name}" for file, name in written - named()} == set()
