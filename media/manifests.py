"""What players read: HLS playlists and the DASH manifest, from the facts of verified renditions. Pure text.

Shapes are those that were played in real browsers. All addresses are relative, so a stream can be moved or signed.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import count as counting
from itertools import groupby
from xml.sax.saxutils import quoteattr

from contracts.end_steps import VerifiedRenditions
from contracts.layout import INIT, PLAYLIST, SUBTITLES, segment_name
from contracts.renditions import AudioRendition, SubtitleRendition, VideoRendition
from contracts.states import Codec

_GROUP = "aud"
_TEXT_GROUP = "subs"
_FIRST_TEXT_SET = 1000  # ids of adaptation sets; sound has those from 1 on
_AAC_FRAME = 1024  # samples
# ISO 639-2 as most containers write it, to BCP 47 as players want it; others are passed on as they are.
_SHORT = {
    "eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "spa": "es", "ita": "it", "por": "pt", "nld": "nl",
    "dut": "nl", "pol": "pl", "jpn": "ja", "zho": "zh", "chi": "zh", "kor": "ko", "rus": "ru", "swe": "sv", "dan": "da",
    "fin": "fi", "nor": "no", "ces": "cs", "cze": "cs", "tur": "tr", "ara": "ar", "hin": "hi", "ukr": "uk", "ell": "el",
}  # fmt: skip


def media_playlist_video(rendition: VideoRendition) -> str:
    """Write one video rendition's playlist; durations are exact, from the grid."""
    return media_playlist(*_pictures(rendition))


def continued_video(rendition: VideoRendition, earlier: str, stored: int) -> str:
    """Write what stays under the address of an earlier generation, for whoever watched it grow.

    The `stored` segments that it had listed stay as they were; the whole rendition goes on from there.
    """
    return media_playlist(*_pictures(rendition), stored, folder_beside(earlier, rendition.prefix))


def continued_audio(rendition: AudioRendition, segment_s: Fraction, earlier: str, stored: int) -> str:
    """Write the same for sound, which is cut at the same samples by whoever makes it."""
    return media_playlist(*_sounds(rendition, segment_s), stored, folder_beside(earlier, rendition.prefix))


def folder_beside(here: str, there: str) -> str:
    """Name one rendition's folder as seen from another's."""
    return "" if here == there else f"../{there.rstrip('/').rpartition('/')[2]}/"


def media_playlist_audio(rendition: AudioRendition, segment_s: Fraction) -> str:
    """Write one sound rendition's playlist; segments end at whole AAC frames, so their lengths vary a little.

    `segment_s` is the picture's: the target duration follows from it, as it did while the playlist grew.
    """
    return media_playlist(*_sounds(rendition, segment_s))


def _pictures(rendition: VideoRendition) -> tuple[Iterable[Fraction], Fraction]:
    """Give the lengths of its segments, and how long the longest can be."""
    rate = rendition.frame_rate.fraction
    return (frames / rate for frames in _segment_frames(rendition)), Fraction(rendition.segment_frames) / rate


def _sounds(rendition: AudioRendition, segment_s: Fraction) -> tuple[Iterable[Fraction], Fraction]:
    runs, timescale = rendition.segment_durations, rendition.timescale
    lengths = (Fraction(duration, timescale) for duration, count in runs for _ in range(count))
    return lengths, longest_sound(segment_s, timescale)


def longest_sound(segment_s: Fraction, timescale: int) -> Fraction:
    """Say how long a sound segment can be: it is cut at the first whole AAC frame after the picture's boundary."""
    return segment_s + Fraction(_AAC_FRAME, timescale)


class MediaPlaylist:
    """A playlist of segments that is only ever added to; an `event` begins at its start however far it has grown."""

    def __init__(self, longest: Fraction, *, event: bool = False) -> None:
        self._lines = [
            "#EXTM3U",
            "#EXT-X-VERSION:7",
            # Rounded to the nearest second, as the standard has it: 6.006 s is 6.
            f"#EXT-X-TARGETDURATION:{max(1, math.floor(longest + Fraction(1, 2)))}",
            "#EXT-X-MEDIA-SEQUENCE:0",
            f"#EXT-X-PLAYLIST-TYPE:{'EVENT' if event else 'VOD'}",
            # A player would otherwise join three segments before the end of what is there.
            *(["#EXT-X-START:TIME-OFFSET=0,PRECISE=YES"] if event else []),
            "#EXT-X-INDEPENDENT-SEGMENTS",
        ]
        self._folder: str | None = None
        self.segments = 0

    def add(self, length: Fraction, folder: str = "") -> None:
        """List the next segment. A rendition that started anew goes on in another folder, with an init of its own.

        No discontinuity is said: its times follow on, and sound that has none would no longer fit.
        """
        if folder != self._folder:
            self._folder = folder
            self._lines.append(f'#EXT-X-MAP:URI="{folder}{INIT}"')
        self._lines += [f"#EXTINF:{float(length):.6f},", folder + segment_name(self.segments)]
        self.segments += 1

    def text(self, *, whole: bool) -> str:
        return "\n".join([*self._lines, *(["#EXT-X-ENDLIST"] if whole else []), ""])


def media_playlist(lengths: Iterable[Fraction], longest: Fraction, stored: int = 0, elsewhere: str = "") -> str:
    """Write a whole playlist of the segments beside it, or from number `stored` on of those in another folder."""
    playlist = MediaPlaylist(longest)
    for index, length in enumerate(lengths):
        playlist.add(length, "" if index < stored else elsewhere)
    return playlist.text(whole=True)


def media_playlist_subtitles(duration_s: float) -> str:
    """Write a subtitle rendition's playlist: one file for the whole video, never growing."""
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        f"#EXT-X-TARGETDURATION:{max(1, math.floor(duration_s + 0.5))}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        "#EXT-X-PLAYLIST-TYPE:VOD",
        f"#EXTINF:{duration_s:.6f},",
        SUBTITLES,
        "#EXT-X-ENDLIST",
    ]
    return "\n".join([*lines, ""])


def master_playlist(renditions: VerifiedRenditions, slug_prefix: str) -> str:
    """Write the playlist that names every rendition; `slug_prefix` is the folder it will lie in."""
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    for audio in renditions.audio:
        lines.append(
            f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="{_GROUP}",NAME="{_quoted(audio.name)}",'
            f'LANGUAGE="{_language(audio.language)}",DEFAULT={"YES" if audio.default else "NO"},AUTOSELECT=YES,'
            f'CHANNELS="{audio.channels}",URI="{_relative(audio.prefix, slug_prefix)}{PLAYLIST}"'
        )
    for text in renditions.subtitles:
        lines.append(
            f'#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="{_TEXT_GROUP}",NAME="{_quoted(text.name)}",'
            f'LANGUAGE="{_language(text.language)}",DEFAULT={"YES" if text.default else "NO"},AUTOSELECT=YES,'
            f'FORCED={"YES" if text.forced else "NO"},URI="{_relative(text.prefix, slug_prefix)}{PLAYLIST}"'
        )
    # A player fetches one rung and one track at a time: the busiest of each is what the line must carry.
    audio_peak = max((audio.peak_bandwidth for audio in renditions.audio), default=0)
    audio_average = max((audio.average_bandwidth for audio in renditions.audio), default=0)
    audio_codecs = sorted({audio.codecs for audio in renditions.audio})
    # Codec by codec, the one that everybody has first: players begin with the first line that they understand.
    for video in in_order(renditions):
        groups = f',AUDIO="{_GROUP}"' if renditions.audio else ""
        groups += f',SUBTITLES="{_TEXT_GROUP}"' if renditions.subtitles else ""
        lines += [
            f"#EXT-X-STREAM-INF:BANDWIDTH={video.peak_bandwidth + audio_peak},"
            f"AVERAGE-BANDWIDTH={video.average_bandwidth + audio_average},"
            f"RESOLUTION={video.width}x{video.height},FRAME-RATE={float(video.frame_rate.fraction):.3f},"
            f'CODECS="{",".join([video.codecs, *audio_codecs])}"{groups}',
            f"{_relative(video.prefix, slug_prefix)}{PLAYLIST}",
        ]
    return "\n".join([*lines, ""])


def dash_manifest(renditions: VerifiedRenditions, slug_prefix: str) -> str:
    """Write the DASH manifest over the same segments."""
    videos = in_order(renditions)
    numbers = counting()
    length = max(video.frames / video.frame_rate.fraction for video in videos)
    # The longer track counts: sound ends at a whole AAC frame, a few milliseconds after the picture.
    seconds = max([float(length), *(audio.duration_s for audio in renditions.audio)])
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" profiles="urn:mpeg:dash:profile:isoff-live:2011"'
        f' minBufferTime="PT4S" mediaPresentationDuration="PT{seconds:.6f}S">',
        '<Period id="0" start="PT0S">',
    ]
    # A set per codec: within a set players switch, and none switches codecs without a stumble.
    for _, group in groupby(videos, key=lambda video: video.codec):
        lines += [
            f'<AdaptationSet id="{next(numbers)}" contentType="video" mimeType="video/mp4" segmentAlignment="true"'
            ' startWithSAP="1">',
            *(line for video in group for line in _video_representation(video, slug_prefix)),
            "</AdaptationSet>",
        ]
    for audio in renditions.audio:
        lines += [
            f'<AdaptationSet id="{next(numbers)}" contentType="audio" mimeType="audio/mp4"'
            f" lang={quoteattr(_language(audio.language))}"
            ' segmentAlignment="true" startWithSAP="1">',
            f'<Role schemeIdUri="urn:mpeg:dash:role:2011" value="{"main" if audio.default else "alternate"}"/>',
            f"<Label>{_text(audio.name)}</Label>",
            f'<Representation id="audio_{audio.track}" codecs={quoteattr(audio.codecs)}'
            f' audioSamplingRate="{audio.timescale}" bandwidth="{audio.peak_bandwidth}">',
            '<AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011"'
            f' value="{audio.channels}"/>',
            *_timeline(_relative(audio.prefix, slug_prefix), audio.timescale, audio.segment_durations),
            "</Representation>",
            "</AdaptationSet>",
        ]
    for text in renditions.subtitles:
        lines += _text_set(text, slug_prefix, seconds)
    return "\n".join([*lines, "</Period>", "</MPD>", ""])


def _text_set(text: SubtitleRendition, slug_prefix: str, seconds: float) -> list[str]:
    roles = ["forced-subtitle" if text.forced else "subtitle", *(["main"] if text.default else [])]
    return [
        f'<AdaptationSet id="{_FIRST_TEXT_SET + text.track}" contentType="text" mimeType="text/vtt"'
        f" lang={quoteattr(_language(text.language))}>",
        *(f'<Role schemeIdUri="urn:mpeg:dash:role:2011" value="{role}"/>' for role in roles),
        f"<Label>{_text(text.name)}</Label>",
        f'<Representation id="subtitles_{text.track}" bandwidth="{math.ceil(8 * text.size_bytes / seconds)}">',
        f"<BaseURL>{_text(_relative(text.prefix, slug_prefix) + SUBTITLES)}</BaseURL>",
        "</Representation>",
        "</AdaptationSet>",
    ]


def in_order(renditions: VerifiedRenditions) -> list[VideoRendition]:
    """Sort by codec, H.264 first; within a codec the largest comes first."""
    codecs = list(Codec)
    return sorted(
        renditions.video, key=lambda video: (codecs.index(video.codec), -min(video.width, video.height), video.quality)
    )


def _video_representation(video: VideoRendition, slug_prefix: str) -> list[str]:
    return [
        f"<Representation id={quoteattr(video.quality)} codecs={quoteattr(video.codecs)}"
        f' width="{video.width}" height="{video.height}" frameRate="{_dash_rate(video)}" sar="1:1"'
        f' bandwidth="{video.peak_bandwidth}">',
        *_timeline(
            _relative(video.prefix, slug_prefix),
            video.timescale,
            ((frames * video.frame_duration, 1) for frames in _segment_frames(video)),
        ),
        "</Representation>",
    ]


def _timeline(folder: str, timescale: int, runs: Iterable[tuple[int, int]]) -> list[str]:
    lines = [
        f'<SegmentTemplate timescale="{timescale}" startNumber="0" initialization={quoteattr(folder + INIT)}'
        f" media={quoteattr(folder + 'seg_$Number%05d$.m4s')}>",
        "<SegmentTimeline>",
    ]
    at = 0
    for duration, count in _joined(runs):
        repeated = f' r="{count - 1}"' if count > 1 else ""
        lines.append(f'<S t="{at}" d="{duration}"{repeated}/>')
        at += duration * count
    return [*lines, "</SegmentTimeline>", "</SegmentTemplate>"]


def _joined(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for duration, count in runs:
        if joined and joined[-1][0] == duration:
            joined[-1] = (duration, joined[-1][1] + count)
        else:
            joined.append((duration, count))
    return joined


def _segment_frames(rendition: VideoRendition) -> list[int]:
    whole, rest = divmod(rendition.frames, rendition.segment_frames)
    return [rendition.segment_frames] * whole + ([rest] if rest else [])


def _dash_rate(video: VideoRendition) -> str:
    rate = video.frame_rate
    return str(rate.num) if rate.den == 1 else f"{rate.num}/{rate.den}"


def _relative(prefix: str, slug_prefix: str) -> str:
    if not prefix.startswith(slug_prefix) or prefix == slug_prefix:
        raise ValueError(f"{prefix!r} does not lie under {slug_prefix!r}")
    return prefix.removeprefix(slug_prefix)


def _language(tag: str) -> str:
    return _SHORT.get(tag.lower(), tag) or "und"


def _quoted(text: str) -> str:
    """Make text fit between the quotes of an attribute list, which knows no escapes."""
    return "".join(character for character in text if character.isprintable()).replace('"', "'") or "Sound"


def _text(text: str) -> str:
    return _quoted(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
