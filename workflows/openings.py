"""The opening of a long video goes first: its first span, and its sound.

Priority orders what queues. On idle workers nothing does: of what is asked for in one moment they take whichever
reaches them first, and a slot that took minutes of a large rung, or of the end, lets people wait for the beginning. So
the rest is asked for a moment later. A short video's steps are over soon, whatever their order.
"""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from contracts.plan import Grid

LEAD_S = 1.0
LONG_S = 120.0


async def go_first(grid: Grid) -> None:
    """Wait until a worker with a free slot has taken what lets people begin to watch."""
    await _wait(grid, LEAD_S, "the opening goes first")


async def go_next(grid: Grid) -> None:
    """Wait also for the rest of what the opening began."""
    await _wait(grid, 2 * LEAD_S, "the lowest quality goes first")


async def _wait(grid: Grid, seconds: float, why: str) -> None:
    if grid.duration_s > LONG_S:
        await workflow.sleep(seconds, summary=why)
