"""Command lines for ffmpeg. The only importer of ffmpeg-python, which describes graphs here and runs nothing.

ffmpeg-python sorts the options of a file by name; ffmpeg does not mind their order.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import ffmpeg

from contracts.layout import INIT, PLAYLIST
from contracts.media import FrameRate, VideoFacts
from contracts.plan import Grid, PlannedRendition, PlannedSubtitle
from contracts.steps import EncodeAudio, TranscodeSpan
from media import device_encoders, device_graphs, encoders, filters, seeking, sound
from media.devices import GpuEncoder
from media.sniff import SAFE_INPUT
from media.subtitles import MOST_BYTES, times_file, words_file
from media.tools import Ffmpeg
from media.weights import slots_taken

REPORT_S = 0.25


def transcode(
    tool: Ffmpeg,
    source: Path,
    output: Path,
    request: TranscodeSpan,
    *,
    first_segment: int,
    device: GpuEncoder | None = None,
    reach: seeking.Reach | None = None,
) -> list[str]:
    """Encode the span's segments from `first_segment` on, each rendition into `output/<quality>/`.

    Makes those folders: ffmpeg would not. Segments appear there under their final names only when they are whole.
    A device encodes what the CPU, or the device itself, has decoded and scaled. `reach` says how far around the span
    the source is read; without it, as far as a source needs that is whole.
    """
    grid, span = request.grid, request.span
    last = min(span.first_segment + span.segments, grid.segments)
    if not span.first_segment <= first_segment < last:
        raise ValueError("the first segment lies outside the span")
    first_frame = first_segment * grid.segment_frames
    frames = min(last * grid.segment_frames, grid.frames) - first_frame
    # When steps share the machine, a thread each for every slot that the step takes: two of one slot then fill two
    # cores without getting in each other's way. A device waits for the CPU, not the other way round.
    alone = request.alone or device is not None
    shared = _threads(request)
    staying = device if device and device_graphs.stays_there(device, request.video, request.encoding) else None
    # A device decodes with one: each more would hold surfaces of its own, and none is faster.
    threads = {"threads": 1} if staying else {} if alone else {"threads": shared}

    reach = reach or seeking.near(request.video, grid)
    at = seeking.begins_at(request.video, grid, first_frame, reach)
    reading = seeking.options(request.video, at) | _whole(request.video)
    reading |= device_graphs.reading(staying) if staying else {}
    video = _input(source, threads, **reading)[str(request.video.stream)]
    on_grid = filters.on_grid(request.video, grid, first_frame, frames, request.encoding, at is not None, reach.after)
    video = _chain(video, on_grid)
    outputs = []
    for index, rung in enumerate(request.renditions):
        (output / rung.quality).mkdir(parents=True, exist_ok=True)
        if staying:
            video = _chain(video, device_graphs.scaled(staying, rung.width, rung.height))
        elif index == 0:
            video = _chain(video, filters.uncovered(request.video))
            video = _chain(video, filters.to_largest(request.video, request.encoding, rung.width, rung.height))
            video = _chain(video, device_graphs.uploaded(device) if device else ())
        else:
            video = _chain(video, filters.to_smaller(rung.width, rung.height))
        mine = video
        if index + 1 < len(request.renditions):
            # One decode for the whole list: each rung hands its picture on to the next smaller one.
            halves = video.filter_multi_output("split", 2)
            mine, video = halves[0], halves[1]
        outputs.append(_video_output(mine, output / rung.quality, rung, request, first_segment, frames, device))
    limits = [] if alone else ["-filter_complex_threads", str(shared)]
    limits += device_graphs.opened(device, staying=staying is not None) if device else []
    if frames < grid.frames and not staying:
        # ffmpeg fails when two thirds of what it was given cannot be decoded. Of a part that says nothing of the video,
        # unless a device decodes: that may be the device's fault.
        limits += ["-max_error_rate", "1"]
    joined = ffmpeg.merge_outputs(*outputs) if len(outputs) > 1 else outputs[0]
    return _compile(tool, joined, *limits, report_s=_report_s(grid))


def _report_s(grid: Grid) -> float:
    """Say how often to report. Each is also a look for finished segments; what no look has found is lost in a crash.

    Short segments are looked for more often: those of two seconds so that up to 48 times real time it is never more
    than one between two looks, those of six up to 24 times.
    """
    return min(REPORT_S, grid.seconds(grid.segment_frames) ** 2 / 96)


def _threads(request: TranscodeSpan) -> int:
    return min(slots_taken(request.video, request.renditions), os.cpu_count() or 1)


def _whole(video: VideoFacts) -> dict[str, Any]:
    """Let the graph see the pictures as they are stored: turning them is its own work."""
    # A new graph for a new size, or for other colours, would count from 0 again.
    same_graph = {"reinit_filter": 0} if filters.keeps_its_graph(video) else {}
    return {"noautorotate": None, **same_graph}


def _video_output(
    video: Any,
    folder: Path,
    rung: PlannedRendition,
    request: TranscodeSpan,
    first_segment: int,
    frames: int,
    device: GpuEncoder | None,
) -> Any:
    grid, rate = request.grid, request.grid.frame_rate
    if device is not None:
        options = device_encoders.options(device, rung, request.encoding, grid, frames)
    else:
        options = encoders.options(rung, request.encoding, grid, frames, alone=request.alone, threads=_threads(request))
    return video.output(
        f"file:{folder / PLAYLIST}",
        **options,
        # One tick per picture: every time stamp is a whole number on the grid.
        enc_time_base=f"{rate.den}:{rate.num}",
        # The grid is laid by the filters; ffmpeg must neither drop nor repeat.
        fps_mode="passthrough",
        # negative_cts_offsets: picture n is shown at n/fps with no edit list, which hls.js does not read.
        **_segments(folder, grid, first_segment, "+frag_discont+negative_cts_offsets", early_s=0.01),
    )


def audio(tool: Ffmpeg, source: Path, output: Path, request: EncodeAudio) -> list[str]:
    """Encode one track, whole, into segments in `output/`."""
    track = _input(source, {}, copyts=None)[str(request.audio.stream)]
    track = _chain(track, sound.to_stereo(request.audio))
    track = _chain(track, sound.on_clock(request.video_start_s, request.grid.duration_s))
    if request.audio.gaps:
        ticks = ffmpeg.input(sound.ticks(request.audio.gaps, request.grid.duration_s), f="lavfi")
        track = _chain(ffmpeg.filter([track, ticks], "ainterleave", nb_inputs=2), sound.after_ticks())
    track = _chain(track, sound.filled(request.grid.duration_s))
    out = track.output(
        f"file:{output / PLAYLIST}",
        **{"c:a": "aac", "b:a": f"{request.audio.kbps}k", "bsf:a": sound.ONWARD},
        ac=request.audio.channels,
        **_segments(output, request.grid, 0, "+frag_discont", early_s=0.0),
    )
    # Without it ffmpeg fails when two thirds of a track cannot be decoded; the rest is better than no video.
    return _compile(tool, out, "-max_error_rate", "1")


def subtitles(tool: Ffmpeg, source: Path, output: Path, tracks: Sequence[PlannedSubtitle]) -> list[str]:
    """Copy the packets of text tracks out of a source, payloads and times apart; nothing is decoded."""
    read = _input(source, {}, copyts=None)
    outputs = []
    for track in tracks:
        for muxer, file in (("data", words_file(output, track)), ("framecrc", times_file(output, track))):
            outputs.append(
                read[str(track.stream)].output(
                    f"file:{file}",
                    c="copy",
                    f=muxer,
                    # A track may claim to be text and be anything: what is kept of it is limited.
                    fs=MOST_BYTES,
                    avoid_negative_ts="disabled",
                )
            )
    return _compile(tool, ffmpeg.merge_outputs(*outputs))


def _segments(folder: Path, grid: Grid, first_segment: int, movflags: str, *, early_s: float) -> dict[str, Any]:
    seconds = float(filters.segment_seconds(grid)) - early_s
    return {
        "f": "hls",
        "map_metadata": -1,  # whatever the source says about itself stays with the source
        "map_chapters": -1,
        # ffmpeg would shift everything so that no time stamp is negative: two pictures off the grid.
        "avoid_negative_ts": "disabled",
        # A hair less than a segment: the muxer cuts at the first keyframe after it, which is the boundary.
        "hls_time": f"{seconds:.6f}",
        "hls_list_size": 0,
        # temp_file: a segment gets its name when it is whole, so that one can be trusted to be one.
        "hls_flags": "temp_file+independent_segments",
        "hls_segment_type": "fmp4",
        # frag_discont: a segment's time is its place on the grid, not its distance from where this process began.
        # write_btrt=0: the bit rate would differ from span to span, and with it the init segment.
        "hls_segment_options": f"movflags={movflags}:write_btrt=0",
        "hls_fmp4_init_filename": INIT,
        "start_number": first_segment,
        "hls_segment_filename": f"file:{folder}/seg_%05d.m4s",
    }


def pictures(
    tool: Ffmpeg,
    source: Path,
    stream: int,
    reading: dict[str, Any],
    steps: Iterable[filters.Filter],
    outputs: Sequence[tuple[Iterable[filters.Filter], str, dict[str, Any]]],
) -> list[str]:
    """Filter one stream and write it to one or more files (or patterns of files), each with filters of its own."""
    # One thread: more of them decode ahead, pictures that nobody wants.
    shared = _chain(_input(source, {"threads": 1}, noautorotate=None, **reading)[str(stream)], steps)
    # ffmpeg-python names every use of a filter anew: what two outputs share must be split by name.
    branches = shared.filter_multi_output("split", len(outputs)) if len(outputs) > 1 else [shared]
    written = [
        _chain(branches[place], own).output(f"file:{file}", fps_mode="passthrough", **options)
        for place, (own, file, options) in enumerate(outputs)
    ]
    return _compile(tool, ffmpeg.merge_outputs(*written) if len(written) > 1 else written[0])


def sample(
    tool: Ffmpeg, output_file: Path, *, seconds: float, size: tuple[int, int], rate: FrameRate | None = None
) -> list[str]:
    """Make a clip with moving pictures and sound, for whoever has none at hand."""
    width, height = size
    pictures = f"size={width}x{height}:rate={rate or FrameRate(num=30)}:duration={seconds}"
    moving = ffmpeg.input(f"testsrc2={pictures}", f="lavfi")
    # A tone with a beep every second, so that one hears whether sound and picture keep together.
    tone = ffmpeg.input(f"sine=frequency=220:beep_factor=4:sample_rate=48000:duration={seconds}", f="lavfi")
    out = ffmpeg.output(
        moving,
        tone,
        f"file:{output_file}",
        **{"c:v": "libx264", "c:a": "aac", "b:a": "128k"},
        preset="ultrafast",  # nobody keeps it, and somebody waits for it
        crf=20,
        pix_fmt="yuv420p",
        movflags="+faststart",
        f="mp4",
    )
    return _compile(tool, out)


def decode(tool: Ffmpeg, playlist: Path, stream: str) -> list[str]:
    """Decode every picture or sample of one of our own playlists and throw it away; the first error ends it."""
    # Ours, so following it is wanted; still only files.
    rendition = ffmpeg.input(f"file:{playlist}", protocol_whitelist="file", format_whitelist="hls,mov,mp4")
    nowhere = rendition[stream].output("pipe:", format="null", fps_mode="passthrough")
    return _compile(tool, nowhere, "-xerror")


def _input(source: Path, threads: dict[str, int], **options: Any) -> Any:
    # file: keeps a name that looks like an option or a protocol from being taken for one.
    return ffmpeg.input(f"file:{source}", **SAFE_INPUT, **threads, **options)


def _chain(stream: Any, steps: Iterable[filters.Filter]) -> Any:
    for name, options in steps:
        stream = stream.filter(name, **options)
    return stream


def _compile(tool: Ffmpeg, outputs: Any, *general: str, report_s: float = REPORT_S) -> list[str]:
    # Errors only, never ask, report a few times a second.
    quiet = ["-y", "-v", "error", "-nostdin", "-nostats", "-progress", "pipe:1", "-stats_period", f"{report_s:.3g}"]
    argv: list[str] = ffmpeg.compile(outputs, cmd=[str(tool.ffmpeg), *quiet, *general])
    return [str(word) for word in argv]
