"""The tests by which this worker knows itself, each given the ffmpeg build in doubt; they raise what goes wrong."""

from contracts.errors import GpuFailed
from media.gpu import detect
from media.self_test import self_test
from workers.build import Parts


async def test_encode(parts: Parts, build: str) -> None:
    """Encode a second of our own where videos are encoded."""
    async with parts.store.scratch("self-test") as here:
        await self_test(parts.tools, here, build=build)


async def test_gpu(parts: Parts, _build: str) -> None:
    """Encode with every encoder that the GPU had at the start."""
    wanted = tuple(parts.gpu.names.values())
    found = await detect(parts.tools, wanted=wanted, device=parts.settings.gpu_device or "")
    if missing := set(wanted) - set(found.names.values()):
        said = "\n".join(str(attempt) for attempt in found.attempts)
        raise GpuFailed(f"The GPU does not encode any more: {', '.join(sorted(missing))}.", detail=said)
