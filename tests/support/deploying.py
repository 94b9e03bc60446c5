"""What a manifest, a unit or an image says of us, held against the code."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from cli.main import app
from cli.processes import parse_pools
from contracts.queues import Pool, with_probes
from runtime.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SETTINGS = {f"VLOG_{name.upper()}" for name in Settings.model_fields}


def documents(path: Path) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all(path.read_text()) if found]


def named_settings(text: str) -> set[str]:
    """Find every setting that a text names; a name that only begins like one does not count."""
    return set(re.findall(r"\bVLOG_[A-Z_]*[A-Z]\b(?!_)", text))


def check_command(words: Sequence[str]) -> tuple[Pool, ...]:
    """Let the real command line read the words, without running them; gives the pools of a worker."""
    group = typer.main.get_command(app)
    name, *rest = words
    command = group.get_command(None, name)  # type: ignore[attr-defined]
    assert command is not None, f"vlog has no command {name!r}"
    context = command.make_context(name, list(rest))
    return with_probes(parse_pools(",".join(context.params["pool"]))) if name == "worker" else ()


def check_settings(environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Load the settings as a process with just this environment would."""
    with monkeypatch.context() as patch:
        for name in SETTINGS:
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            if name.startswith("VLOG_"):
                patch.setenv(name, str(value))
        return load_settings()
