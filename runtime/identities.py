"""As whom a server runs that refuses to run as root."""

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from runtime.locate import ServerMissing
from runtime.processes import works

NOBODY = 65534


@dataclass(frozen=True)
class Running:
    """The words before a command that make it run as somebody, and who that is to the file system."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None  # None: whoever we are

    def give(self, path: Path) -> None:
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)


def owner_for(folder: Path, data: Path, *, namespaces: bool = True) -> Running:
    """Choose as whom Postgres runs on a data folder: its owner, and never root.

    As root a user namespace is enough: inside it we are nobody, on disk still root, so no system user is made and
    a home below a closed /root works. Where containers forbid that, it runs as nobody and owns its folder.
    """
    if os.geteuid() != 0:
        return Running()
    owner = data.stat().st_uid if data.exists() else 0
    unshare = shutil.which("unshare")
    if owner == 0 and namespaces and unshare and works(unshare, "--user", "true"):
        return Running((unshare, "--user"))
    setpriv = shutil.which("setpriv")
    if not setpriv:
        raise ServerMissing(
            "Postgres does not run as root, and this system has neither user namespaces nor setpriv. "
            "Start as another user, or name a running Postgres in VLOG_DATABASE_URL."
        )
    uid = owner or NOBODY
    running = Running((setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"), uid)
    _hand_over(folder, data, uid)
    if not works(*running.prefix, "test", "-w", str(folder)):
        raise ServerMissing(
            f"Postgres does not run as root, and user {uid} cannot reach {folder}. "
            "Set VLOG_HOME to a folder outside /root, or start as another user."
        )
    return running


def _hand_over(folder: Path, data: Path, uid: int) -> None:
    os.chown(folder, uid, uid)
    folder.parent.chmod(folder.parent.stat().st_mode | 0o011)  # to pass through, not to look around
    if data.exists() and data.stat().st_uid != uid:
        for path in (data, *data.rglob("*")):
            with contextlib.suppress(FileNotFoundError):
                os.chown(path, uid, uid, follow_symlinks=False)
