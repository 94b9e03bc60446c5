"""What players read while a video is still being encoded: EVENT playlists that only ever get longer. Pure text.

What a playlist has once listed it lists for ever, its target duration stays, and so does its type when it is whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from contracts.end_steps import VerifiedRenditions
from contracts.plan import Grid, PlannedAudio, PlannedRendition, PlannedSubtitle
from contracts.renditions import AudioRendition, AudioTimeline, SubtitleRendition, VideoRendition
from media.boxes import read_init
from media.manifests import MediaPlaylist, longest_sound, master_playlist
from media.renditions import Weight, audio_rendition, video_rendition


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


@dataclass(frozen=True)
class StoredText:
    """Subtitles that are there: whole, for they are stored whole."""

    planned: PlannedSubtitle
    prefix: str


class RungPlaylist:
    """A rung's playlist under one address, added to as segments come; where a generation ends the next one goes on."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._playlist = MediaPlaylist(_segment_length(grid), event=True)
        self._generation = 0

    @property
    def segments(self) -> int:
        return self._playlist.segments

    def extend(self, folders: Sequence[tuple[str, int]]) -> None:
        """List what has come: generation by generation the folder, and its segments from the start without a gap."""
        for generation in range(self._generation, len(folders)):
            folder, stored = folders[generation]
            while self.segments < min(stored, self._grid.segments):
                # Never back to the one before: what it lacked here it will always lack.
                self._generation = generation
                length = Fraction(self._grid.frames_in(self.segments)) / self._grid.frame_rate.fraction
                self._playlist.add(length, folder)

    def text(self) -> str | None:
        """Write it as far as it is there; None while nothing is."""
        return self._playlist.text(whole=self.segments >= self._grid.segments) if self.segments else None


class TrackPlaylist:
    """A sound track's playlist under one address, added to as its timeline grows; it goes on as a rung's does."""

    def __init__(self, grid: Grid) -> None:
        self._longest_picture = _segment_length(grid)
        self._playlist: MediaPlaylist | None = None
        self._generation = 0
        self._whole = False

    @property
    def segments(self) -> int:
        return self._playlist.segments if self._playlist else 0

    def extend(self, folders: Sequence[tuple[str, AudioTimeline | None]]) -> None:
        """List what has come: generation by generation the folder, and what is told of its segments."""
        for generation in range(self._generation, len(folders)):
            folder, timeline = folders[generation]
            if timeline is None or timeline.segments <= self.segments:
                continue
            self._generation = generation
            if self._playlist is None:
                self._playlist = MediaPlaylist(longest_sound(self._longest_picture, timeline.timescale), event=True)
            # All are cut at the same samples: what begins anew is told apart by its folder alone.
            lengths = (length for length, count in timeline.segment_durations for _ in range(count))
            for length in islice(lengths, self.segments, None):
                self._playlist.add(Fraction(length, timeline.timescale), folder)
        newest = folders[-1][1]
        self._whole = newest is not None and newest.whole

    def text(self) -> str | None:
        """Write it as far as it is there; None while nothing is."""
        return self._playlist.text(whole=self._whole) if self._playlist else None


def growing_master(
    grid: Grid,
    rungs: Sequence[GrowingRung],
    tracks: Sequence[GrowingTrack],
    slug_prefix: str,
    texts: Sequence[StoredText] = (),
) -> str | None:
    """Write the master playlist of what can be watched now; None while the lowest rung or its sound has no opening.

    The rungs come largest first. A rung that lags behind the lowest is left out: whoever switched to it would find
    nothing where they are. So are codecs beside H.264: they are encoded last, and one that fails is not published.
    Of several sounds one is enough to begin with: the default, or the first that is not silent. The others are listed
    as they come, for those who open the stream then.
    """
    rungs = [rung for rung in rungs if not rung.planned.is_alternative]
    audible = [track for track in tracks if not track.is_silent]
    first = next((track for track in audible if track.planned.default), audible[0] if audible else None)
    lowest = rungs[-1] if rungs else None
    if lowest is None or not _is_open(lowest) or (first is not None and not _has_sound(first)):
        return None
    listed = [rung for rung in rungs if _is_open(rung) and rung.segments >= lowest.segments - 1]
    heard = [track for track in audible if _has_sound(track)]
    sounds = [_sound(track).model_copy(update={"default": track is first}) for track in heard]
    videos = tuple(_video(grid, rung) for rung in listed)
    subtitles = tuple(_subtitles(text) for text in texts)
    return master_playlist(VerifiedRenditions(video=videos, audio=tuple(sounds), subtitles=subtitles), slug_prefix)


def _segment_length(grid: Grid) -> Fraction:
    return Fraction(grid.segment_frames) / grid.frame_rate.fraction


def _is_open(rung: GrowingRung) -> bool:
    return rung.segments > 0 and rung.init is not None


def _has_sound(track: GrowingTrack) -> bool:
    return track.init is not None and track.timeline is not None and track.timeline.segments > 0


def _video(grid: Grid, rung: GrowingRung) -> VideoRendition:
    weight = Weight.capped(rung.planned.video_kbps)
    return video_rendition(rung.planned, grid, rung.prefix, read_init(rung.init or b""), weight)


def _sound(track: GrowingTrack) -> AudioRendition:
    durations = track.timeline.segment_durations if track.timeline else ()
    weight = Weight.capped(track.planned.kbps)
    return audio_rendition(track.planned, track.prefix, read_init(track.init or b""), durations, weight)


def _subtitles(text: StoredText) -> SubtitleRendition:
    planned = text.planned
    return SubtitleRendition(
        track=planned.track,
        prefix=text.prefix,
        language=planned.language,
        name=planned.name,
        default=planned.default,
        forced=planned.forced,
        cues=0,
        size_bytes=0,
    )
