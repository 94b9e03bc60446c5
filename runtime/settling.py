"""The beginning of a process that runs for months."""

import gc


def settle() -> None:
    """Leave what is loaded by now out of every search for garbage.

    It is some hundred thousand objects that stay for good, and each full search through them stops the process for a
    tenth of a second: segments wait to be stored meanwhile, and requests to be answered.
    """
    gc.collect()
    gc.freeze()
