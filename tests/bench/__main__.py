"""Run the benchmarks and write docs/benchmarks.md: `python -m tests.bench --only 60s-veryfast --rounds 3`."""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from media.tools import find_tools
from tests.bench import machine, page
from tests.bench.bench import Bench
from tests.bench.cases import CASES
from tests.bench.figures import ROUNDS
from tests.e2e.service import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
METHOD = Path(__file__).with_name("method.md")  # the top of the page


def main() -> int:
    arguments = _arguments()
    # As Ctrl-C: everything is cleaned up on the way out. A shell's background job would start with it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    failed = False
    with tempfile.TemporaryDirectory(prefix="vlog-bench-", ignore_cleanup_errors=True) as folder:
        bench = Bench(
            tools=asyncio.run(find_tools()),
            folder=Path(folder),
            rounds=1 if arguments.quick else arguments.rounds,
            quick=arguments.quick,
            budget_s=60 * arguments.budget,
            say=_say,
            kept=Path(folder, "kept") if arguments.quick else ROOT / ".bench",
        )
        target = Path(folder, "page.md") if arguments.quick else PAGE
        write(target, {"machine": machine.describe(bench.tool)})
        try:
            for name in arguments.only or CASES:
                _say(f"== {name}")
                try:
                    write(target, {name: CASES[name](bench)})
                except Exception:
                    # One case that fails must not cost the figures of the others.
                    failed = True
                    traceback.print_exc()
                    bench.close()
        finally:
            bench.close()
        if arguments.quick:
            print(target.read_text())
    return 1 if failed else 0


def write(target: Path, sections: dict[str, str]) -> None:
    """Put sections into the page and draw the summary anew; sections that were never run say so."""
    text = target.read_text() if target.exists() else ""
    known = ["machine", "targets", *CASES]
    bodies = {name: page.section(text, name) for name in known} | sections
    text = METHOD.read_text()
    for name in known:
        text = page.replaced(text, name, bodies[name] or f"## {name}\n\n{page.NOT_RUN}")
    target.write_text(page.replaced(text, "targets", page.summary(text, list(CASES))))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sources, one round, the page is only printed")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="quiet rounds of each comparison")
    parser.add_argument("--only", action="append", choices=list(CASES), help="this case alone; may be repeated")
    parser.add_argument(
        "--budget", type=float, default=120, help="minutes after which a comparison begins no other round"
    )
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("at least one round")
    return arguments


_began = time.monotonic()


def _say(line: str) -> None:
    print(f"[{time.monotonic() - _began:6.1f} s] {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
