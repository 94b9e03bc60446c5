"""A video's report in lines for people: what was found, what was decided, what they should know."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from cli.terminal import bytes_text, printable, seconds_text

_INTERLACED = frozenset({"tt", "bb", "tb", "bt"})


def report_lines(report: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Give (name, text) pairs; nothing when the source was not read yet."""
    if not report:
        return
    yield "source", _joined(*_container(report))
    yield "picture", _joined(*_picture(report))
    for track in report.get("audio", ()):
        yield "sound", _joined(*_sound(track))
    for track in report.get("subtitles", ()):
        yield "subtitles", _joined(track.get("codec"), *_named(track))
    if plan := report.get("decided"):
        yield "made into", f"{_rate(plan['frame_rate'])}, segments of {plan['segment_seconds']:g} s"
        for one in plan.get("renditions", ()):
            made = f"{one['quality']:<10} {one['width']}x{one['height']}, {one['bitrate']} kbit/s"
            by = "on a GPU" if one.get("gpu") else one.get("ffmpeg") and f"by ffmpeg {one['ffmpeg']}"
            yield "", _joined(made, one.get("encoder"), by)
        for note in plan.get("notes", ()):
            yield "note", printable(note)
    for warning in report.get("warnings", ()):
        yield "warning", printable(warning)


def _container(report: dict[str, Any]) -> Iterator[object]:
    yield report["container"]
    if report.get("remuxed_to"):
        yield f"copied to {report['remuxed_to']} first"
    yield bytes_text(report.get("size_bytes", 0))
    yield seconds_text(report.get("duration"))


def _picture(report: dict[str, Any]) -> Iterator[object]:
    video = report["video"]
    yield video["codec"]
    shown = f"{video['display_width']}x{video['display_height']}"
    stored = f"{video['width']}x{video['height']}"
    yield shown if shown == stored else f"{shown} (stored {stored})"
    if video.get("rotation"):
        yield f"turned by {video['rotation']}°"
    rate = _rate(video["frame_rate"])
    yield (
        f"variable rate, {rate} at most, {_rate(video['average_rate'])} on average" if video["variable_rate"] else rate
    )
    if video.get("field_order") in _INTERLACED:
        yield "interlaced"
    if video.get("bit_depth", 8) != 8:
        yield f"{video['bit_depth']} bit"
    tone_map = (report.get("decided") or {}).get("tone_map")
    if report.get("hdr"):
        yield f"{report['hdr']}{f', to SDR by {tone_map}' if tone_map else ''}"
    elif video.get("color_primaries"):
        yield video["color_primaries"]
    if video.get("color_range") == "pc":
        yield "full range"


def _sound(track: dict[str, Any]) -> Iterator[object]:
    yield track["codec"]
    yield track.get("layout") or f"{track['channels']} channels"
    if track.get("sample_rate"):
        yield f"{track['sample_rate'] / 1000:g} kHz"
    yield from _named(track)


def _named(track: dict[str, Any]) -> Iterator[object]:
    yield track.get("language") if track.get("language") != "und" else None
    yield f"“{track['title']}”" if track.get("title") else None
    yield "default" if track.get("default") else None
    yield "forced" if track.get("forced") else None


def _rate(text: str) -> str:
    try:
        return f"{float(Fraction(text)):.3f}".rstrip("0").rstrip(".") + " fps"
    except (ValueError, ZeroDivisionError):
        return "? fps"


def _joined(*words: object) -> str:
    return ", ".join(printable(str(word)) for word in words if word)
