"""What `vlog doctor` says of a storage: new, in use, or away."""

from pathlib import Path

from mirror.sessions import Database
from runtime.joining import Joined
from runtime.settings import Settings
from storage.local import LocalStore
from tests.integration.mirror.story import upload
from workers.doctor import Finding, _storage, _try


async def finding(database_url: str, storage: Path, home: Path) -> Finding:
    joined = Joined(database_url, "", "", storage.as_uri())
    return await _try(_storage, (joined, Settings(home=home)))


async def test_an_empty_storage_is_fine_until_there_are_videos(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    storage = tmp_path / "storage"
    assert (await finding(database_url, storage, tmp_path))["ok"]
    assert not storage.exists(), "whoever looks, perhaps root, makes nothing"
    (storage / "lost+found").mkdir(parents=True)
    assert (await finding(database_url, storage, tmp_path))["new"]
    await LocalStore(storage).check()
    assert (await finding(database_url, storage, tmp_path))["free_bytes_for_work"]
    await upload(database)
    away = await finding(database_url, storage, tmp_path)
    assert not away["ok"] and "mounted" in away["problem"] and "uploads/" in away["mend"]
    (storage / "uploads").mkdir()
    assert (await finding(database_url, storage, tmp_path))["ok"]


async def test_who_cannot_ask_whether_there_are_videos_makes_no_storage(tmp_path: Path) -> None:
    nobody = "postgresql+asyncpg://vlog:vlog@127.0.0.1:1/vlog"
    assert not (await finding(nobody, tmp_path / "storage", tmp_path))["ok"]
    assert not (tmp_path / "storage").exists()
