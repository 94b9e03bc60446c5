"""Run ffmpeg and ffprobe. The only file that starts a process.

A process leads its own group and dies by SIGKILL to all of it: asked politely, ffmpeg closes a short segment under its
final name. Nothing that happens to us leaves one behind: the kernel kills it when we are killed. It has no session of
its own: Linux divides the processor between sessions first (autogroups), and whoever has slept, as we who store what it
made, waits up to 100 ms for a turn among them. Within one session a nice neighbour steps aside in 3.
"""

import asyncio
import os
import shlex
import shutil
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress

import structlog

from contracts.errors import EncoderCrashed, EncoderOutOfMemory, EncoderStalled, VlogError
from media.diagnosis import SAID_BY_ENCODER, diagnose
from media.patience import Patience
from media.progress import Progress, Reports

__all__ = ["MEMORY_BYTES", "Progress", "chunks_of", "output_of", "run"]

log = structlog.get_logger("encoder")

TAIL_BYTES = 6000
_CHUNK = 1 << 16
_GRACE_S = 30.0
# No child runs without a limit: whatever a file makes it do, the machine and its other steps go on. A step that
# knows what it needs says so; this is enough to decode the largest picture we take.
MEMORY_BYTES = 8 << 30
_ASK_S = 5.0
_NICE = 5  # beside somebody of ours who is busy for long it still gets a quarter of a core
_REFUSED_MEMORY = (b"Out of memory", b"Cannot allocate memory", b"Could not allocate memory")
_MOST_REFUSALS = 200


class _Tail:
    """Keep the end of stderr. It is read all the time: a full pipe would stop the encoder."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._kept = b""
        self._refusals = 0
        self.starved = False
        # The folders of this machine are nobody's business; the file's own name helps.
        paths = {word.removeprefix("file:") for word in argv if word.removeprefix("file:").startswith("/")}
        self._folders = sorted({os.path.dirname(path) + "/" for path in paths} - {"/"}, key=len, reverse=True)

    async def drain(self, stream: asyncio.StreamReader, group: int) -> None:
        while chunk := await stream.read(_CHUNK):
            self._kept = (self._kept + chunk)[-TAIL_BYTES:]
            self._refusals += sum(chunk.count(words) for words in _REFUSED_MEMORY)
            if self._refusals > _MOST_REFUSALS and not self.starved:
                # ffmpeg 8 asks for ever, at full speed, and never comes to an end.
                self.starved = True
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)

    def __str__(self) -> str:
        text = self._kept.decode("utf-8", "replace").replace("\0", "")
        for folder in self._folders:
            text = text.replace(folder, "")
        return text.strip()


_prefix: tuple[str, ...] | None = None


async def _dies_with_us() -> tuple[str, ...]:
    """Prefix a command so that the kernel kills it when our process dies, however it dies."""
    global _prefix
    if _prefix is None:
        setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
        knows = setpriv is not None and b"--pdeathsig" in await _help(setpriv)
        _prefix = (setpriv, "--pdeathsig", "KILL", "--") if setpriv and knows else ()
    return _prefix


async def _help(program: str) -> bytes:
    """Read what a small program says of itself: BusyBox has a setpriv that knows no --pdeathsig."""
    try:
        asked = await asyncio.create_subprocess_exec(program, "--help", stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
    except OSError:
        return b""
    try:
        said, _ = await asyncio.wait_for(asked.communicate(), _ASK_S)
    except TimeoutError:
        return b""
    finally:
        if asked.returncode is None:
            with suppress(ProcessLookupError):
                asked.kill()
            await asyncio.shield(asked.wait())
    return said


def _limited(memory_bytes: int) -> tuple[str, ...]:
    """Prefix a command so that the kernel refuses it more memory than this.

    The data limit counts what a process may write to, touched or not: the stacks of its threads too. A shell sets
    it, since code between fork and exec is not safe in a process with threads, and not every system has prlimit.
    """
    return ("/bin/sh", "-c", 'ulimit -d "$0" 2>/dev/null; exec "$@"', str(max(1, memory_bytes >> 10)))


@asynccontextmanager
async def _started(
    argv: Sequence[str], memory_bytes: int
) -> AsyncIterator[tuple[Process, asyncio.StreamReader, _Tail]]:
    tail = _Tail(argv)
    prefix = await _dies_with_us()
    try:
        process = await asyncio.create_subprocess_exec(
            *prefix,
            *_limited(memory_bytes),
            *argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            # SVT-AV1 tells of its settings at length, whatever -v says; the last words are for what went wrong.
            env={**os.environ, "SVT_LOG": "1"},
            process_group=0,
        )
    except OSError as error:
        raise EncoderCrashed("The encoder could not be started.", detail=str(error)) from error
    with suppress(OSError):  # it may be over already, or nicer: somebody's own script can stand before ffmpeg
        nice = os.getpriority(os.PRIO_PROCESS, 0) + _NICE
        os.setpriority(os.PRIO_PGRP, process.pid, max(nice, os.getpriority(os.PRIO_PGRP, process.pid)))
    assert process.stdout is not None and process.stderr is not None
    drained = asyncio.create_task(tail.drain(process.stderr, process.pid))
    try:
        yield process, process.stdout, tail
        await asyncio.wait_for(drained, _GRACE_S)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # Shielded: a second cancellation must not leave a zombie that nobody waits for.
        await asyncio.shield(_buried(process, process.stdout, drained))


async def _buried(process: Process, stdout: asyncio.StreamReader, drained: asyncio.Task[None]) -> None:
    """Wait for a dead process. Its pipes are read out first: with a full one asyncio never notices the death."""

    async def emptied() -> None:
        while await stdout.read(_CHUNK):
            pass

    try:
        await asyncio.wait_for(asyncio.gather(emptied(), drained, process.wait()), _GRACE_S)
    except TimeoutError:
        log.warning("encoder.stuck", pid=process.pid)


def _failure(argv: Sequence[str], code: int, tail: _Tail) -> VlogError:
    said = str(tail)
    detail = f"{SAID_BY_ENCODER} {code}: {os.path.basename(argv[0])}\n{said}"
    if tail.starved:
        return EncoderOutOfMemory("The encoder ran out of memory.", detail=detail)
    return diagnose(code, said, detail)


async def run(
    argv: Sequence[str],
    *,
    stall_s: float | None = None,
    timeout_s: float | None = None,
    grace_s: float = 900.0,
    memory_bytes: int = MEMORY_BYTES,
) -> AsyncGenerator[Progress, None]:
    """Run one ffmpeg that reports with `-progress pipe:1`, and yield each report.

    Wrap it in `contextlib.aclosing` when the loop may be left early: the encoder is killed when the generator is
    closed. `stall_s` kills it when neither frames nor time have advanced for so long, nor bytes were read; until the
    first of them, work counts as well, and where work cannot be seen it is given `grace_s`.
    """
    log.info("encoder.started", command=shlex.join(argv))
    begun = time.monotonic()
    last = Progress()
    reports = Reports()
    async with _started(argv, memory_bytes) as (process, stdout, tail):
        patience = Patience(process.pid, stall_s, grace_s)
        while True:
            asked = time.monotonic()
            left_s = begun + timeout_s - asked if timeout_s else None
            limits = [limit for limit in (left_s, patience.wait_s) if limit is not None]
            try:
                chunk = await asyncio.wait_for(stdout.read(_CHUNK), max(0.0, min(limits)) if limits else None)
            except TimeoutError:
                patience.waited(time.monotonic() - asked)
                if timeout_s and time.monotonic() >= begun + timeout_s:
                    raise _too_slow(timeout_s, stall_s, tail) from None
                if await patience.is_over():
                    raise _too_slow(None, stall_s, tail) from None
                continue
            if not chunk:
                break
            patience.waited(time.monotonic() - asked)
            for report in reports.feed(chunk):
                if report.frame > last.frame or report.out_time_s > last.out_time_s or report.ended:
                    patience.advanced()
                last = report
                yield report
        code = await _exit_code(process, tail)
    if code:
        raise _failure(argv, code, tail)


async def _exit_code(process: Process, tail: _Tail) -> int:
    """Wait for a process that has closed its output; one that stays is stuck."""
    try:
        return await asyncio.wait_for(process.wait(), _GRACE_S)
    except TimeoutError:
        raise EncoderStalled("The encoder finished and did not end.", detail=str(tail)) from None


def _too_slow(timeout_s: float | None, stall_s: float | None, tail: _Tail) -> EncoderStalled:
    if timeout_s is not None:
        return EncoderStalled(f"The encoder took longer than the {timeout_s:g} seconds it had.", detail=str(tail))
    return EncoderStalled(f"The encoder made no progress for {stall_s:g} seconds.", detail=str(tail))


async def chunks_of(
    argv: Sequence[str], *, timeout_s: float, memory_bytes: int = MEMORY_BYTES
) -> AsyncGenerator[bytes, None]:
    """Run a short command and yield what it prints, piece by piece; kill it after `timeout_s`."""
    end = time.monotonic() + timeout_s
    async with _started(argv, memory_bytes) as (process, stdout, tail):
        while True:
            try:
                chunk = await asyncio.wait_for(stdout.read(_CHUNK), max(0.0, end - time.monotonic()))
            except TimeoutError:
                raise EncoderStalled(f"Reading took longer than {timeout_s:g} seconds.", detail=str(tail)) from None
            if not chunk:
                break
            yield chunk
        code = await _exit_code(process, tail)
    if code:
        raise _failure(argv, code, tail)


async def output_of(
    argv: Sequence[str], *, timeout_s: float, limit_bytes: int = 8 << 20, memory_bytes: int = MEMORY_BYTES
) -> bytes:
    """Run a short command and return what it prints; more than `limit_bytes` is an error, not memory."""
    kept = bytearray()
    async with aclosing(chunks_of(argv, timeout_s=timeout_s, memory_bytes=memory_bytes)) as chunks:
        async for chunk in chunks:
            kept += chunk
            if len(kept) > limit_bytes:
                raise EncoderCrashed("The tool said more than it should.", detail=os.path.basename(argv[0]))
    return bytes(kept)
