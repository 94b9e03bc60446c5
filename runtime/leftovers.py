"""What a killed `up` leaves behind: half-written files, and children where the kernel does not end them with it.

Each running child is noted with who it is, not only its pid: a reused pid is never stopped.
"""

import json
import shutil
import signal
from pathlib import Path

from runtime.files import write_private
from runtime.processes import identity, stop_process


def note_child(folder: Path, name: str, pid: int, stop_signal: signal.Signals) -> None:
    note = {"pid": pid, "identity": identity(pid), "stop_signal": stop_signal.value}
    write_private(folder / name, json.dumps(note).encode())


def strike_child(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)


async def stop_leftovers(folder: Path) -> list[str]:
    """Stop what an earlier run left running, and name it. Call only while holding the home."""
    stopped = []
    for name, pid, order in _still_running(folder):
        await stop_process(pid, gently=order, within_s=5.0)
        stopped.append(name)
        strike_child(folder, name)
    return stopped


def clear_unfinished(storage: Path) -> int:
    """Remove scratch and half-written uploads, and count them. Only for a storage that nobody else uses.

    Whoever wrote them was killed: no row names them, and a repeated step begins with a scratch of its own.
    """
    left = [*(storage / "scratch").glob("*"), *(storage / "uploads").glob(".*")]
    for path in left:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(left)


def _still_running(folder: Path) -> list[tuple[str, int, signal.Signals]]:
    found = []
    for path in sorted(folder.glob("[!.]*")):
        try:
            note = json.loads(path.read_bytes())
            pid, who, order = int(note["pid"]), note["identity"], signal.Signals(note["stop_signal"])
        except (ValueError, KeyError, TypeError):
            who = None  # not ours to read: at worst the next start finds its port taken
        if who is not None and identity(pid) == who:
            found.append((path.name, pid, order))
        else:
            path.unlink()
    return found
