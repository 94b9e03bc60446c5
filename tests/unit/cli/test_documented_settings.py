"""The two lists of settings that people read say what the code does."""

import re
from pathlib import Path

import pytest

from runtime.settings import Settings

ROOT = Path(__file__).parents[3]
EXAMPLE = dict(re.findall(r"^# (VLOG_[A-Z0-9_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))
FIELDS = {f"VLOG_{name.upper()}" for name in Settings.model_fields}


def test_the_example_lists_every_setting_and_no_other() -> None:
    assert set(EXAMPLE) == FIELDS


def test_the_examples_values_are_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FIELDS:
        monkeypatch.delenv(name, raising=False)
    defaults = Settings()
    for name, value in EXAMPLE.items():
        monkeypatch.setenv(name, value)
    assert Settings() == defaults


def test_the_page_lists_every_setting_once_and_no_other() -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    rows = re.findall(r"^\| `(VLOG_[A-Z0-9_]+)`", page.split("## Superseded")[0], re.MULTILINE)
    assert sorted(rows) == sorted(FIELDS)
