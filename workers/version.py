"""Which code this is, for people who look at workers while a new version is rolled out."""

import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ASK_S = 5.0


@cache
def code_version(root: Path = ROOT) -> str:
    """Give the package's version, with the commit behind it when we run from a checkout: `0.1.0+1de49b0c3f2a`."""
    package = version("vlog")
    if not (root / ".git").exists():
        return package
    ask = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        said = subprocess.run(ask, capture_output=True, text=True, timeout=_ASK_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):  # no git here, or somebody else's checkout
        return package
    return f"{package}+{said.replace('-', '.')}" if said else package
