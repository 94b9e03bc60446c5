"""Who is taken first when sixty videos of three tiers and four owners wait for one slot; then once more, two moved."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta

from api.moving import prioritize
from contracts.queues import TaskQueue
from contracts.states import Tier
from tests.bench.bench import Bench
from tests.bench.figures import Verdict
from tests.bench.machine import moment
from tests.bench.page import table, verdict_lines
from tests.replay.stories import temporal_for_stories
from tests.support.eventually import eventually
from tests.support.turns import FRESH_COUNTS, Line, Queued, unfairness, waiting_steps
from workflows.transcode_video import TranscodeVideo

# Uploaded tier by tier, the last tier first, and within it all of Ana's before anybody else's.
TIERS = (Tier.FREE, Tier.CREATOR, Tier.VIRAL)
SHARES = {"ana": 11, "bo": 5, "cy": 3, "di": 1}


def priority(bench: Bench) -> str:
    """Queue, then serve with one slot, and compare the order of first transcode starts with what was promised."""
    when = moment()
    shares = dict.fromkeys(SHARES, 1) if bench.quick else SHARES
    owners = [owner for owner, count in shares.items() for _ in range(count)]
    pairs = [(tier, owner) for tier in TIERS for owner in owners]
    uploaded = [Queued(number, tier, owner) for number, (tier, owner) in enumerate(pairs, 1)]
    # When all wait: the first of Ana's free ones becomes viral, and the last of Cy's viral ones bulk.
    down = max(video.number for video in uploaded if video.owner == "cy")
    moves = {1: Tier.VIRAL, down: Tier.BULK}
    line, seconds = asyncio.run(_serve(uploaded, {}))
    # By itself: who is moved gives up one turn and is given another, which is no owner's lead over others.
    again, _ = asyncio.run(_serve(uploaded, moves))

    videos = uploaded
    started = [videos[number - 1] for number in line.steps.first_starts]
    rows, worst = [], 0
    for tier in sorted({video.tier for video in videos}, key=lambda each: each.priority):
        those = [video.owner for video in started if video.tier is tier]
        worst = max(worst, unfairness(those))
        rows.append([tier.value, " ".join(those)])
    bench.say(f"{len(started)} started, worst unfairness {worst}")

    order = [video.tier.priority for video in started]
    misplaced = sum(early > late for place, early in enumerate(order) for late in order[place + 1 :])
    late = sum(_not_before_the_rest(line, videos, tier) for tier in TIERS)
    moved = [replace(video, tier=moves.get(video.number, video.tier)) for video in uploaded]
    order_then = [moved[number - 1].tier.priority for number in again.steps.first_starts]
    placed = len(order_then) == len(videos) and order_then == sorted(order_then)
    verdicts = [
        Verdict(f"all {len(videos)} start", str(len(started)), len(started) == len(videos)),
        Verdict("tiers in their order", f"{misplaced} pairs out of order", misplaced == 0),
        Verdict("owners of a tier within ±1 start", f"±{worst}", worst <= 1),
        Verdict("two that are moved in the queue start in their new tiers", "both" if placed else "not both", placed),
        Verdict("every opening of a tier before the rest of it", f"{late} later", late == 0),
    ]
    each = ", ".join(f"{count} of {owner}" for owner, count in shares.items())
    intro = (
        f"{len(videos)} videos of three tiers, in each {each}; all are in line before"
        f" one slot of `vlog-cpu` is served. Then the same once more, and meanwhile one of Ana's free ones is made"
        f" viral, one of Cy's viral ones bulk. Real Temporal with the embedded server's settings and the real workflow;"
        f" steps only answer, nothing is encoded. {when}; served in {seconds:.1f} s."
    )
    return "\n\n".join(
        [
            "## Tiers and owners before one slot",
            intro,
            table(["tier", "owners by their videos' first transcode"], rows),
            verdict_lines(verdicts),
        ]
    )


async def _serve(uploaded: list[Queued], moves: Mapping[int, Tier]) -> tuple[Line, float]:
    async with temporal_for_stories(FRESH_COUNTS) as client, AsyncExitStack() as stack:
        line = Line(client, uploaded, stack)
        await line.upload()
        await line.serve(TaskQueue.ORCHESTRATE)
        await line.serve(TaskQueue.PROBE)
        await line.serve(TaskQueue.IO)
        await line.wait_for(TaskQueue.CPU, waiting_steps(uploaded))
        for number, tier in moves.items():
            await _move(line, uploaded[number - 1], tier)
        began = time.monotonic()
        await line.serve(TaskQueue.CPU, slots=1)
        await line.end()
        return line, time.monotonic() - began


async def _move(line: Line, video: Queued, tier: Tier) -> None:
    """Change a priority as the API does, and wait until all of the video is in its new place in the queue."""
    there = (await line.backlog(TaskQueue.CPU))[tier.priority] + waiting_steps([video]).total()
    handle = line.client.get_workflow_handle_for(TranscodeVideo.run, video.workflow_id)
    await prioritize(line.client, handle, tier, named=f"as-{tier}", within=timedelta(minutes=1))

    async def is_there() -> bool:
        return (await line.backlog(TaskQueue.CPU))[tier.priority] == there

    await eventually(is_there, within=60)


def _not_before_the_rest(line: Line, videos: list[Queued], tier: Tier) -> int:
    """Count the openings of a tier that came after another span of it."""
    numbers = {video.number for video in videos if video.tier is tier}
    spans = [span for span in line.steps.spans_made if span.video_id in numbers]
    opens = [span.span.first_segment == 0 and span.step_qualities == ("360p",) for span in spans]
    return sum(opens[opens.index(False) :]) if False in opens else 0
