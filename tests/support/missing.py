"""What a test needs and this machine lacks: a reason to skip on a laptop, a fault in CI."""

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """End this test: skipped on a laptop, failed in CI, where a skipped test would be noticed by nobody."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")
