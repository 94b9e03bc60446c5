"""One child process kept alive: started, found ready, restarted when it dies, stopped with its group."""

import asyncio
import collections
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from runtime.child_logs import ChildLog
from runtime.leftovers import note_child, strike_child
from runtime.processes import kill_group

log = structlog.stdlib.get_logger(__name__)

LONGEST_BACKOFF_S = 30.0
CRASHES_TO_GIVE_UP = 5
CRASH_WINDOW_S = 60.0
LOOK_EVERY_S = 5.0

Echo = Callable[[str, str], None]  # the child's name and one line of its output


@dataclass(frozen=True)
class Program:
    """What to run and how to treat it."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] | None = None  # None: ours
    prepare: Callable[[], Awaitable[None]] | None = None  # before every start
    ready: Callable[[], Awaitable[bool]] | None = None  # asked until it says yes; None: ready once it runs
    ready_within_s: float = 60.0
    # Asked now and then once it was ready: it runs, and will never again do what it is for. Twice yes is a restart.
    stuck: Callable[[], Awaitable[bool]] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 10.0
    backoff_s: float = 1.0  # before the first restart; doubles from there


class GaveUp(Exception):
    """A child died too often; the message ends with its log's tail."""

    def __init__(self, name: str, reason: str, log_path: Path, tail: str) -> None:
        super().__init__(f"{name} {reason}. Its log, {log_path}, ends:\n{tail}")
        self.name = name
        self.tail = tail


class Child:
    """A program under supervision. One task does everything, so a start and a stop never cross."""

    def __init__(self, program: Program, *, logs: Path, pids: Path, echo: Echo | None = None) -> None:
        self.program = program
        self.log = ChildLog(logs / f"{program.name}.log")
        self.pid: int | None = None
        self.restarts = 0
        self._pids = pids
        self._echo = echo
        self._read_to = 0  # how much of the log has been echoed
        self._ready = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._crashes: collections.deque[float] = collections.deque()

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def is_ready(self) -> bool:
        return self._ready.is_set()

    async def start(self) -> None:
        """Start, and return once it is ready; crashes on the way are retried. Raises GaveUp."""
        self._task = asyncio.create_task(self._keep_alive(), name=f"keep {self.name} alive")
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task.done():
            await self._task

    async def ended(self) -> None:
        """Wait until it is stopped; raises GaveUp when it is beyond help."""
        if self._task:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Ask it to end, wait, then kill it and its group. Does not raise what it gave up with."""
        self._stopping.set()
        if self._task:
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.exception()  # else asyncio complains that nobody looked

    async def _keep_alive(self) -> None:
        backoff_s = self.program.backoff_s
        clock = asyncio.get_running_loop().time
        while not self._stopping.is_set():
            began = clock()
            how = await self._live_once()
            if self._stopping.is_set():
                return
            self._count_crash(clock(), how)
            if clock() - began > CRASH_WINDOW_S:
                backoff_s = self.program.backoff_s
            log.warning("child died", child=self.name, how=how, restart_in_s=backoff_s)
            await self._pause(backoff_s)
            backoff_s = min(backoff_s * 2, LONGEST_BACKOFF_S)
            self.restarts += 1

    async def _live_once(self) -> str:
        """Run it from start to end, and say how it ended."""
        if self.program.prepare:
            try:
                await self.program.prepare()
            except Exception as error:  # whatever it was: try again later, like a crash
                return f"could not be prepared: {error}"
        self._read_to = self.log.size()
        with self.log.open() as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self.program.argv,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=self.program.environment,
                    # Its own group: Ctrl-C in the terminal is for us, who then stop things in order. Not its own
                    # session: see media/encoder.py.
                    process_group=0,
                )
            except OSError as error:
                return f"could not be started: {error.strerror}"
        self.pid = process.pid
        tending = asyncio.create_task(self._tend_log())
        try:
            await asyncio.to_thread(note_child, self._pids, self.name, process.pid, self.program.stop_signal)
            return await self._until_end(process)
        finally:
            self._ready.clear()
            kill_group(process.pid)
            tending.cancel()
            self.pid = None
            strike_child(self._pids, self.name)
            self._pass_on()  # its last words

    async def _until_end(self, process: asyncio.subprocess.Process) -> str:
        ending = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        becoming_ready = asyncio.create_task(self._become_ready())
        getting_stuck = asyncio.create_task(self._get_stuck())
        try:
            await asyncio.wait({ending, stopping, becoming_ready}, return_when=asyncio.FIRST_COMPLETED)
            if becoming_ready.done() and not becoming_ready.result():
                await self._end(process)
                return f"was not ready within {self.program.ready_within_s:g} s"
            await asyncio.wait({ending, stopping, getting_stuck}, return_when=asyncio.FIRST_COMPLETED)
            stuck = getting_stuck.done()
            if not ending.done():
                await self._end(process)
            return f"was stuck and {_how(await ending)}" if stuck else _how(await ending)
        finally:
            for task in (ending, stopping, becoming_ready, getting_stuck):
                task.cancel()
            if process.returncode is None:  # only when we are cancelled ourselves
                kill_group(process.pid)

    async def _become_ready(self) -> bool:
        if self.program.ready:
            try:
                async with asyncio.timeout(self.program.ready_within_s):
                    while True:
                        if await self.program.ready():
                            break
                        await asyncio.sleep(0.05)
            except TimeoutError:
                return False
        self._ready.set()
        return True

    async def _get_stuck(self) -> None:
        """Return when it was ready and is stuck; for most programs that is never."""
        await self._ready.wait()
        times = 0
        while times < 2:
            await asyncio.sleep(LOOK_EVERY_S)
            times = times + 1 if self.program.stuck and await self.program.stuck() else 0

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, self.program.stop_signal)
        try:
            async with asyncio.timeout(self.program.stop_within_s):
                await process.wait()
        except TimeoutError:
            log.warning("child had to be killed", child=self.name)
            kill_group(process.pid)
            await process.wait()

    def _count_crash(self, now: float, how: str) -> None:
        self._crashes.append(now)
        while self._crashes[0] < now - CRASH_WINDOW_S:
            self._crashes.popleft()
        if len(self._crashes) >= CRASHES_TO_GIVE_UP:
            reason = f"{how}, for the {CRASHES_TO_GIVE_UP}th time in a minute"
            raise GaveUp(self.name, reason, self.log.path, self.log.tail())

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _tend_log(self) -> None:
        """Pass new lines on, and keep the file small."""
        while True:
            await asyncio.sleep(0.2 if self._echo else 2.0)
            self._pass_on()
            await asyncio.to_thread(self.log.rotate)

    def _pass_on(self) -> None:
        if self._echo:
            lines, self._read_to = self.log.read_from(self._read_to)
            for line in lines.decode(errors="replace").splitlines():
                self._echo(self.name, line)


def _how(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
