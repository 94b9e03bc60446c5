"""Turn ffprobe's words about streams into facts, or into a clear refusal. Pure."""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from contracts.errors import SourceUnreadable, SourceUnsupported
from contracts.media import AudioFacts, SubtitleFacts, VideoFacts
from media import rates
from media.packets import LONG_GAP_S, PacketScan, SoundScan
from media.subtitle_text import TEXT_CODECS

Stream = dict[str, Any]  # one entry of ffprobe's `streams`

# A seek in these lands on a keyframe at or before the wish. Elsewhere it may land anywhere (MPEG-TS loses pictures).
_SEEKS_WELL = frozenset({"mov", "mp4", "matroska", "webm"})
# In these it looks for the time when a keyframe is decoded, which may be long before it is shown.
_SEEKS_BY_DECODING = frozenset({"mov", "mp4"})

# A slideshow shows a picture for seconds, a silent screen stands still for minutes; a broken clock jumps by hours.
_LONGEST_STILL_S = 600.0
_LONG_VIDEO_S = 6 * 3600.0
_SLOWEST_SHOW_S = 60.0
_MOST_NAMED = 5  # tracks in one sentence


def is_audio(stream: Stream) -> bool:
    known = stream.get("codec_name") not in (None, "unknown", "none")
    return stream.get("codec_type") == "audio" and known and int(stream.get("channels") or 0) > 0


def main_video(streams: list[Stream], has_audio: bool) -> Stream:
    videos = [
        stream
        for stream in streams
        # Cover art is a video stream of one picture that the file itself marks as an attachment.
        if stream.get("codec_type") == "video" and not stream.get("disposition", {}).get("attached_pic")
    ]
    if not videos and has_audio:
        raise SourceUnsupported("The file holds sound only; a video needs pictures.")
    if not videos:
        raise SourceUnsupported("The file holds no video.")
    usable = [stream for stream in videos if int(stream.get("width") or 0) > 0 and stream.get("codec_name")]
    usable = [stream for stream in usable if stream["codec_name"] not in ("unknown", "none")]
    if not usable:
        raise SourceUnsupported("The file's video is of a kind that is not known.")
    return next((stream for stream in usable if stream.get("disposition", {}).get("default")), usable[0])


def of_one_programme(
    streams: list[Stream], video: Stream, programmes: list[dict[str, Any]]
) -> tuple[list[Stream], list[str]]:
    """Leave out what belongs to other programmes of a broadcast than this video: their sound is not its own."""
    members = [{int(stream["index"]) for stream in one.get("streams", [])} for one in programmes]
    mine: set[int] = set().union(*(some for some in members if int(video["index"]) in some))
    others = set().union(*members) - mine
    if not mine or not others:
        return streams, []
    told = f"The file holds {len(members)} programmes of a broadcast; the one with the first video is taken."
    return [stream for stream in streams if int(stream["index"]) not in others], [told]


def is_sought(streams: list[Stream], video: Stream, format_name: str) -> bool:
    """Say whether a seek lands on a keyframe of this video: in Matroska it does on one of the first video only."""
    shown = (one for one in streams if one.get("codec_type") == "video")
    first = next((one for one in shown if not one.get("disposition", {}).get("attached_pic")), video)
    return "matroska" not in format_name or first is video


def video_facts(stream: Stream, pictures: PacketScan, format_name: str) -> VideoFacts:
    width, height = int(stream["width"]), int(stream["height"])
    rotation, mirrored = _orientation(stream)
    crop = _crop(stream, width, height)
    aspect = _aspect(stream.get("sample_aspect_ratio"))
    # Pixels are widened or narrowed, lines are never dropped: 720x576 at 16:11 is 1048x576.
    shown = (max(1, round((width - crop[0] - crop[2]) * aspect)), height - crop[1] - crop[3])
    constant = pictures.constant_rate()
    average = rates.parse(stream.get("avg_frame_rate"))
    if not constant and pictures.timed and pictures.end_s > pictures.first_s:
        average = Fraction(pictures.packets) / Fraction(pictures.end_s - pictures.first_s).limit_denominator(100_000)
    nominal = (
        constant
        or pictures.steady_rate()
        or _untimed_rate(stream, pictures)
        or rates.parse(stream.get("r_frame_rate"))
        or average
        or Fraction(25)
    )
    start_s = _number(stream.get("start_time"))
    # A raw stream has no times: its pictures follow each other at the nominal rate.
    end_s = pictures.end_s - start_s if pictures.timed else pictures.packets / float(nominal)
    if pictures.timed and not constant:
        # However short the last picture is said to be: it has its tick as well.
        end_s = max(end_s, pictures.last_s - start_s + 1 / float(nominal))
    first_keyframe_s = pictures.end_s if pictures.first_keyframe_s is None else pictures.first_keyframe_s
    return VideoFacts(
        stream=int(stream["index"]),
        codec=stream["codec_name"],
        width=width,
        height=height,
        display_width=shown[1] if rotation in (90, 270) else shown[0],
        display_height=shown[0] if rotation in (90, 270) else shown[1],
        rotation=rotation,
        mirrored=mirrored,
        crop=crop,
        sample_aspect=f"{aspect.numerator}:{aspect.denominator}",
        pixel_format=stream.get("pix_fmt", ""),
        bit_depth=_bit_depth(stream),
        field_order=stream.get("field_order", "progressive"),
        color_primaries=stream.get("color_primaries", ""),
        color_transfer=stream.get("color_transfer", ""),
        color_space=stream.get("color_space", ""),
        color_range=stream.get("color_range", ""),
        peak_nits=_peak_nits(stream),
        frame_rate=rates.message(nominal),
        average_rate=rates.message((average or nominal).limit_denominator(100_000)),
        variable_rate=pictures.timed and constant is None,
        crowded=pictures.lost_at(nominal) if pictures.timed and not constant else 0,
        start_s=stream["start_time"] if start_s else "0",
        packets=pictures.packets,
        end_s=round(max(end_s, 1 / float(nominal)), 6),
        untimed=_is_untimed(stream, pictures),
        keyframe_gap_s=round(pictures.keyframe_gap_s, 6),
        keyframe_lag_s=round(pictures.keyframe_lag_s, 6) if _SEEKS_BY_DECODING & set(format_name.split(",")) else 0.0,
        first_keyframe_s=round(max(0.0, first_keyframe_s - start_s), 6) if pictures.timed else 0.0,
        seekable=bool(_SEEKS_WELL & set(format_name.split(","))),
    )


def _untimed_rate(stream: Stream, pictures: PacketScan) -> Fraction | None:
    """Tell the rate of pictures without times: fields counted as pictures, or an AVI's ticks, are faster than they."""
    told = [rate for rate in (pictures.own_rate, rates.parse(stream.get("r_frame_rate"))) if rate]
    return min(told) if pictures.own_rate else None


def _is_untimed(stream: Stream, pictures: PacketScan) -> bool:
    """Tell pictures that are reordered, without a time stamp, in AVI or a raw stream.

    Only a decoder knows when they are shown; no copy of the packets can say it (ffmpeg's own filter for that,
    dts2pts, goes wrong at every keyframe but the first).
    """
    reordered = stream["codec_name"] in ("h264", "hevc") and int(_number(stream.get("has_b_frames"))) > 0
    return reordered and pictures.untimed > 0


def check_times(facts: VideoFacts, pictures: PacketScan, sound: Iterable[SoundScan]) -> None:
    """Refuse pictures whose time stamps jump: one wrong one would become days of a standing picture."""
    if not pictures.timed:
        return
    # One picture for a whole concert is a video; that much sound in the file is the proof.
    heard_s = max((track.length_s for track in sound), default=0.0)
    still_s = max(pictures.longest_gap_s, pictures.first_s - _number(facts.start_s))
    if still_s > max(_LONGEST_STILL_S, heard_s * 1.01 + 1):
        raise SourceUnreadable(
            f"The file is damaged: its timestamps jump by {_long(still_s)} between two pictures.",
            detail=f"{facts.packets} pictures in {facts.end_s:.0f} seconds",
        )
    if facts.end_s > max(_LONG_VIDEO_S, heard_s * 1.01 + 1) and facts.end_s / facts.packets > _SLOWEST_SHOW_S:
        raise SourceUnreadable(
            f"The file is damaged: its timestamps jump so that {facts.packets} pictures last {_long(facts.end_s)}.",
        )


def _long(seconds: float) -> str:
    for unit, name in ((86400, "days"), (3600, "hours")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 60:.0f} minutes"


def tracks(
    streams: list[Stream], sound: Mapping[int, SoundScan], video: VideoFacts
) -> tuple[tuple[AudioFacts, ...], list[str]]:
    """Describe the audio tracks that hold anything, and say which ones do not."""
    kept: list[AudioFacts] = []
    told: list[str] = []
    for number, stream in enumerate((one for one in streams if one.get("codec_type") == "audio"), start=1):
        found = sound.get(int(stream["index"]))
        if found is None:
            told.append(f"Audio track {number} is of a kind that is not known and is left out.")
        elif found.packets:
            start_s = _number(video.start_s)
            first_s = found.first_s if found.first_s is not None else start_s
            late = [(start_s, first_s)] if first_s - start_s > LONG_GAP_S else []
            counted = {
                "packets": found.packets,
                "end_s": round(max(0.0, found.end_s - start_s), 6),
                "gaps": tuple((round(a - start_s, 3), round(b - start_s, 3)) for a, b in [*late, *found.gaps]),
            }
            kept.append(audio_facts(stream).model_copy(update=counted))
        else:
            told.append(f"Audio track {number} ({stream['codec_name']}) is empty and is left out.")
    return tuple(kept), told


def audio_facts(stream: Stream) -> AudioFacts:
    language, title = _language_and_title(stream)
    return AudioFacts(
        stream=int(stream["index"]),
        codec=stream["codec_name"],
        channels=int(stream["channels"]),
        sample_rate=int(stream.get("sample_rate") or 0),
        layout=stream.get("channel_layout", ""),
        language=language,
        title=title,
        default=bool(stream.get("disposition", {}).get("default")),
        start_s=stream["start_time"] if _number(stream.get("start_time")) else "0",
        duration_s=_declared_s(stream) or 0.0,
    )


def subtitles(streams: list[Stream]) -> tuple[tuple[SubtitleFacts, ...], list[str]]:
    """Describe the tracks of text, and say which ones are none."""
    kept: list[SubtitleFacts] = []
    left_out: list[str] = []
    for number, stream in enumerate((one for one in streams if one.get("codec_type") == "subtitle"), start=1):
        codec = str(stream.get("codec_name") or "unknown")
        language, title = _language_and_title(stream)
        if codec not in TEXT_CODECS:
            left_out.append(f"{number} ({codec}, {language})")
            continue
        disposition = stream.get("disposition", {})
        kept.append(
            SubtitleFacts(
                stream=int(stream["index"]),
                codec=codec,
                language=language,
                title=title,
                default=bool(disposition.get("default")),
                forced=bool(disposition.get("forced")),
            )
        )
    if not left_out:
        return tuple(kept), []
    some = ", ".join(left_out[:_MOST_NAMED]) + (" and more" if len(left_out) > _MOST_NAMED else "")
    return tuple(kept), [f"Subtitles that are pictures or of an unknown kind are left out: track {some}."]


def _language_and_title(stream: Stream) -> tuple[str, str]:
    tags = {key.lower(): value for key, value in stream.get("tags", {}).items()}
    language = str(tags.get("language") or "und")
    known = re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}", language)
    return language if known else "und", _plain(str(tags.get("title") or ""))[:100]


def seconds_lost(
    format_s: object, stream: Stream, facts: VideoFacts, has_audio: bool, least_share: float = 0.5
) -> float:
    """Compare what the file promises with what it holds; return the seconds lost, refuse one that lost too much."""
    declared_s = _declared_s(stream)
    if declared_s is None and not has_audio:
        # With sound the file's length may be the sound's, which may well be longer.
        declared_s = _number(format_s) or None
    if declared_s is None:
        return 0.0
    lost_s = declared_s - facts.end_s
    few = 2 / float(facts.frame_rate.fraction)
    if lost_s > few and facts.end_s < declared_s * least_share:
        raise SourceUnreadable(
            f"The file is cut short: only {facts.end_s:.1f} of {declared_s:.1f} seconds are there.",
            detail=f"{facts.packets} pictures found",
        )
    return lost_s if lost_s > few else 0.0


def _declared_s(stream: Stream) -> float | None:
    if duration_s := _number(stream.get("duration")):
        return duration_s
    tags = {key.lower(): value for key, value in stream.get("tags", {}).items()}
    # Matroska keeps each track's length in a tag: 00:00:03.000000000
    match = re.fullmatch(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)", str(tags.get("duration", "")))
    if not match:
        return None
    length_s = int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3])
    return max(0.0, length_s - _number(stream.get("start_time"))) or None


def warnings(facts: VideoFacts, lost_s: float) -> list[str]:
    if not lost_s:
        return []
    whole_s = facts.end_s + lost_s
    return [f"The file is cut short: {facts.end_s:.1f} of {whole_s:.1f} seconds are there, {lost_s:.2f} s are lost."]


def _orientation(stream: Stream) -> tuple[int, bool]:
    """Read the display matrix: counter-clockwise quarter turns, in degrees, and whether it mirrors as well."""
    for side in stream.get("side_data_list", []):
        if "rotation" in side:
            # Rows of three: a b u, c d v, x y w. Only a mirror has a negative determinant.
            rows = [line.split(":")[-1].split() for line in str(side.get("displaymatrix", "")).strip().splitlines()]
            numbers = [_number(word) for row in rows for word in row]
            mirrored = len(numbers) == 9 and numbers[0] * numbers[4] - numbers[1] * numbers[3] < 0
            # No camera holds its picture askew: what is not a quarter turn is the nearest one.
            return round(_number(side["rotation"]) / 90) * 90 % 360, mirrored
    return 0, False


def _crop(stream: Stream, width: int, height: int) -> tuple[int, int, int, int]:
    """Read what the container hides (a clean aperture, Matroska's PixelCrop); nonsense hides nothing."""
    for side in stream.get("side_data_list", []):
        if side.get("side_data_type") == "Frame Cropping":
            left, top, right, bottom = (
                max(0, int(_number(side.get(f"crop_{edge}")))) for edge in ("left", "top", "right", "bottom")
            )
            if width - left - right >= 2 and height - top - bottom >= 2:
                return left, top, right, bottom
    return 0, 0, 0, 0


def _peak_nits(stream: Stream) -> float:
    """Read how bright the brightest pixel is (MaxCLL), else what the mastering screen could show."""
    sides = stream.get("side_data_list", [])
    content = max((_number(side.get("max_content")) for side in sides), default=0.0)
    screen = max((float(_ratio(side.get("max_luminance"))) for side in sides), default=0.0)
    return content or round(screen, 3)


def _ratio(text: str | None) -> Fraction:
    try:
        return Fraction(text or "0")
    except (ValueError, ZeroDivisionError):
        return Fraction(0)


def _aspect(text: str | None) -> Fraction:
    try:
        aspect = Fraction((text or "1:1").replace(":", "/"))
    except (ValueError, ZeroDivisionError):
        return Fraction(1)
    return aspect if Fraction(1, 10) <= aspect <= 10 else Fraction(1)  # N/A is 0:1


def _bit_depth(stream: Stream) -> int:
    if bits := int(_number(stream.get("bits_per_raw_sample"))):
        return bits
    match = re.search(r"(?:p|gray|gbrp)(9|10|12|14|16)(?:le|be)?$", stream.get("pix_fmt", ""))
    return int(match[1]) if match else 8


def _number(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        return 0.0
    return number if abs(number) < 1e9 else 0.0  # also refuses NaN and infinity


def _plain(text: str) -> str:
    return "".join(character for character in text if character.isprintable()).strip()
