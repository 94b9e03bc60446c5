"""How the work on one video is cut: into spans of time, and into lists of qualities that share one decode.

Cutting buys spreading over workers, not speed on one machine: one process with one decode fills two cores
within 2 % of the limit. So a short video on a lone worker stays whole.
"""

from collections.abc import Sequence
from itertools import pairwise

from contracts.plan import Capacity, Grid, PlannedRendition, Span

SHORT_S = 90.0  # on a lone worker, below this a video is one span
LONG_S = 120.0  # above this the lowest rung runs ahead, so that the video plays early
LEAST_SEGMENTS = 2  # a span costs a process and a seek: it must be worth them
# Six events of a workflow's history each, of which Temporal takes fifty thousand; and it lets two thousand steps of one
# workflow wait at a time. However long the film and however many the workers, a list stays far below both.
MOST_SPANS = 1000
MOST_AT_ONCE = 500
# Each span is decoded from the keyframe before it. Encoders set one every few seconds unless told otherwise; a call
# that is recorded as it comes may have a single one in hours, and each of its spans would be decoded from the start.
USUAL_GAP_S = 30.0


def choose_spans(grid: Grid, capacity: Capacity, span_seconds: float, keyframe_gap_s: float = 0.0) -> tuple[Span, ...]:
    """Cut so that every slot of this video's share has work and all end at about the same time.

    For slots that others fill nothing is cut: each span costs a process, a seek and six events of history. Nor are
    spans shorter than an unusual distance between keyframes: more would be decoded before them than in them.
    """
    if capacity.workers <= 1 and grid.duration_s <= SHORT_S:
        return (Span(first_segment=0, segments=grid.segments),)
    segment_s = grid.seconds(grid.segment_frames)
    per_span = max(LEAST_SEGMENTS, round(span_seconds / segment_s))
    wanted = -(-grid.segments // per_span)
    # A multiple of the slots, so that the last round is as full as the first …
    wanted = -(-wanted // capacity.share) * capacity.share
    # … unless the spans would become too short for that.
    most = grid.segments // LEAST_SEGMENTS
    if keyframe_gap_s > USUAL_GAP_S:
        most = min(most, int(grid.duration_s / keyframe_gap_s))
    count = max(1, min(wanted, most, MOST_SPANS))
    return evenly(grid.segments, count)


def choose_window(capacity: Capacity) -> int:
    """Say how many steps of a list wait at a time: enough that no slot does, also when the others have ended."""
    return min(max(4, 2 * capacity.slots), MOST_AT_ONCE)


def evenly(segments: int, count: int) -> tuple[Span, ...]:
    """Cut into `count` runs whose lengths differ by one segment at most."""
    edges = [segments * n // count for n in range(count + 1)]
    return tuple(Span(first_segment=a, segments=b - a) for a, b in pairwise(edges))


def choose_lists(
    renditions: Sequence[PlannedRendition], spans: Sequence[Span], grid: Grid, capacity: Capacity, *, share: bool
) -> tuple[tuple[str, ...], ...]:
    """Say which qualities are encoded together; the first list is the one that makes the video playable.

    Alternatives to H.264 come last.
    """
    names = tuple(rendition.quality for rendition in renditions if not rendition.is_alternative)
    # A list each: beside such an encoder a decode is cheap, and the memory of several at once is not.
    others = tuple((rendition.quality,) for rendition in reversed(renditions) if rendition.is_alternative)
    return (*_main_lists(names, spans, grid, capacity, share=share), *others)


def _main_lists(
    names: tuple[str, ...], spans: Sequence[Span], grid: Grid, capacity: Capacity, *, share: bool
) -> tuple[tuple[str, ...], ...]:
    starved = capacity.workers > 1 and len(spans) * 2 <= capacity.share
    if not share or starved:
        # A decode each costs a quarter more work, but idle workers cost nothing.
        return tuple((name,) for name in reversed(names))
    if grid.duration_s > LONG_S and len(names) > 1:
        return (names[-1:], names[:-1])
    return (names,)
