"""The tests by which this worker knows itself, each given the ffmpeg build in doubt; they raise what goes wrong."""

from contracts.errors import GpuFailed
from media.gpu import Gpu, detect
from media.self_test import self_test
from media.tools import Toolbox
from storage.store import Store


async def test_encode(store: Store, tools: Toolbox, build: str) -> None:
    """Encode a second of our own where videos are encoded."""
    async with store.scratch("self-test") as here:
        await self_test(tools, here, build=build)


async def test_gpu(tools: Toolbox, gpu: Gpu, device: str, _build: str) -> None:
    """Encode with every encoder that the GPU had at the start."""
    wanted = tuple(gpu.names.values())
    found = await detect(tools, wanted=wanted, device=device)
    if missing := set(wanted) - set(found.names.values()):
        said = "\n".join(str(attempt) for attempt in found.attempts)
        raise GpuFailed(f"The GPU does not encode any more: {', '.join(sorted(missing))}.", detail=said)
