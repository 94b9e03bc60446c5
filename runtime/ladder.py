"""The ladder as one line of text: `1080p=5000/128,720p=2500/128`, kbit/s, video before audio. And other lists."""

import re
from typing import Any

from contracts.plan import RUNG_PATTERN, Rung
from contracts.states import Codec

_LINE = re.compile(r"(?P<name>[\w-]+)\s*=\s*(?P<video>\d+)\s*/\s*(?P<audio>\d+)")


def parse_ladder(value: Any) -> Any:
    """Read a ladder; anything but text is left to pydantic."""
    if not isinstance(value, str):
        return value
    rungs = [_rung(part.strip()) for part in value.split(",") if part.strip()]
    if not rungs:
        raise ValueError("a ladder needs at least one rung, like 720p=2500/128")
    names = [rung.name for rung in rungs]
    if len(set(names)) < len(names):
        raise ValueError("a rung is named twice")
    # Largest first, whatever the order given: each rung is scaled from the one before.
    return tuple(sorted(rungs, key=lambda rung: -rung.short_side))


def show_ladder(rungs: tuple[Rung, ...]) -> str:
    return ",".join(f"{rung.name}={rung.video_kbps}/{rung.audio_kbps}" for rung in rungs)


def parse_codecs(value: Any) -> Any:
    """Read a list of codecs like `h264,av1`; H.264 is always among them: it is what makes a video playable."""
    if not isinstance(value, str):
        return value
    names = [name.strip().lower() for name in value.split(",") if name.strip()]
    if unknown := [name for name in names if name not in tuple(Codec)]:
        raise ValueError(f"{', '.join(unknown)}: the codecs are {', '.join(Codec)}")
    return tuple(codec for codec in Codec if codec is Codec.H264 or codec in names)


def parse_names(value: Any) -> Any:
    """Read names with commas between; anything but text is left to pydantic."""
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


def _rung(text: str) -> Rung:
    match = _LINE.fullmatch(text)
    if not match or not re.match(RUNG_PATTERN, match["name"]):
        raise ValueError(f"{text!r} is not a rung; write it like 720p=2500/128 (video and audio kbit/s)")
    short_side, video, audio = int(match["name"].split("p")[0]), int(match["video"]), int(match["audio"])
    if short_side < 16 or video < 1 or audio < 1:
        raise ValueError(f"{text!r}: the size and both rates must be positive")
    return Rung(name=match["name"], short_side=short_side, video_kbps=video, audio_kbps=audio)


def parse_critical(value: Any) -> Any:
    """Read names of qualities, and `audio`, with commas between; anything but text is left to pydantic."""
    if not isinstance(value, str):
        return value
    names: tuple[str, ...] = parse_names(value)
    for name in names:
        if name != "audio" and not re.fullmatch(r"\d+p", name):
            raise ValueError(f"{name!r} is not a quality; write names like 360p, and audio for the sound")
    return names
