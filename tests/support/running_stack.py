"""A stack of servers alone in a process of its own, to be killed: `python -m tests.support.running_stack HOME`.

Prints one line of JSON once it is up, and stops when its standard input ends.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.exiting import exit_now
from runtime.settings import load_settings
from runtime.stack import AlreadyRunning, Stack

ROOT = Path(__file__).parents[2]


async def _main(home: str) -> int:
    try:
        async with Stack(load_settings(home=home), programs=lambda *_: (), migration=None) as stack:
            assert stack.run
            pids = {name: child.pid for name, child in stack.children.items()}
            print(json.dumps({"uid": os.geteuid(), "pids": pids, "run": stack.run.model_dump(mode="json")}), flush=True)
            await asyncio.to_thread(sys.stdin.read)
    except AlreadyRunning as refused:
        print(json.dumps({"refused": str(refused)}), flush=True)
        return 3
    return 0


@dataclass
class StackProcess:
    """The other end: starts the process, reads what it says."""

    home: Path
    prefix: Sequence[str] = ()
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> dict[str, Any]:
        self.process = subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "tests.support.running_stack", str(self.home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self.process.stdout
        # The last line: logs may come before it.
        for line in self.process.stdout:
            if line.startswith(b'{"uid"') or line.startswith(b'{"refused"'):
                said: dict[str, Any] = json.loads(line)
                return said
        raise AssertionError(f"the stack said nothing and ended with {self.process.wait(10)}")

    def kill(self) -> None:
        """Kill it without a word, as the kernel does when memory runs out."""
        assert self.process
        self.process.kill()
        self.close()

    def stop(self) -> int:
        """Let it end in order."""
        assert self.process and self.process.stdin
        self.process.stdin.close()
        self.process.stdin = None
        return self.close()

    def close(self) -> int:
        assert self.process
        try:
            code = self.process.wait(20)
        finally:
            self.process.kill()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe:
                    pipe.close()
        return code


if __name__ == "__main__":
    exit_now(asyncio.run(_main(sys.argv[1])))
