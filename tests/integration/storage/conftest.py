"""The same tests for every kind of storage: a folder, and a bucket of a real S3 server."""

from pathlib import Path

import pytest

from storage.local import LocalStore
from storage.s3 import S3Store
from storage.s3_place import s3_place
from storage.store import Store
from tests.support.s3 import S3Server


@pytest.fixture
def bucket(s3_server: S3Server, tmp_path: Path) -> S3Store:
    place = s3_place(s3_server.new_url(), s3_server.environment)
    return S3Store(place, tmp_path / "work", link_s=900, patience_s=5)


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return LocalStore(tmp_path / "store")
    made: S3Store = request.getfixturevalue("bucket")
    return made
