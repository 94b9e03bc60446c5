"""Keys that a machine lends: from where a pod of EKS or ECS is told to ask, or by STS; against a real S3 server."""

import asyncio
import json
import os
import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from botocore.utils import ContainerMetadataFetcher

import storage.s3_keys
import storage.s3_writer
from contracts.errors import StorageUnavailable
from storage.s3 import S3Store
from storage.s3_place import s3_place
from storage.s3_signing import signed_headers
from tests.support.s3 import BUCKET, KEYS, S3Server

PART = 5 << 20  # the smallest that S3 takes
OBSTORE_S = 0.2  # it asks at most ten times a second
LARGE = random.Random(1).randbytes(PART + 12345)


class Lender(ThreadingHTTPServer):
    """Answers as the agents in a pod's network do."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.secret, self.asked, self.is_away = KEYS["AWS_SECRET_ACCESS_KEY"], 0, False
        self.token = ""  # the server has no sessions
        self.lasts = timedelta(minutes=5)  # botocore renews what has less than ten left
        self.signed = ""  # what STS was shown


class _Answer(BaseHTTPRequestHandler):
    server: Lender

    def do_GET(self) -> None:
        self.server.asked += 1
        ends_at = datetime.now(UTC) + self.server.lasts
        keys = {
            "AccessKeyId": KEYS["AWS_ACCESS_KEY_ID"],
            "SecretAccessKey": self.server.secret,
            "Token": self.server.token,
            "Expiration": ends_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self._say(503 if self.server.is_away else 200, "" if self.server.is_away else json.dumps(keys))

    def do_POST(self) -> None:
        """Answer as STS does, which lends the keys of a role."""
        self.server.signed = self.headers["Authorization"]
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.is_away:
            self._say(403, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>")
            return
        ends_at = datetime.now(UTC) + timedelta(hours=1)
        keys = (
            f"<AccessKeyId>role</AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>t</SessionToken>"
            f"<Expiration>{ends_at.strftime('%Y-%m-%dT%H:%M:%SZ')}</Expiration>"
        )
        lent = f"<AssumeRoleResult><Credentials>{keys}</Credentials></AssumeRoleResult>"
        self._say(
            200, f'<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">{lent}</AssumeRoleResponse>'
        )

    def _say(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def lender(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Lender]:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))  # nor a profile of who runs the tests
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with Lender() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{server.server_port}/keys")
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def sts(lender: Lender, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lender:
    """A profile with a role, and no region of its own."""
    source = "aws_access_key_id = base\naws_secret_access_key = base"
    role = "role_arn = arn:aws:iam::123456789012:role/film\nsource_profile = base"
    (tmp_path / "config").write_text(f"[profile base]\n{source}\n[profile film]\n{role}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "film")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{lender.server_port}")
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    return lender


def open_bucket(s3_server: S3Server, folder: Path) -> S3Store:
    place = s3_place(f"s3://{BUCKET}/lent", {"AWS_ENDPOINT_URL_S3": s3_server.endpoint})
    return S3Store(place, folder, link_s=900, patience_s=2)


async def test_lent_keys_open_read_write_and_sign(s3_server: S3Server, lender: Lender, tmp_path: Path) -> None:
    lender.lasts = timedelta(hours=6)
    bucket = open_bucket(s3_server, tmp_path)
    await bucket.check()
    await bucket.put_bytes("videos/a/init.mp4", b"abc")
    link = await bucket.link("videos/a/init.mp4")
    async with httpx.AsyncClient(trust_env=False) as http:
        assert link is not None and (await http.get(link)).content == b"abc"
    assert lender.asked == 1, "keys that hold for hours are not asked for again"


async def test_who_is_lent_a_token_shows_it(s3_server: S3Server, lender: Lender, tmp_path: Path) -> None:
    lender.token = "of-this-session"
    bucket = open_bucket(s3_server, tmp_path)
    assert "X-Amz-Security-Token=of-this-session" in (await bucket.link("videos/a/init.mp4") or "")
    keys = await bucket.place.keys.now()
    shown = signed_headers(keys, "us-east-1", "GET", s3_server.endpoint, {}, "", datetime.now(UTC))
    assert shown["x-amz-security-token"] == "of-this-session" and "x-amz-security-token" in shown["authorization"]
    assert "of-this-session" not in repr(keys)


async def test_keys_that_end_are_renewed_and_the_new_ones_used(
    s3_server: S3Server, lender: Lender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.s3_keys, "LENT_FOR", timedelta(minutes=5))  # obstore asks each time
    monkeypatch.setattr(storage.s3_writer, "PART_BYTES", PART)
    large = tmp_path / "large"
    large.write_bytes(LARGE)
    bucket = open_bucket(s3_server, tmp_path)
    await bucket.put_bytes("uploads/1", b"abc")
    await bucket.put_file("uploads/2", large)  # in parts, which we sign ourselves
    assert await bucket.read_bytes("uploads/2") == LARGE
    lender.secret = "of-somebody-else"
    await asyncio.sleep(OBSTORE_S)
    with pytest.raises(StorageUnavailable, match="refuses our key"):
        await bucket.read_bytes("uploads/1")
    with pytest.raises(StorageUnavailable, match="refuses our key"):
        await bucket.put_file("uploads/3", large)
    lender.secret = KEYS["AWS_SECRET_ACCESS_KEY"]
    await asyncio.sleep(OBSTORE_S)
    assert await bucket.read_bytes("uploads/1") == b"abc"


async def test_a_lender_that_is_away_makes_storage_unavailable_and_its_return_mends_it(
    s3_server: S3Server, lender: Lender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.s3_keys, "LENT_FOR", timedelta(minutes=5))
    monkeypatch.setattr(ContainerMetadataFetcher, "SLEEP_TIME", 0.01)  # between its tries
    bucket = open_bucket(s3_server, tmp_path)
    await bucket.put_bytes("uploads/1", b"abc")
    lender.is_away = True
    await asyncio.sleep(OBSTORE_S)
    with pytest.raises(StorageUnavailable, match="Nobody lends us keys"):
        await bucket.read_bytes("uploads/1")
    with pytest.raises(StorageUnavailable, match="Nobody lends us keys"):
        await bucket.remove_unfinished("uploads/", older_than_s=60)
    lender.is_away = False
    assert await bucket.read_bytes("uploads/1") == b"abc"


async def test_where_nobody_lends_keys_that_is_said(lender: Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    with pytest.raises(StorageUnavailable, match="nothing says who we are"):
        s3_place("s3://media", {})
    monkeypatch.setenv("AWS_PROFILE", "nobody-wrote-it")
    with pytest.raises(StorageUnavailable, match="nothing says who we are"):
        s3_place("s3://media", {})


@pytest.mark.parametrize(("own", "region"), [({}, "eu-central-1"), ({"AWS_DEFAULT_REGION": "eu-west-1"}, "eu-west-1")])
async def test_a_role_is_asked_for_in_our_region_unless_it_has_one(
    sts: Lender, monkeypatch: pytest.MonkeyPatch, own: dict[str, str], region: str
) -> None:
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    keys = await s3_place("s3://media", {"AWS_REGION": "eu-central-1"}).keys.now()
    assert (keys.key_id, keys.token) == ("role", "t")
    assert f"/{region}/sts/" in sts.signed


@pytest.mark.parametrize("token_lost", [False, True])
async def test_a_role_that_is_refused_or_a_token_that_is_lost_makes_storage_unavailable(
    s3_server: S3Server, sts: Lender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token_lost: bool
) -> None:
    sts.is_away = True
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    if token_lost:
        monkeypatch.delenv("AWS_PROFILE")
        monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/film")
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "nobody-wrote-it"))
    bucket = open_bucket(s3_server, tmp_path)
    with pytest.raises(StorageUnavailable, match="Nobody lends us keys"):
        await bucket.read_bytes("uploads/1")
    with pytest.raises(StorageUnavailable, match="Nobody lends us keys"):
        await bucket.remove_unfinished("uploads/", older_than_s=60)
