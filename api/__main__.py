"""`python -m api`: one API process."""

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Iterator
from types import FrameType

import structlog
import uvicorn

from api.app import create_app
from api.gateway import Gateway
from api.live import Live
from contracts.errors import StorageUnavailable
from mirror.newness import newness
from mirror.sealing import shared_sealing_key
from mirror.sessions import Database, SchemaNotReady
from runtime.exiting import exit_now
from runtime.joining import NotRunning, resolve
from runtime.logs import configure_logs
from runtime.names import SettingsError
from runtime.settings import Settings, load_settings
from runtime.settling import settle
from runtime.temporal import connect
from storage.opening import open_store

log = structlog.get_logger("api")

PREFERRED_PORT = 9000
POOL_CONNECTIONS = 10
SCHEMA_S = 120.0
STORAGE_S = 10.0  # somebody waits for the page
# An open upload would otherwise hold the process for as long as its client likes.
GRACEFUL_S = 2
KEPT_S = 75  # an idle connection: who beats every 30 s needs no new one each time, nor a new TLS handshake


class CannotListen(Exception):
    """The address is somebody else's."""


class Server(uvicorn.Server):
    """uvicorn that lets requests tidy up, without signal handlers that make a clean stop look like a kill."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # uvicorn cancels what is left and does not wait. The end of the loop would cancel it once more, in the
        # middle of tidying up, and half an upload would stay behind.
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=GRACEFUL_S)

    def stop(self) -> None:
        self.handle_exit(signal.SIGTERM, None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit  # the second time somebody means it
        self.should_exit = True


def listen(host: str, port: int | None) -> socket.socket:
    """Bind the port that was asked for; when none was, the usual one or else any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (port,) if port is not None else (PREFERRED_PORT, 0):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host.strip("[]"), wanted))
            # A bound port is not yet ours: with SO_REUSEADDR only listening tells whether somebody else has it.
            listener.listen(1024)
            return listener
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise CannotListen(f"Cannot listen on {host}: {error.strerror}.") from error
    raise CannotListen(f"Port {port} on {host} is taken by another program.")


async def serve(settings: Settings) -> None:
    """Join the neighbours and answer until a signal says stop. Only the database must be there to begin with."""
    joined = resolve(settings)
    database = Database(joined.database_url, pool_size=POOL_CONNECTIONS)
    try:
        await database.wait_for_schema(SCHEMA_S)
        temporal = await connect(joined, lazy=True)
        store = open_store(joined.storage_url, settings, is_new=await newness(database), patience_s=STORAGE_S)
        app = create_app(
            settings,
            database,
            store,
            temporal,
            temporal_ui_url=joined.temporal_ui_url,
            # Made up here it would be good for this process only: a restart would cost every remote step an attempt.
            sealing_key=joined.sealing_key or await shared_sealing_key(database),
        )
        settle()
        listener = listen(settings.host, settings.port)
        server = Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=settings.log_level == "debug",
                timeout_graceful_shutdown=GRACEFUL_S,
                timeout_keep_alive=KEPT_S,
                server_header=False,
            )
        )
        live: Live = app.state.live
        gateway: Gateway = app.state.gateway

        def stop() -> None:
            live.close()  # streams have no end of their own
            gateway.close()  # nor does a worker want to wait for its answer until it is cut off
            server.stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        host, port = listener.getsockname()[:2]
        log.info("listening", url=f"http://{f'[{host}]' if ':' in host else host}:{port}")
        await server.serve(sockets=[listener])
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await database.close()


def main() -> None:
    try:
        settings = load_settings()
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    configure_logs(settings, "api")
    code = 0
    # Before the server listens there is nothing to finish: Ctrl-C or SIGTERM simply ends it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(serve(settings))
    except KeyboardInterrupt:
        pass
    except (NotRunning, SchemaNotReady, CannotListen, SettingsError, StorageUnavailable) as error:
        log.error("not_started", reason=str(error))
        code = 1
    except Exception:
        log.exception("the API stopped")
        code = 1
    exit_now(code)


if __name__ == "__main__":
    main()
