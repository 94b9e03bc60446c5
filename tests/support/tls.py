"""A certificate for a day, and a proxy that speaks TLS for a server that does not, such as Temporal's dev server."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.missing import missing


@dataclass(frozen=True)
class Certificate:
    certificate: Path
    key: Path


def make_certificate(folder: Path, name: str) -> Certificate:
    """Make one that vouches for itself, good for localhost."""
    openssl = shutil.which("openssl") or missing("openssl")
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", str(made.key), "-out", str(made.certificate)],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    return made


@asynccontextmanager
async def behind_tls(address: str, server: Certificate, client: Certificate) -> AsyncIterator[str]:
    """Answer on an address of its own, with this certificate, and only to who shows the other one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    context.load_verify_locations(client.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    host, port = address.rsplit(":", 1)
    passing: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        passing.add(task)
        try:
            there, back = await asyncio.open_connection(host, int(port))
            await asyncio.wait(
                [asyncio.create_task(_pass(reader, back)), asyncio.create_task(_pass(there, writer))],
                return_when=asyncio.ALL_COMPLETED,
            )
        finally:
            passing.discard(task)

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"localhost:{proxy.sockets[0].getsockname()[1]}"
    finally:
        proxy.close()
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one end has hung up
    finally:
        writer.close()
