"""Read our own HLS back: enough of the format to check what was published."""

import re
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import OutputIncomplete

_ATTRIBUTE = re.compile(r'([A-Z0-9-]+)=("[^"]*"|[^,]*)')


@dataclass(frozen=True)
class MediaPlaylist:
    folder: Path
    init: Path
    segments: tuple[tuple[Path, float], ...]
    target_s: int


@dataclass(frozen=True)
class Variant:
    attributes: dict[str, str]
    path: Path


def attributes(line: str) -> dict[str, str]:
    return {key: value.strip('"') for key, value in _ATTRIBUTE.findall(line.partition(":")[2])}


def read_master(path: Path) -> tuple[list[Variant], list[Variant]]:
    """Read a master playlist as (video variants, sound renditions); `read_texts` reads its subtitles."""
    videos = []
    lines = _lines(path)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("#EXT-X-STREAM-INF:"):
            videos.append(Variant(attributes(line), path.parent / following))
    sounds = _media(path, lines, "AUDIO")
    if not videos:
        raise OutputIncomplete("The master playlist lists no video.")
    return videos, sounds


def read_texts(path: Path) -> list[Variant]:
    """Read the subtitle renditions of a master playlist."""
    return _media(path, _lines(path), "SUBTITLES")


def _media(path: Path, lines: list[str], kind: str) -> list[Variant]:
    named = [attributes(line) for line in lines if line.startswith("#EXT-X-MEDIA:")]
    return [Variant(found, path.parent / found["URI"]) for found in named if found.get("TYPE") == kind]


def read_media(path: Path) -> MediaPlaylist:
    """Read a finished media playlist."""
    lines = _lines(path)
    if "#EXT-X-ENDLIST" not in lines:
        raise OutputIncomplete("A playlist has no end.")
    init, target_s, seconds = "", 0, 0.0
    segments = []
    for line in lines:
        if line.startswith("#EXT-X-MAP:"):
            init = attributes(line)["URI"]
        elif line.startswith("#EXT-X-TARGETDURATION:"):
            target_s = int(line.partition(":")[2])
        elif line.startswith("#EXTINF:"):
            seconds = float(line.partition(":")[2].split(",")[0])
        elif not line.startswith("#"):
            segments.append((path.parent / line, seconds))
    if not init or not segments:
        raise OutputIncomplete("A playlist lists no media.")
    return MediaPlaylist(path.parent, path.parent / init, tuple(segments), target_s)


def read_text_playlist(path: Path) -> tuple[Path, float]:
    """Read the playlist of subtitles: the one file it names, and how long it says that is."""
    lines = _lines(path)
    files = [path.parent / line for line in lines if not line.startswith("#")]
    lengths = [float(line.partition(":")[2].rstrip(",")) for line in lines if line.startswith("#EXTINF:")]
    if "#EXT-X-ENDLIST" not in lines or len(files) != 1 or len(lengths) != 1 or not files[0].is_file():
        raise OutputIncomplete("The playlist of subtitles does not name one file.")
    return files[0], lengths[0]


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise OutputIncomplete(f"The playlist {path.parent.name}/{path.name} is missing.")
    lines = [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
    if lines[:1] != ["#EXTM3U"]:
        raise OutputIncomplete(f"{path.name} is not a playlist.")
    return lines
