"""Every case by its name, in the order of running."""

from tests.bench.alone import linearity, playable, upload_memory
from tests.bench.bench import Case
from tests.bench.comparing import compare
from tests.bench.pollers import pollers
from tests.bench.scaling import arithmetic, scaling
from tests.bench.sources import HD, UHD
from tests.bench.streams import sse
from tests.bench.uploads import tus
from tests.bench.waiting import priority

# In this order one service serves all of veryfast; `playable` stops it in the middle of a video.
CASES: dict[str, Case] = {
    "60s-veryfast": compare("60 s of 1080p, veryfast", HD, 60, "veryfast", 0.80),
    "20s-2160p": compare("20 s of 2160p, the whole ladder", UHD, 20, "veryfast", None),
    "linearity": linearity,
    "upload-memory": upload_memory,
    "playable": playable,
    "priority": priority,
    "sse": sse,
    "scaling": scaling,
    "arithmetic": arithmetic,
    "pollers": pollers,
    "tus": tus,
    "60s-medium": compare("60 s of 1080p, medium", HD, 60, "medium", 0.88),
}
