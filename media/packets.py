"""Read the time of every picture and sound once, without decoding, in constant memory: counted, not declared."""

import heapq
import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction

from media import rates

_REORDER = 64  # packets come in decoding order; no codec shuffles further than 16 pictures
LONG_GAP_S = 30.0  # in a sound track: ffmpeg would make the silence whole in memory
_MOST_GAPS = 50
_TICKS = 100_000  # gaps are counted in hundredths of a millisecond: coarser, 60 fps looks like 59.94
_LONG_GAP = _TICKS  # a second: longer ones tell nothing about the rate
_JUMP_S = 10.0  # what ffmpeg too takes for a clock that was set, not for a picture that stood still


@dataclass
class _Fit:
    """Does the n-th picture lie on the n-th tick of this rate?"""

    rate: float
    worst: float = 0.0

    def see(self, index: int, since_start_s: float) -> None:
        off = abs(since_start_s * self.rate - index)
        if off > self.worst:
            self.worst = off


@dataclass
class _Ticks:
    """How many pictures share the nearest tick of this rate with the next one, and so would not be seen?"""

    rate: float
    lost: int = 0
    _tick: int = -1

    def see(self, since_start_s: float) -> None:
        tick = int(since_start_s * self.rate + 0.5)
        self.lost += tick == self._tick
        self._tick = tick


@dataclass
class PacketScan:
    """What the packets of one video stream say."""

    candidates: tuple[Fraction, ...]
    steady: tuple[Fraction, ...] = rates.steady()  # what a variable rate may become, the slowest first
    packets: int = 0
    untimed: int = 0  # of them without a time of their own, as in raw streams and avi
    untimed_s: float = 0.0  # how long those last, one after the other
    first_s: float = 0.0
    last_s: float = 0.0
    end_s: float = 0.0  # end of the last picture, as the container says; 0 when it does not
    keyframe_gap_s: float = 0.0
    keyframe_lag_s: float = 0.0  # between the decoding of a keyframe and its being shown
    first_keyframe_s: float | None = None  # None: there is none with a time
    longest_gap_s: float = 0.0  # between two pictures, or how long the last one stays
    step_back_s: float = 0.0  # how far time went backwards, beyond the order of decoding
    _heap: list[float] = field(default_factory=list)
    _gaps: Counter[int] = field(default_factory=Counter)
    _fits: list[_Fit] = field(default_factory=list)
    _ticks: list[_Ticks] = field(default_factory=list)
    _keyframe_s: float | None = None
    _shown: int = 0
    _latest: tuple[float, float] = (float("-inf"), 0.0)

    def __post_init__(self) -> None:
        self._fits = [_Fit(float(rate)) for rate in self.candidates]
        self._ticks = [_Ticks(float(rate)) for rate in self.steady]

    def see(self, line: str, dts: str = "") -> None:
        """Take one line of ffprobe: `pts_time,duration_time,flags`, and when it is decoded."""
        words = line.split(",")
        if len(words) < 3:
            return
        if "K" in words[2] and self.first_keyframe_s is None:
            with suppress(ValueError):
                self.first_keyframe_s = float(words[0])
        if "D" in words[2]:
            return  # an edit list cuts this picture away, though others are made from it
        self.packets += 1
        try:
            duration = float(words[1])
        except ValueError:
            duration = 0.0
        try:
            pts = float(words[0])
        except ValueError:  # raw streams have no times; count and length are all there is
            self.untimed += 1
            self.untimed_s += duration
            return
        self._latest = max(self._latest, (pts, duration))
        if "K" in words[2]:
            if self._keyframe_s is not None:
                self.keyframe_gap_s = max(self.keyframe_gap_s, pts - self._keyframe_s)
            self._keyframe_s = pts
            with suppress(ValueError):
                self.keyframe_lag_s = max(self.keyframe_lag_s, pts - float(dts))
        heapq.heappush(self._heap, pts)
        if len(self._heap) > _REORDER:
            self._show(heapq.heappop(self._heap))

    def close(self) -> None:
        while self._heap:
            self._show(heapq.heappop(self._heap))
        if not self._shown:
            return
        pts, duration = self._latest
        if self._keyframe_s is not None:
            self.keyframe_gap_s = max(self.keyframe_gap_s, pts - self._keyframe_s)
        self.end_s = pts + (duration or self.usual_gap_s)
        self.longest_gap_s = max(self.longest_gap_s, self.end_s - pts)

    def _show(self, pts: float) -> None:
        if not self._shown:
            self.first_s = pts
        else:
            self.longest_gap_s = max(self.longest_gap_s, pts - self.last_s)
            self.step_back_s = max(self.step_back_s, self.last_s - pts)
            # Never below 0: a crafted clock that runs backwards would fill the memory with distances of its own.
            self._gaps[max(0, min(_LONG_GAP, round((pts - self.last_s) * _TICKS)))] += 1
        for fit in self._fits:
            fit.see(self._shown, pts - self.first_s)
        for ticks in self._ticks:
            ticks.see(pts - self.first_s)
        self.last_s = pts
        self._shown += 1

    @property
    def timed(self) -> bool:
        return self._shown > 0

    @property
    def own_rate(self) -> Fraction | None:
        """Tell the rate of pictures that have no times: what they last by their own account."""
        if self.timed or self.untimed_s <= 0:
            return None
        return rates.snap(Fraction(self.untimed) / Fraction(self.untimed_s).limit_denominator(100_000))

    @property
    def jumps(self) -> bool:
        """Tell a clock that was set in the middle."""
        return max(self.longest_gap_s, self.step_back_s) > _JUMP_S

    @property
    def usual_gap_s(self) -> float:
        """The most frequent distance between two pictures."""
        if self._gaps:
            return self._gaps.most_common(1)[0][0] / _TICKS
        return float(1 / self.candidates[0]) if self.candidates else 0.04

    def constant_rate(self) -> Fraction | None:
        """Name the rate whose ticks hold every picture exactly once, if there is one."""
        length_s = self.end_s - self.first_s
        for rate, fit in zip(self.candidates, self._fits, strict=True):
            # Under half a tick everywhere: rounding to the nearest tick neither drops nor repeats a picture.
            if fit.worst < 0.45 and abs(length_s * float(rate) - self.packets) < 1.5:
                return rate
        return None

    def steady_rate(self) -> Fraction | None:
        """Name the slowest usual rate that shows every picture a viewer could see.

        What even the fastest leaves out is shown for less than a screen's own picture. One in 500 more may go: cameras
        that jitter around 30 would else cost twice the pictures, to show each of them twice.
        """
        if not self._shown:
            return None
        spare = self._ticks[-1].lost + self.packets // 500
        return next(rate for rate in self.steady if self.lost_at(rate) <= spare)

    def lost_at(self, rate: Fraction) -> int:
        """Count the pictures that one of the steady rates leaves out."""
        return self._ticks[self.steady.index(rate)].lost


@dataclass
class SoundScan:
    """What the packets of one audio stream say."""

    packets: int = 0
    length_s: float = 0.0  # all packets end to end: no jump between them makes it longer
    end_s: float = 0.0  # end of the last one, by the container's clock
    first_s: float | None = None  # start of the first one
    gaps: list[tuple[float, float]] = field(default_factory=list)  # long ones between two of them

    def see(self, line: str, dts: str = "") -> None:
        self.packets += 1
        words = line.split(",")
        try:
            start = float(words[0])
            # A track that begins late has no lengths: ffmpeg had not met it when it read the head.
            duration = float(words[1]) if words[1] != "N/A" else 0.0
            if self.first_s is None:
                self.first_s = start
            elif start - self.end_s > LONG_GAP_S and len(self.gaps) < _MOST_GAPS:
                self.gaps.append((self.end_s, start))
            self.length_s += duration
            self.end_s = max(self.end_s, start + duration)
        except (ValueError, IndexError):
            return  # no times; the count is what matters


async def scan(
    chunks: AsyncIterator[bytes], streams: Mapping[int, PacketScan | SoundScan], whole_bytes: float = math.inf
) -> None:
    """Feed ffprobe's output, `stream_index,pts_time,dts_time,duration_time,pos,flags`, to the scans of its streams.

    What lies beyond `whole_bytes` was never written: the container's index names it all the same.
    """
    rest = b""
    by_name = {str(index): found for index, found in streams.items()}

    def see(line: bytes) -> None:
        index, _, rest = line.decode("ascii", "replace").partition(",")
        pts, _, rest = rest.partition(",")
        dts, _, rest = rest.partition(",")
        duration, _, rest = rest.partition(",")
        position, _, flags = rest.partition(",")
        found = by_name.get(index)
        if found and not (position.isdigit() and int(position) >= whole_bytes):
            found.see(f"{pts},{duration},{flags}", dts)

    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            see(line)
    see(rest)
    for found in streams.values():
        if isinstance(found, PacketScan):
            found.close()
