"""The durable promises of the system on one page: where each step runs, how long it may take, how often it is tried."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio.common import Priority, RetryPolicy

from contracts.media import VideoFacts
from contracts.plan import Grid, PlannedRendition, Span, TranscodePlan
from contracts.queues import TaskQueue, Turn, fairness_key
from contracts.states import Tier

FOREVER = 0  # Temporal's word for unlimited attempts

# A GPU worker that vanished may be back; one that vanishes again with the same step is not asked a third time.
GPU_ATTEMPTS = 2
# Of the time that a GPU has to begin a step, what one that says it is busy is left alone before it is asked again.
BUSY_SHARE = 0.5

# A step that is told to come later does so; after so many times it waits twice as long, and so on, five times over …
WAITS_AS_TOLD = 10
WAITS_DOUBLE = 5
# … unless that were longer than this. A day of a full disk is then some hundred waits, a thousand events; after so many
# a workflow whose history Temporal finds long goes on in a new run …
LONGEST_WAIT_S = 900.0
LONG_WAITS = 100
# … and at once when so many events, of the fifty thousand that Temporal takes, are there: hundreds of spans may wait
# side by side. More than the longest list has that waits for nothing, or it would begin anew for ever.
LONG_HISTORY = 20_000

# A worker that lacks a step's ffmpeg hands it back, at no cost. After so many times nobody seems to have it any more …
BUILD_WAITS = 2
# … and the work moves to another ffmpeg; not for ever: workers that are upgraded one by one may pass it to and fro.
# Half an hour of that for what the video needs, a minute for what it can do without.
MOVES = 60
ALTERNATIVE_MOVES = 2


# Seconds in which one core decodes a second of a million pixels: five times what a slow one takes.
DECODING = 0.5


@dataclass(frozen=True)
class Promise:
    queue: TaskQueue
    limit_s: float  # one attempt may take this long
    fetches: bool = False  # and as long as it may take to bring the source to the worker, before
    heartbeats: bool = True  # a silent worker loses the step after the job's heartbeat timeout
    turn: Turn = Turn.REST  # before whom it goes within its tier
    start_within_s: float = 0.0  # waits no longer for a worker; 0: for as long as it takes
    waits: int = 0  # told "later" more often than so, it is given up; 0: it waits for as long as it takes
    attempts: int = 0  # no more than these, though the job allows them; 0: as many as it allows
    until_done: bool = False  # retried for ever: mirror writes outlast any outage of Postgres
    regardless: bool = False  # runs to its end in a pause and after a cancel: it is how jobs end

    def limit(self, size_bytes: int = 0) -> timedelta:
        """Say how long an attempt may take; a worker on a slow line fetches a megabyte a second."""
        return timedelta(seconds=self.limit_s + self.fetches * size_bytes / 1e6)


PLAN = Promise(TaskQueue.IO, limit_s=60, heartbeats=False)
THUMBNAIL = Promise(TaskQueue.CPU, limit_s=1500, fetches=True)  # a dozen pictures at most, two minutes each
VERIFY = Promise(TaskQueue.IO, limit_s=900)
MANIFESTS = Promise(TaskQueue.IO, limit_s=300, heartbeats=False, regardless=True)
TIDY = Promise(TaskQueue.IO, limit_s=60, heartbeats=False, until_done=True, regardless=True)
PUBLISH = Promise(TaskQueue.ORCHESTRATE, limit_s=120, heartbeats=False, until_done=True, regardless=True)
ENDING = Promise(TaskQueue.ORCHESTRATE, limit_s=30, heartbeats=False, until_done=True, regardless=True)
# Housekeeping removes what is left: a cancel that waits for a storage which is away would be no end.
REMOVE = Promise(TaskQueue.ORCHESTRATE, limit_s=300, heartbeats=False, waits=1, regardless=True)


def probe(size_bytes: int) -> Promise:
    """A probe reads the whole file once; a slow disk gives 5 MB a second."""
    return Promise(TaskQueue.PROBE, limit_s=600 + size_bytes / 5e6, fetches=True)


def remux(size_bytes: int) -> Promise:
    """Packets are copied, and the copy is looked at as a probe would."""
    return Promise(TaskQueue.IO, limit_s=1200 + 4 * size_bytes / 5e6, fetches=True)


def subtitles(size_bytes: int) -> Promise:
    """The whole file is read once, as by the probe; nothing is decoded."""
    return Promise(TaskQueue.IO, limit_s=600 + size_bytes / 5e6, fetches=True)


def storyboard(plan: TranscodePlan) -> Promise:
    """Mostly keyframes are decoded; at worst the whole source, many times faster than it plays."""
    return Promise(TaskQueue.CPU, limit_s=1300 + 4 * plan.grid.duration_s, fetches=True)


def audio(plan: TranscodePlan, size_bytes: int, turn: Turn = Turn.REST) -> Promise:
    """AAC runs at many times real time; half of real time means something is wrong. The whole file is read for it."""
    limit_s = 600 + 2 * plan.grid.duration_s + size_bytes / 5e6
    return Promise(TaskQueue.CPU, limit_s, fetches=True, turn=turn)


def transcode(
    video: VideoFacts, grid: Grid, renditions: Sequence[PlannedRendition], span: Span, turn: Turn = Turn.REST
) -> Promise:
    """Scale with length and size, with no cap: stalls are caught by frames that stop, not by this limit.

    All that lies before the span may have to be decoded: where keyframes are rare, or broken.
    """
    megapixels = sum(r.width * r.height for r in renditions) / 1e6
    seconds = grid.seconds(span.segments * grid.segment_frames)
    before_s = grid.seconds(span.first_segment * grid.segment_frames)
    decoding_s = before_s * DECODING * video.width * video.height / 1e6
    limit_s = 600 + seconds * (10 + 60 * megapixels) + decoding_s
    return Promise(TaskQueue.CPU, limit_s, fetches=True, turn=turn)


def transcode_on_gpu(
    video: VideoFacts, grid: Grid, rendition: PlannedRendition, span: Span, *, start_within_s: float
) -> Promise:
    """As long as the CPU may take: a device that is slower hardly deserves the name."""
    limit_s = transcode(video, grid, [rendition], span).limit_s
    return Promise(TaskQueue.GPU, limit_s, fetches=True, start_within_s=start_within_s, attempts=GPU_ATTEMPTS)


def turn(promise: Promise, owner: str, tier: Tier) -> Priority:
    """Say who goes first of those that wait for a worker.

    The tier is said by each step, so that a change of it counts for what comes; what is queued already is moved
    by whoever asked (`update_activity_options`, path `priority.priority_key`). Within it owners take turns, and what
    lets people begin to watch goes first by its weight. Not for ever: among a thousand steps one is somebody's rest.
    """
    return Priority(
        priority_key=tier.priority,
        fairness_key=fairness_key(owner, promise.turn),
        fairness_weight=promise.turn.weight,
    )


def retries(promise: Promise, attempts_left: int, give_up_on: Sequence[str] = ()) -> RetryPolicy:
    """Back off 5 s, doubling to 60 s."""
    return RetryPolicy(
        initial_interval=timedelta(seconds=1 if promise.until_done else 5),
        backoff_coefficient=2.0,
        maximum_interval=timedelta(seconds=60),
        maximum_attempts=FOREVER
        if promise.until_done
        else max(1, min(attempts_left, promise.attempts or attempts_left)),
        non_retryable_error_types=give_up_on,
    )
