"""How many bits per second a rendition asks for."""

from collections.abc import Sequence

# A segment this short holds little but its keyframe and its headers: its rate says nothing about playback.
SHORTEST_S = 0.5


def measure(sizes: Sequence[int], durations_s: Sequence[float]) -> tuple[int, int]:
    """Return (peak, average) in bits per second from each segment's bytes and seconds.

    Bytes include the boxes around the media: a player fetches them too.
    """
    total_s = sum(durations_s)
    if len(sizes) != len(durations_s) or total_s <= 0:
        raise ValueError("each segment needs a size and a duration")
    average = sum(sizes) * 8 / total_s
    long_enough = [size * 8 / length for size, length in zip(sizes, durations_s, strict=True) if length >= SHORTEST_S]
    # A video shorter than that has only its average; and a short last segment may be so dense that no peak reaches it.
    return round(max([*long_enough, average])), round(average)
