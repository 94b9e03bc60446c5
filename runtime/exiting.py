"""The end of a process that has used Temporal's SDK."""

import logging
import os
import sys
from typing import NoReturn


def exit_now(code: int) -> NoReturn:
    """Flush and leave without the interpreter's farewell.

    The SDK's threads abort during finalization (sdk-python#300): a clean stop would look like a crash to
    whoever supervises us. Close your own connections first; nothing runs after this.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # a closed pipe is no reason for another exit code
    os._exit(code)
