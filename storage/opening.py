"""From VLOG_STORAGE_URL to a store."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from contracts.errors import StorageUnavailable
from storage.local import LocalStore
from storage.store import Store

# How long a request may be tried again: a step has time, a page has not.
PATIENCE_S = 60.0


class StorageSettings(Protocol):
    """What of the settings storage needs to know."""

    @property
    def home(self) -> Path: ...
    @property
    def scratch_folder(self) -> Path | None: ...
    @property
    def cache_bytes(self) -> int | None: ...
    @property
    def scratch_reserve(self) -> int: ...
    @property
    def s3_public_endpoint(self) -> str | None: ...
    @property
    def s3_link_seconds(self) -> float: ...


def open_store(
    url: str, settings: StorageSettings, *, is_new: Callable[[], bool], patience_s: float = PATIENCE_S
) -> Store:
    """Open what the URL names: `file:///…` or `s3://bucket/prefix`.

    A folder is made only as long as it `is_new`: where there are videos, an empty one is a disk that is not mounted.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return LocalStore(Path(unquote(parts.path)), is_new=is_new)
    if parts.scheme == "s3" and parts.netloc:
        # Not before it is needed: obstore brings threads of its own, and most services do without.
        from storage.s3 import S3Store
        from storage.s3_place import checked_endpoint, s3_place

        public = settings.s3_public_endpoint
        return S3Store(
            s3_place(url, os.environ),
            settings.scratch_folder or settings.home / "work",
            cache_bytes=settings.cache_bytes,
            reserve_bytes=settings.scratch_reserve,
            public_endpoint=checked_endpoint(public) if public else None,
            link_s=settings.s3_link_seconds,
            patience_s=patience_s,
        )
    raise StorageUnavailable(f"VLOG_STORAGE_URL has a scheme we do not know: {parts.scheme or '(none)'}://")
