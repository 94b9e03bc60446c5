"""From VLOG_STORAGE_URL to a store."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from contracts.errors import StorageUnavailable
from storage.local import LocalStore
from storage.store import Store


def open_store(url: str) -> Store:
    """Open what the URL names: `file:///…` today."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return LocalStore(Path(unquote(parts.path)))
    raise StorageUnavailable(f"VLOG_STORAGE_URL has a scheme we do not know: {parts.scheme or '(none)'}://")
