"""Where things lie under storage. Keys are derived, never chosen, so that repeating a step finds its own work."""

import re

from contracts.ids import JobId, ObjectKey, VideoId

MASTER = "master.m3u8"
MPD = "manifest.mpd"
THUMBNAIL = "thumbnail.jpg"
STORYBOARD = "storyboard.vtt"
PLAYLIST = "playlist.m3u8"
INIT = "init.mp4"
SUBTITLES = "subtitles.vtt"
TIMELINES = "timelines/"  # of a sound track, while it grows: its segments are not all of one length

MIME = {
    ".m3u8": "application/vnd.apple.mpegurl",
    ".mpd": "application/dash+xml",
    ".m4s": "video/iso.segment",
    ".mp4": "video/mp4",
    ".jpg": "image/jpeg",
    ".vtt": "text/vtt; charset=utf-8",
}

UPLOADS = "uploads/"  # sources, each named by its video's number
REMUXED = "remuxed/"  # copies of sources that seek badly, for as long as their job lasts

# Anything else is stored without an extension: a name never reaches ffmpeg as a hint.
KNOWN_EXTENSIONS = frozenset(
    ".mp4 .m4v .mov .mkv .webm .avi .ts .m2ts .mts .mpg .mpeg .flv .wmv .ogv .3gp .gif .mxf .vob .y4m".split()
)

_GENERATION = re.compile(r"\.(\d+)/$")
_SOURCE = re.compile(r"uploads/(\d{1,18})(?:\.[a-z0-9]+)?")
_REMUXED = re.compile(r"remuxed/\d+-(\d{1,18})\.mkv")
_SEGMENT = re.compile(r"seg_(\d{5,})\.m4s$")


def source_key(video_id: VideoId, extension: str) -> ObjectKey:
    return ObjectKey(f"{UPLOADS}{video_id}{extension if extension in KNOWN_EXTENSIONS else ''}")


def remux_key(video_id: VideoId, job_id: JobId) -> ObjectKey:
    """Name the copy of a source that seeks badly. Not below `videos/`: what lies there is served."""
    return ObjectKey(f"{REMUXED}{video_id}-{job_id}.mkv")


def source_video(key: str) -> int | None:
    """Read out of a source's key whose it is; None for anything else."""
    match = _SOURCE.fullmatch(key)
    return int(match.group(1)) if match else None


def remuxed_job(key: str) -> int | None:
    """Read out of a copy's key which job made it; None for anything else."""
    match = _REMUXED.fullmatch(key)
    return int(match.group(1)) if match else None


def video_prefix(slug: str) -> str:
    return f"videos/{slug}/"


def rendition_prefix(slug: str, output: str, quality: str, generation: int = 0) -> str:
    anew = f".{generation}" if generation else ""
    return f"{video_prefix(slug)}{output}/{quality}{anew}/"


def earlier_prefixes(prefix: str) -> tuple[str, ...]:
    """Name the folders of a rendition's earlier generations, the first one first."""
    match = _GENERATION.search(prefix)
    if not match:
        return ()
    first = prefix[: match.start()]
    return tuple(first + (f".{generation}/" if generation else "/") for generation in range(int(match.group(1))))


def audio_prefix(slug: str, output: str, track: int, generation: int = 0) -> str:
    anew = f".{generation}" if generation else ""
    return f"{video_prefix(slug)}{output}/audio_{track}{anew}/"


def subtitles_prefix(slug: str, output: str, track: int) -> str:
    return f"{video_prefix(slug)}{output}/subtitles_{track}/"


def timeline_key(prefix: str, job_id: JobId, generation: int, attempt: int) -> str:
    """Name the timeline of one attempt at a sound track. Nobody else writes it: a zombie can shorten only its own."""
    return f"{prefix}{TIMELINES}job{job_id}-g{generation}a{attempt}.json"


def segment_name(index: int) -> str:
    return f"seg_{index:05d}.m4s"


def segment_index(name: str) -> int | None:
    """Read the number out of a segment's name or key; None for anything else."""
    match = _SEGMENT.search(name)
    return int(match.group(1)) if match else None


def sheet_name(index: int) -> str:
    return f"storyboard_{index:03d}.jpg"
