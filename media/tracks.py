"""Decide which sounds and which subtitles a viewer can choose from, and what they are called. Pure."""

from collections.abc import Collection

from contracts.media import AudioFacts, SubtitleFacts
from contracts.plan import Grid, PlannedAudio, PlannedSubtitle
from media.filters import SOUND_MARGIN_S

MOST_SOUNDS = 50  # as of subtitles
# The length of each of their segments travels through Temporal, about a dozen bytes, and it takes two million at once.
MOST_SOUND_SEGMENTS = 120_000
MOST_SUBTITLES = 50  # a film in every language of its market; thousands are an attack on the player's menu

_LANGUAGES = {
    "eng": "English", "en": "English", "deu": "Deutsch", "ger": "Deutsch", "de": "Deutsch", "fra": "Français",
    "fre": "Français", "fr": "Français", "spa": "Español", "es": "Español", "ita": "Italiano", "it": "Italiano",
    "por": "Português", "pt": "Português", "nld": "Nederlands", "nl": "Nederlands", "pol": "Polski", "pl": "Polski",
    "jpn": "日本語", "ja": "日本語", "zho": "中文", "chi": "中文", "zh": "中文", "kor": "한국어", "ko": "한국어",
}  # fmt: skip


def audio_notes(tracks: tuple[AudioFacts, ...], audible: tuple[AudioFacts, ...], grid: Grid) -> list[str]:
    """Say what of the sound is not in the video."""
    notes = [
        f"Audio track {number} ({track.codec}) is left out: no ffmpeg here can decode it."
        for number, track in enumerate(tracks, start=1)
        if track not in audible
    ]
    for track in audible:
        over_s = track.end_s - grid.duration_s
        if over_s > SOUND_MARGIN_S:
            notes.append(f"The sound of stream {track.stream} goes on for {over_s:.1f} s after the picture; it is cut.")
        if track.channels > 2:
            notes.append(f"The {track.channels} channels of stream {track.stream} are mixed down to stereo.")
    return notes


def keep_sounds(tracks: tuple[AudioFacts, ...], grid: Grid) -> tuple[tuple[AudioFacts, ...], list[str]]:
    """Leave out what would be too many sounds to tell of, the default never: a day of film has eight, a movie fifty."""
    most = max(1, min(MOST_SOUNDS, MOST_SOUND_SEGMENTS // grid.segments))
    if len(tracks) <= most:
        return tracks, []
    default = next((track for track in tracks if track.default), tracks[0])
    kept = tracks[:most] if default in tracks[:most] else (*tracks[: most - 1], default)
    return kept, [f"{len(tracks) - most} more sound tracks are left out: {most} are enough."]


def plan_audio(tracks: tuple[AudioFacts, ...], kbps: int) -> tuple[PlannedAudio, ...]:
    """Plan one rendition per track; exactly one is the default, and no two have the same name."""
    default = next((index for index, track in enumerate(tracks) if track.default), 0)
    planned: list[PlannedAudio] = []
    for index, track in enumerate(tracks):
        plain = "Main" if index == 0 else f"Track {index + 1}"
        name = track.title or _LANGUAGES.get(track.language.lower(), plain)
        planned.append(
            PlannedAudio(
                track=index,
                stream=track.stream,
                kbps=kbps,
                language=track.language,
                name=_unique(name, index + 1, {other.name for other in planned}),
                default=index == default,
                start_s=track.start_s,
                source_channels=track.channels,
                source_layout=track.layout,
                gaps=track.gaps,
            )
        )
    return tuple(planned)


def plan_subtitles(tracks: tuple[SubtitleFacts, ...]) -> tuple[tuple[PlannedSubtitle, ...], list[str]]:
    """Plan one rendition per text track; at most one is shown unasked, and no two have the same name."""
    default = next((index for index, track in enumerate(tracks) if track.default), None)
    planned: list[PlannedSubtitle] = []
    for index, track in enumerate(tracks[:MOST_SUBTITLES]):
        name = track.title or _LANGUAGES.get(track.language.lower(), f"Subtitles {index + 1}")
        if track.forced and not track.title:
            name += " (forced)"
        planned.append(
            PlannedSubtitle(
                track=index,
                stream=track.stream,
                codec=track.codec,
                language=track.language,
                name=_unique(name, index + 1, {other.name for other in planned}),
                default=index == default,
                forced=track.forced,
            )
        )
    over = len(tracks) - len(planned)
    return tuple(planned), [f"{over} more subtitle tracks are left out: {MOST_SUBTITLES} are enough."] if over else []


def _unique(name: str, number: int, taken: Collection[str]) -> str:
    """Tell a track from others of the same name by its number: players list them by name."""
    wanted = name
    while name in taken:
        name = f"{wanted} ({number})"
        number += 1
    return name
