"""Which ffmpeg makes what. No build has everything, so each rendition, each track and the pictures get one that can.

What a graph needs is read off the graph itself: a filter that is added there is asked for here.
"""

from collections.abc import Sequence

from contracts.errors import GpuLacks
from contracts.media import AudioFacts, SourceFacts, VideoFacts
from contracts.plan import Encoding, Grid, PlannedAudio
from contracts.states import Codec
from media import filters, sound
from media.tools import Ffmpeg, Needs, Toolbox

ENCODERS: dict[Codec, str] = {Codec.H264: "libx264", Codec.HEVC: "libx265", Codec.AV1: "libsvtav1"}


def for_rendition(
    tools: Toolbox, facts: SourceFacts, grid: Grid, encodings: Sequence[Encoding], codec: Codec
) -> tuple[Ffmpeg, Encoding]:
    """Choose a build that can do the best of these encodings, which come best first; refuse, naming what is missing."""
    for encoding in encodings[:-1]:
        needs = _needs(facts, grid, encoding, ENCODERS[codec])
        for tool in tools.tools:
            if not tool.lacks(needs):
                return tool, encoding
    return tools.pick_for(_needs(facts, grid, encodings[-1], ENCODERS[codec])), encodings[-1]


def for_device(tool: Ffmpeg, video: VideoFacts, grid: Grid, encoding: Encoding) -> None:
    """Insist that the one build that reaches a device also decodes this source and has what its picture needs."""
    if missing := tool.lacks(Needs(decoder=video.codec, filters=filters_needed(video, grid, encoding))):
        raise GpuLacks(f"The ffmpeg that reaches the GPU cannot handle this video: missing {', '.join(missing)}.")


def for_pictures(tools: Toolbox, facts: SourceFacts, grid: Grid, encoding: Encoding, usual: Ffmpeg) -> Ffmpeg:
    """Choose for thumbnail and storyboard, the usual build if it can; no video is held back when none can."""
    return _first(tools, usual, _needs(facts, grid, encoding, "mjpeg")) or usual


def for_track(tools: Toolbox, facts: SourceFacts, track: AudioFacts, usual: Ffmpeg) -> Ffmpeg | None:
    """Choose for one track, the usual build if it can; None is an answer: the video does without the track."""
    needs = Needs(facts.format_name, track.codec, sound_filters_needed(track), frozenset({"aac"}))
    return _first(tools, usual, needs)


def filters_needed(video: VideoFacts, grid: Grid, encoding: Encoding) -> frozenset[str]:
    """Name the filters of a transcode by laying its graph."""
    graph = [
        *filters.on_grid(video, grid, 0, grid.frames, encoding),
        *filters.uncovered(video),
        *filters.to_largest(video, encoding, 2, 2),
        *filters.to_smaller(2, 2),
    ]
    return frozenset({name for name, _ in graph} | {"split"})


def sound_filters_needed(track: AudioFacts) -> frozenset[str]:
    """Name the filters of a track's sound, likewise."""
    planned = PlannedAudio(
        track=0, stream=track.stream, kbps=0, source_channels=track.channels, source_layout=track.layout
    )
    graph = [*sound.to_stereo(planned), *sound.on_clock("0", 1.0), *sound.filled(1.0)]
    pieces = {"ainterleave", "anullsrc"} if track.gaps else set()
    return frozenset({name for name, _ in graph} | pieces)


def _needs(facts: SourceFacts, grid: Grid, encoding: Encoding, encoder: str) -> Needs:
    wanted = filters_needed(facts.video, grid, encoding)
    return Needs(facts.format_name, facts.video.codec, wanted, frozenset({encoder}))


def _first(tools: Toolbox, usual: Ffmpeg, needs: Needs) -> Ffmpeg | None:
    return next((tool for tool in (usual, *tools.tools) if not tool.lacks(needs)), None)
