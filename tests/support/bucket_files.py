"""A bucket seen as a folder, so that tests which look into storage look the same wherever it is.

Each look first fetches what has changed since the last one, and drops what is gone. What tests write goes there, too.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path, PosixPath
from typing import Any

import obstore
from obstore.store import S3Store as Bucket

from storage.s3_asking import open_bucket
from storage.s3_place import S3Place

_looking = threading.local()  # within one look, pathlib makes many


class _Seen:
    """One bucket, the folder that shows it, and which version of each object lies there."""

    def __init__(self, root: Path, bucket: Bucket) -> None:
        self.root, self.bucket = root, bucket
        self.etags: dict[str, tuple[str | None, Any]] = {}
        self.guard = threading.RLock()

    def look(self, key: str) -> None:
        with self.guard:
            there = {meta["path"]: meta for meta in obstore.list(self.bucket, key or None).collect()}
            if key:
                with contextlib.suppress(FileNotFoundError):
                    there[key] = obstore.head(self.bucket, key)
            for name, meta in there.items():
                version = (meta["e_tag"], meta["last_modified"])
                if name.startswith("scratch/") or self.etags.get(name) == version:
                    continue
                with contextlib.suppress(FileNotFoundError):
                    data = bytes(obstore.get(self.bucket, name).bytes())
                    path = Path(self.root, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    beside = path.with_name(f".{path.name}.fetched")
                    beside.write_bytes(data)
                    os.utime(beside, (meta["last_modified"].timestamp(),) * 2)
                    beside.replace(path)
                    self.etags[name] = version
            for name in [name for name in self.etags if name == key or not key or name.startswith(f"{key}/")]:
                if name not in there:
                    self._drop(name)

    def _drop(self, name: str) -> None:
        del self.etags[name]
        path = Path(self.root, name)
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or the root
            for folder in path.parents:
                if folder == self.root:
                    break
                folder.rmdir()  # a bucket has no empty folders


_seen: dict[str, _Seen] = {}


class BucketPath(PosixPath):
    """A path below a folder that shows a bucket."""

    def _place(self) -> tuple[_Seen, str] | None:
        text = str(self)
        for root, seen in _seen.items():
            if text == root or text.startswith(f"{root}/"):
                key = text[len(root) + 1 :]
                return None if key.split("/")[0] == "scratch" else (seen, key)
        return None

    @contextlib.contextmanager
    def _looked(self) -> Iterator[None]:
        place = self._place()
        if getattr(_looking, "now", False) or place is None:
            yield
            return
        _looking.now = True
        try:
            place[0].look(place[1])
            yield
        finally:
            _looking.now = False

    def exists(self, *args: Any, **more: Any) -> bool:
        with self._looked():
            return super().exists(*args, **more)

    def is_file(self, *args: Any, **more: Any) -> bool:
        with self._looked():
            return super().is_file(*args, **more)

    def is_dir(self, *args: Any, **more: Any) -> bool:
        with self._looked():
            return super().is_dir(*args, **more)

    def stat(self, *args: Any, **more: Any) -> os.stat_result:
        with self._looked():
            return super().stat(*args, **more)

    def open(self, *args: Any, **more: Any) -> Any:
        with self._looked():
            return super().open(*args, **more)

    def iterdir(self) -> Any:
        with self._looked():
            return iter(list(super().iterdir()) if super().is_dir() else [])  # a bucket has no empty folders

    def glob(self, *args: Any, **more: Any) -> Any:
        with self._looked():
            return iter(list(super().glob(*args, **more)))

    def rglob(self, *args: Any, **more: Any) -> Any:
        with self._looked():
            return iter(list(super().rglob(*args, **more)))

    def write_bytes(self, data: Any) -> int:
        place = self._place()
        assert place is not None
        obstore.put(place[0].bucket, place[1], bytes(data))
        self.stat()  # brings it here
        return len(data)

    def unlink(self, missing_ok: bool = False) -> None:
        place = self._place()
        assert place is not None
        obstore.delete(place[0].bucket, place[1])
        place[0].look(place[1])


def shown(place: S3Place, root: Path, scratch: Path) -> BucketPath:
    """Show a bucket below `root`, and as its `scratch` the one that workers have on their own disk."""
    if str(root) not in _seen:
        root.mkdir(parents=True)
        (root / "scratch").symlink_to(scratch)
        _seen[str(root)] = _Seen(root, open_bucket(place, place.endpoint, patience_s=60))
    _seen[str(root)].look("")  # other programs are told names only, and see what lies there by then
    return BucketPath(root)
