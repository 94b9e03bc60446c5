"""From what was planned and what its init segment says to a rendition that manifests can list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from contracts.plan import Grid, PlannedAudio, PlannedRendition
from contracts.renditions import AudioRendition, VideoRendition
from media import bandwidth
from media.boxes import InitFacts


@dataclass(frozen=True)
class Weight:
    """What a rendition costs who plays it: bytes in all, bits per second."""

    size_bytes: int
    peak: int
    average: int

    @classmethod
    def measured(cls, sizes: Sequence[int], durations_s: Sequence[float]) -> Self:
        """Weigh what is whole, by each segment's bytes and seconds."""
        return cls(sum(sizes), *bandwidth.measure(sizes, durations_s))

    @classmethod
    def capped(cls, kbps: int) -> Self:
        """Promise for what is still being made: the cap is what the encoder keeps to."""
        return cls(0, kbps * 1000, kbps * 1000)


def video_rendition(
    planned: PlannedRendition, grid: Grid, prefix: str, init: InitFacts, weight: Weight
) -> VideoRendition:
    return VideoRendition(
        quality=planned.quality,
        prefix=prefix,
        width=planned.width,
        height=planned.height,
        codec=planned.codec,
        codecs=init.codecs,
        bitrate_kbps=planned.video_kbps,
        frame_rate=grid.frame_rate,
        timescale=init.timescale,
        frame_duration=int(init.timescale / grid.frame_rate.fraction),
        segment_frames=grid.segment_frames,
        frames=grid.frames,
        size_bytes=weight.size_bytes,
        peak_bandwidth=weight.peak,
        average_bandwidth=weight.average,
    )


def audio_rendition(
    planned: PlannedAudio,
    prefix: str,
    init: InitFacts,
    segment_durations: tuple[tuple[int, int], ...],
    weight: Weight,
) -> AudioRendition:
    return AudioRendition(
        track=planned.track,
        prefix=prefix,
        codecs=init.codecs,
        language=planned.language,
        name=planned.name,
        default=planned.default,
        channels=planned.channels,
        timescale=init.timescale,
        segment_durations=segment_durations,
        size_bytes=weight.size_bytes,
        peak_bandwidth=weight.peak,
        average_bandwidth=weight.average,
    )
