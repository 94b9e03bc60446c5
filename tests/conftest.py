"""For all tests: no deadline per example, for the machine is shared; in CI the same examples every time."""

import os

from hypothesis import settings

settings.register_profile("vlog", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("vlog")
