"""For all tests: no deadline per example, for the machine is shared; in CI the same examples every time.

And how processes share them out: tests/support/order.py.
"""

import os
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("vlog", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("vlog")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        from tests.support.order import share_out

        share_out(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.support.order import FromBothEnds

    return FromBothEnds(config, log) if config.getvalue("dist") == "loadgroup" else None
