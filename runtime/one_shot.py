"""A command that is run to its end: making a database, migrating it, asking a server something."""

import asyncio
import signal
from collections.abc import Mapping, Sequence

from runtime.processes import kill_group


class CommandFailed(Exception):
    """A command that had to succeed did not; the message ends with what it said."""


async def run_to_end(
    name: str,
    argv: Sequence[str],
    *,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    given: bytes | None = None,
) -> str:
    """Run a command in its own group and give what it printed. Raises CommandFailed."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE if given is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            process_group=0,
        )
    except OSError as error:
        raise CommandFailed(f"{name} could not be started: {error.strerror}.") from error
    try:
        async with asyncio.timeout(timeout_s):
            said, _ = await process.communicate(given)
    except TimeoutError:
        raise CommandFailed(f"{name} did not end within {timeout_s:g} s.") from None
    finally:
        if process.returncode is None:
            kill_group(process.pid)
            await process.wait()
    text = said.decode(errors="replace").strip()
    if process.returncode:
        raise CommandFailed(f"{name} {_how(process.returncode)}. It said:\n{_tail(text)}")
    return text


def _how(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"


def _tail(text: str, lines: int = 20) -> str:
    return "\n".join(text.splitlines()[-lines:])
