"""Run pytest; what failed beside the others is run once more, alone, and has to pass then.

`python -m tests.once_more ARGUMENTS` takes pytest's own arguments. Two cores are shared by browsers, encoders and
servers, and a test that waits for one of them may starve; a test that is wrong fails alone as well. Both reports are
printed, so what passed only alone is seen. Many failures are no starvation: then there is no second run.
"""

import re
import subprocess
import sys

import pytest

MOST = 6  # more than this is broken, not starved


class Failed:
    """Remembers what failed, by the name that a second run knows it by."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names[plain_name(report.nodeid)] = None


def plain_name(nodeid: str) -> str:
    """Take off the group that xdist appends; a parameter may hold an @ too, but then a bracket follows."""
    return re.sub(r"@[\w-]+$", "", nodeid)


def main(arguments: list[str]) -> int:
    failed = Failed()
    code = pytest.main(arguments, plugins=[failed])
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed.names) <= MOST:
        return int(code)
    print(f"\nOnce more, alone: {', '.join(failed.names)}", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:xdist", *failed.names], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
