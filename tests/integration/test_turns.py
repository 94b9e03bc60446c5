"""Who is taken first by one slot: videos of three tiers and four owners, all in line before anybody serves it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from temporalio.client import Client

from api.moving import prioritize
from contracts.queues import TaskQueue
from contracts.states import Tier
from tests.replay.fake_plans import LONG
from tests.replay.stories import temporal_for_stories
from tests.support.eventually import eventually
from tests.support.turns import FRESH_COUNTS, WORKFLOWS, Line, Queued, unfairness, waiting_steps
from workflows.picture import CHILD_FROM_SPANS
from workflows.transcode_video import TranscodeVideo

# In the order of their upload: the last come first, and in each tier somebody came with two.
WHO = {
    Tier.FREE: ("ana", "ana", "bo", "cy"),
    Tier.CREATOR: ("bo", "bo", "ana", "di"),
    Tier.VIRAL: ("di", "di", "cy", "ana"),
}

MINUTE = timedelta(minutes=1)
# Long enough for workflows of its own.
FILM = LONG.model_copy(
    update={"spans": LONG.spans[:CHILD_FROM_SPANS], "lists": (("720p", "360p"),), "subtitles": (), "window": 4}
)


def queued(who: Mapping[Tier, tuple[str, ...]]) -> list[Queued]:
    pairs = [(tier, owner) for tier, owners in who.items() for owner in owners]
    return [Queued(number, tier, owner) for number, (tier, owner) in enumerate(pairs, 1)]


@asynccontextmanager
async def line_of(videos: Sequence[Queued], client: Client) -> AsyncIterator[Line]:
    """Put videos in line before the encoders; nobody serves these yet."""
    async with AsyncExitStack() as stack:
        line = Line(client, videos, stack)
        await line.upload()
        await line.serve(TaskQueue.ORCHESTRATE)
        await line.serve(TaskQueue.PROBE)
        await line.serve(TaskQueue.IO)
        await line.wait_for(TaskQueue.CPU, waiting_steps(videos))
        yield line


def numbered(videos: Iterable[Queued], numbers: Iterable[int]) -> list[Queued]:
    by_number = {video.number: video for video in videos}
    return [by_number[number] for number in numbers]


async def test_twelve_videos_start_by_tier_and_owners_take_turns_within_it() -> None:
    videos = queued(WHO)
    async with temporal_for_stories(FRESH_COUNTS) as client, line_of(videos, client) as line:
        await line.serve(TaskQueue.CPU, slots=1)
        await line.end()
    started = numbered(videos, line.steps.first_starts)
    assert len(started) == len(videos)
    assert [video.tier for video in started] == sorted((v.tier for v in videos), key=lambda tier: tier.priority)
    for tier, owners in WHO.items():
        those = [video.owner for video in started if video.tier is tier]
        assert Counter(those) == Counter(owners)
        assert unfairness(those) <= 1, those
        # Everybody's opening before the rest of anybody's.
        numbers = {video.number for video in videos if video.tier is tier}
        spans = [span for span in line.steps.spans_made if span.video_id in numbers]
        openings = [span.span.first_segment == 0 and span.step_qualities == ("360p",) for span in spans]
        assert openings == sorted(openings, reverse=True)


async def test_a_priority_changed_in_the_queue_moves_a_long_film_up_and_another_down() -> None:
    videos = [
        Queued(1, Tier.HOBBY, "ana"),
        Queued(2, Tier.HOBBY, "ana"),
        Queued(3, Tier.HOBBY, "bo"),
        Queued(4, Tier.FREE, "cy", plan=FILM),
    ]
    async with temporal_for_stories(FRESH_COUNTS) as client, line_of(videos, client) as line:
        for number, tier in ((4, Tier.VIRAL), (1, Tier.BULK)):
            handle = client.get_workflow_handle_for(TranscodeVideo.run, videos[number - 1].workflow_id)
            await prioritize(client, handle, tier, named=f"as-{tier}", within=MINUTE)
        film, other = waiting_steps(videos[3:])[Tier.FREE.priority], waiting_steps(videos[:1])[Tier.HOBBY.priority]

        async def both_are_moved() -> bool:
            backlog = await line.backlog(TaskQueue.CPU)
            return (backlog[Tier.VIRAL.priority], backlog[Tier.BULK.priority]) == (film, other)

        await eventually(both_are_moved, within=30)
        await line.serve(TaskQueue.CPU, slots=1)
        await line.end()
    assert line.steps.first_starts[0] == 4
    assert line.steps.first_starts[-1] == 1
    assert sorted(line.steps.first_starts[1:3]) == [2, 3]
    # What the film asked for afterwards waited with its new tier as well.
    waited = zip(line.steps.spans_made, line.steps.waited_with, strict=True)
    assert {key for made, key in waited if made.video_id == 4 and made.span not in FILM.spans[: FILM.window]} == {
        Tier.VIRAL.priority
    }


async def test_nobody_viral_waits_for_the_workflows_and_probes_of_others() -> None:
    others = [Queued(number, Tier.FREE, "ana") for number in range(1, 16)]
    videos = [*others, Queued(16, Tier.FREE, "bo"), Queued(17, Tier.FREE, "cy"), Queued(18, Tier.VIRAL, "di")]
    async with temporal_for_stories(FRESH_COUNTS) as client, AsyncExitStack() as stack:
        line = Line(client, videos, stack)
        await line.upload()
        # Cy's becomes viral while its workflow itself waits: nobody is there yet who could hear of it.
        handle = client.get_workflow_handle_for(TranscodeVideo.run, videos[16].workflow_id)
        moving = asyncio.create_task(prioritize(client, handle, Tier.VIRAL, named="as-viral", within=MINUTE))

        async def two_are_viral() -> bool:
            return (await line.backlog(TaskQueue.ORCHESTRATE, WORKFLOWS))[Tier.VIRAL.priority] == 2

        await eventually(two_are_viral, within=30)
        await line.serve(TaskQueue.ORCHESTRATE, workflows=2)
        await moving

        async def probes_are_in_line() -> bool:
            backlog = await line.backlog(TaskQueue.PROBE)
            return backlog[Tier.VIRAL.priority] >= 2 and backlog[Tier.FREE.priority] >= 16

        await eventually(probes_are_in_line, within=60)
        await line.serve(TaskQueue.PROBE, slots=1)

        async def all_are_looked_at() -> bool:
            return len(line.steps.probed) == len(videos)

        await eventually(all_are_looked_at, within=60)
        heard = sorted([(await line.first_heard(video), video.number) for video in videos])
    assert {number for _, number in heard[:2]} == {17, 18}
    assert set(line.steps.probed[:2]) == {17, 18}
    # Fifteen of Ana's do not go before one of Bo's.
    assert line.steps.probed.index(16) <= 3
