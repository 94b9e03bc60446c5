"""What we are measured against, as command lines: the best one by hand, and the documented system's."""

from collections.abc import Sequence
from pathlib import Path

from contracts.plan import Rung, TranscodePlan
from media.tools import Ffmpeg

THEIR_CRF = 23  # theirs, one step below ours: a little less work for them


def by_hand(tool: Ffmpeg, source: Path, output: Path, plan: TranscodePlan) -> list[str]:
    """One process: one decode, each rung scaled from the one above, sound beside it, all into HLS with fMP4.

    The encoder's settings are the plan's. Nothing is checked, counted or made resumable.
    """
    graph, last = [], "0:v:0"
    outputs: list[str] = []
    for index, rung in enumerate(plan.renditions):
        # The largest rung is the source's own size: a scale that changes nothing costs nothing.
        scale = f"[{last}]scale={rung.width}:{rung.height}:flags=bicubic,format=yuv420p"
        if index + 1 < len(plan.renditions):
            graph.append(f"{scale},split=2[v{index}][n{index}]")
            last = f"n{index}"
        else:
            graph.append(f"{scale}[v{index}]")
        outputs += ["-map", f"[v{index}]", "-c:v", "libx264", "-preset", plan.encoding.preset, "-profile:v", "high"]
        outputs += ["-crf", f"{plan.encoding.crf:g}", "-maxrate", f"{rung.video_kbps}k"]
        outputs += ["-bufsize", f"{2 * rung.video_kbps}k", "-g", str(plan.grid.segment_frames), "-sc_threshold", "0"]
        outputs += ["-force_key_frames", f"expr:not(mod(n,{plan.grid.segment_frames}))"]
        outputs += ["-x264-params", "b-pyramid=none", *_hls(output / rung.quality, "seg_%05d.m4s", "playlist.m3u8")]
    for track in plan.audio:
        outputs += ["-map", f"0:{track.stream}", "-c:a", "aac", "-b:a", f"{track.kbps}k", "-ac", str(track.channels)]
        outputs += _hls(output / f"audio_{track.track}", "seg_%05d.m4s", "playlist.m3u8")
    return [*_quietly(tool), "-i", str(source), "-filter_complex", ";".join(graph), *outputs]


def one_by_one(
    tool: Ffmpeg, source: Path, output: Path, plan: TranscodePlan, ladder: Sequence[Rung]
) -> list[list[str]]:
    """A process per quality, each decoding the source again, sound in every one of them."""
    rates = {rung.name: rung for rung in ladder}
    commands = []
    for rung in plan.renditions:
        kbps = rung.video_kbps
        words = ["-vf", f"scale=-2:{rung.height}", "-c:v", "libx264", "-preset", plan.encoding.preset]
        words += ["-crf", str(THEIR_CRF), "-b:v", f"{kbps}k", "-maxrate", f"{kbps}k", "-bufsize", f"{2 * kbps}k"]
        words += ["-c:a", "aac", "-b:a", f"{rates[rung.quality].audio_kbps}k", "-ac", "2"]
        words += ["-movflags", "frag_keyframe+empty_moov+default_base_moof", "-progress", "pipe:1"]
        words += _hls(output / rung.quality, "seg_%04d.m4s", "stream.m3u8")
        commands.append([*_quietly(tool), "-i", str(source), *words])
    return commands


def _hls(folder: Path, segments: str, playlist: str) -> list[str]:
    """Cut at the keyframes nearest after six seconds. Makes the folder: ffmpeg would not."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = ["-f", "hls", "-hls_time", "6", "-hls_list_size", "0", "-hls_segment_type", "fmp4"]
    names = ["-hls_fmp4_init_filename", "init.mp4", "-hls_segment_filename", str(folder / segments)]
    return [*kind, *names, str(folder / playlist)]


def _quietly(tool: Ffmpeg) -> list[str]:
    return [str(tool.ffmpeg), "-y", "-v", "error", "-nostdin", "-nostats"]


def shown(argv: Sequence[str], *places: Path) -> str:
    """Write a command for a page, without the folders of this machine."""
    text = " ".join(f'"{word}"' if set(word) & set("[;()") else word for word in argv)
    text = text.replace(str(argv[0]), "ffmpeg")
    for place in places:
        text = text.replace(f"{place}/", "")
    return text.replace(" -map ", " \\\n  -map ")
