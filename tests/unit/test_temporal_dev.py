"""The Temporal one develops against has the flags of the one that `vlog up` starts."""

import json
import re
from pathlib import Path

from runtime.temporal_server import DYNAMIC_CONFIG, PRAGMAS, RETENTION, SEARCH_ATTRIBUTES

FOLDER = Path(__file__).parents[2] / "temporal-dev"


def given(flag: str) -> set[str]:
    return set(re.findall(rf"--{flag} (\S+)", (FOLDER / "start.sh").read_text()))


def test_the_script_passes_the_same_flags() -> None:
    assert given("dynamic-config-value") == set(DYNAMIC_CONFIG)
    assert given("sqlite-pragma") == set(PRAGMAS)
    assert given("search-attribute") == set(SEARCH_ATTRIBUTES)
    assert given("retention") == {RETENTION}


def test_the_file_for_a_real_server_says_the_same() -> None:
    text = (FOLDER / "dynamicconfig" / "development.yaml").read_text()
    said = {f"{name}={value}" for name, value in re.findall(r"^([\w.]+):\n  - value: (\w+)$", text, re.MULTILINE)}
    assert said == set(DYNAMIC_CONFIG)
    assert all(isinstance(json.loads(each.split("=")[1]), bool | int) for each in said)


def test_the_namespace_of_a_real_server_gets_the_same_names_and_retention() -> None:
    text = (FOLDER / "setup" / "namespace.sh").read_text()
    assert {pair.replace("=", ":") for pair in SEARCH_ATTRIBUTES} <= set(text.replace(";", " ").split())
    assert f"--retention {RETENTION}" in text
