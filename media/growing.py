"""What players read while a video is still being encoded: EVENT playlists that only ever get longer. Pure text.

What a playlist has once listed it lists for ever, its target duration stays, and so does its type when it is whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from contracts.media import AudioRendition, AudioTimeline, Grid, PlannedAudio, PlannedRendition, VideoRendition
from contracts.steps import VerifiedRenditions
from media.boxes import read_init
from media.manifests import longest_sound, master_playlist, media_playlist


@dataclass(frozen=True)
class GrowingRung:
    planned: PlannedRendition
    prefix: str
    segments: int  # from the start, without a gap
    init: bytes | None = None


@dataclass(frozen=True)
class GrowingTrack:
    planned: PlannedAudio
    prefix: str
    timeline: AudioTimeline | None = None
    init: bytes | None = None

    @property
    def is_silent(self) -> bool:
        return self.timeline is not None and self.timeline.whole and not self.timeline.segments


def rung_playlist(grid: Grid, segments: int) -> str | None:
    """Write a rung's playlist as far as it is there; None while nothing is."""
    if segments < 1:
        return None
    lengths = (Fraction(grid.frames_in(segment)) / grid.frame_rate.fraction for segment in range(segments))
    return media_playlist(lengths, _segment_length(grid), event=True, whole=segments >= grid.segments)


def track_playlist(grid: Grid, timeline: AudioTimeline | None) -> str | None:
    """Write a sound track's playlist as far as it is there; None while nothing is."""
    if timeline is None or not timeline.segments:
        return None
    lengths = (
        Fraction(length, timeline.timescale) for length, count in timeline.segment_durations for _ in range(count)
    )
    longest = longest_sound(_segment_length(grid), timeline.timescale)
    return media_playlist(lengths, longest, event=True, whole=timeline.whole)


def growing_master(
    grid: Grid, rungs: Sequence[GrowingRung], tracks: Sequence[GrowingTrack], slug_prefix: str
) -> str | None:
    """Write the master playlist of what can be watched now; None while the lowest rung or a sound has no opening.

    The rungs come largest first. A rung that lags behind the lowest is left out: whoever switched to it would find
    nothing where they are.
    """
    audible = [track for track in tracks if not track.is_silent]
    lowest = rungs[-1]
    if not _is_open(lowest) or not all(_has_sound(track) for track in audible):
        return None
    listed = [rung for rung in rungs if _is_open(rung) and rung.segments >= lowest.segments - 1]
    sounds = [_sound(track) for track in audible]
    if sounds and not any(sound.default for sound in sounds):  # the default one gave no sound
        sounds[0] = sounds[0].model_copy(update={"default": True})
    videos = tuple(_video(grid, rung) for rung in listed)
    return master_playlist(VerifiedRenditions(video=videos, audio=tuple(sounds)), slug_prefix)


def _segment_length(grid: Grid) -> Fraction:
    return Fraction(grid.segment_frames) / grid.frame_rate.fraction


def _is_open(rung: GrowingRung) -> bool:
    return rung.segments > 0 and rung.init is not None


def _has_sound(track: GrowingTrack) -> bool:
    return track.init is not None and track.timeline is not None and track.timeline.segments > 0


def _video(grid: Grid, rung: GrowingRung) -> VideoRendition:
    planned = rung.planned
    init = read_init(rung.init or b"")
    # Nothing is measured yet: the cap is what the encoder keeps to.
    cap = planned.video_kbps * 1000
    return VideoRendition(
        quality=planned.quality,
        prefix=rung.prefix,
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
        size_bytes=0,
        peak_bandwidth=cap,
        average_bandwidth=cap,
    )


def _sound(track: GrowingTrack) -> AudioRendition:
    planned = track.planned
    init = read_init(track.init or b"")
    cap = planned.kbps * 1000
    return AudioRendition(
        track=planned.track,
        prefix=track.prefix,
        codecs=init.codecs,
        language=planned.language,
        name=planned.name,
        default=planned.default,
        channels=planned.channels,
        timescale=init.timescale,
        segment_durations=track.timeline.segment_durations if track.timeline else (),
        size_bytes=0,
        peak_bandwidth=cap,
        average_bandwidth=cap,
    )
