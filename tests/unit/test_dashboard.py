"""deploy/grafana/vlog.json asks for metrics that exist."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_dashboard_asks_only_for_documented_metrics() -> None:
    board = json.loads((ROOT / "deploy" / "grafana" / "vlog.json").read_text())
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE)
    parts = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
    known = {name + suffix for name, kind in rows for suffix in parts.get(kind, ("",))}
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used = {name for expr in asked for name in re.findall(r"\b(?:vlog|worker)_\w+", expr)}
    assert len(asked) >= 12 and used <= known, used - known
