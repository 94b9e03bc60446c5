"""What a remote worker says of a source, read with doubt: whoever encodes it later acts on every word. Pure.

Names end up in filter graphs, which can open files; numbers in tables, limits and loops. A worker may be wrong about
its video, and spoil it; it must not be able to do more.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from contracts.media import AudioFacts, FrameRate, SourceFacts, SubtitleFacts, VideoFacts
from contracts.texts import is_unwanted
from runtime.settings import Settings

LONGEST_SIDE = 16_384  # as of media.limits
MOST_NUMBER = 1 << 53
OTHER_WARNINGS = 20  # beside one for every stream
MOST_GAPS = 100
LONGEST_TEXT = 1000

_NAME = re.compile(r"[A-Za-z0-9_.+-]{0,60}")
# Those that are no names: what else they may have in them. Text for people is looked at by itself.
_SHAPES = {
    "format_name": re.compile(r"[A-Za-z0-9_.,+-]{1,200}"),
    "sample_aspect": re.compile(r"\d{1,12}:\d{1,12}"),
    "start_s": re.compile(r"-?\d{1,10}(\.\d{1,9})?"),
}
_FOR_PEOPLE = frozenset({"title", "layout", "warnings"})


def unbelievable(facts: SourceFacts, size_bytes: int, settings: Settings) -> str:
    """Say what of it cannot be; nothing when it may all be true."""
    if strange := _strange(facts):  # first: all else is calculated with these numbers
        return strange
    video = facts.video
    tracks: tuple[AudioFacts | SubtitleFacts, ...] = (*facts.audio, *facts.subtitles)
    # A clock that jumps says nothing of the length; the copy that is made of such a source is looked at again.
    length_known = not (facts.wants_remux and facts.clock_jumps)
    wrong = {
        "its size": facts.size_bytes != size_bytes,
        "a copy that nobody made": bool(facts.remuxed),
        "too many streams": 1 + len(tracks) > settings.max_streams,
        "too many warnings": len(facts.warnings) > settings.max_streams + OTHER_WARNINGS,
        "too many gaps": any(len(track.gaps) > MOST_GAPS for track in facts.audio),
        "its streams": any(not 0 <= one.stream < 100_000 for one in (video, *tracks)),
        "its sound": any(not 1 <= one.channels <= 1024 or one.sample_rate < 0 for one in facts.audio),
        "its rate": not all(map(_is_rate, (video.frame_rate, video.average_rate))),
        "its pictures": not _are_pictures(video, settings),
        "its length": length_known and not _is_length(facts, settings),
        "its number of pictures": not 1 <= video.packets <= settings.max_frame_rate * settings.max_duration_seconds,
    }
    return next((what for what, is_wrong in wrong.items() if is_wrong), "")


def _is_rate(rate: FrameRate) -> bool:
    return rate.num > 0 and rate.den > 0


def _is_length(facts: SourceFacts, settings: Settings) -> bool:
    video = facts.video
    is_slow = video.packets / max(video.end_s, 1.0) <= settings.max_frame_rate
    return is_slow and 0 < video.end_s <= settings.max_duration_seconds and facts.duration_s == video.end_s


def _are_pictures(video: VideoFacts, settings: Settings) -> bool:
    left, top, right, bottom = video.crop
    sizes = ((video.width, video.height), (video.display_width, video.display_height))
    are_sizes = all(
        1 <= min(size) and max(size) <= LONGEST_SIDE and size[0] * size[1] <= settings.max_pixels for size in sizes
    )
    is_cropped = min(video.crop) >= 0 and left + right < video.width and top + bottom < video.height
    return are_sizes and is_cropped and video.rotation in (0, 90, 180, 270) and 1 <= video.bit_depth <= 64


def _strange(facts: SourceFacts) -> str:
    """Name a word that is none, or a number that no file has; whatever fields there are."""
    for name, value in _leaves("", facts.model_dump()):
        match value:
            case float() if not math.isfinite(value) or abs(value) > MOST_NUMBER:
                return name
            case int() if abs(value) > MOST_NUMBER:
                return name
            case str() if name in _FOR_PEOPLE:
                if len(value) > LONGEST_TEXT or any(map(is_unwanted, value)):
                    return name
            case str() if not _SHAPES.get(name, _NAME).fullmatch(value):
                return name
    return ""


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Give every value of a message, with the name of the field that it is in."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(key, each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(name, each)
    else:
        yield name, value
