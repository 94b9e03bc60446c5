"""The output of a child process: a file the child writes itself, kept small by whoever supervises it.

No pipe: a supervisor that is slow, stopped or dead never holds a server up, and its last words are kept.
"""

import contextlib
import os
import shutil
from pathlib import Path
from typing import BinaryIO

FILE_BYTES = 10 * 1024**2
FILES_KEPT = 3


class ChildLog:
    """One child's log, over all its restarts."""

    def __init__(self, path: Path, *, file_bytes: int = FILE_BYTES) -> None:
        self.path = path
        self._file_bytes = file_bytes

    def open(self) -> BinaryIO:
        """Open for the child to inherit: appending, so that after a cut its next line goes to the top."""
        return open(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)

    def rotate(self) -> None:
        """Copy a grown file away and cut it; what is written in between is lost, which a log can bear."""
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_size < self._file_bytes:
                return
            for number in range(FILES_KEPT - 1, 0, -1):
                if self._kept(number).exists():
                    os.replace(self._kept(number), self._kept(number + 1))
            shutil.copyfile(self.path, self._kept(1))
            os.truncate(self.path, 0)

    def read_from(self, offset: int) -> tuple[bytes, int]:
        """Read whole lines written since an offset; begins anew when the file was cut."""
        try:
            with open(self.path, "rb") as file:
                if offset > os.fstat(file.fileno()).st_size:
                    offset = 0
                file.seek(offset)
                data = file.read(1024**2)
        except FileNotFoundError:
            return b"", 0
        whole = data[: data.rfind(b"\n") + 1]
        return whole, offset + len(whole)

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def tail(self, lines: int = 20) -> str:
        """Give the last lines, for a person to read why a child gave up."""
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
        return ""

    def _kept(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
