from pathlib import Path

from contracts.media import FrameRate
from contracts.plan import LADDER, Encoding, Grid, PlannedAudio, PlannedRendition, Span, TranscodePlan
from media.tools import Ffmpeg
from tests.bench.commands import by_hand, one_by_one, shown

NOTHING: frozenset[str] = frozenset()
TOOL = Ffmpeg(Path("/opt/ffmpeg"), Path("/opt/ffprobe"), "8.1", "8.1-x", "PATH", NOTHING, NOTHING, NOTHING, NOTHING)
PLAN = TranscodePlan(
    grid=Grid(frame_rate=FrameRate(num=24), frames=1440, segment_frames=144),
    renditions=(
        PlannedRendition(quality="1080p", width=1920, height=1080, video_kbps=5000),
        PlannedRendition(quality="720p", width=1280, height=720, video_kbps=2500),
        PlannedRendition(quality="360p", width=640, height=360, video_kbps=600),
    ),
    audio=(PlannedAudio(track=0, stream=1, kbps=128),),
    spans=(Span(first_segment=0, segments=10),),
    encoding=Encoding(preset="veryfast"),
)


def test_by_hand_is_one_process_that_decodes_once_and_scales_each_rung_from_the_one_above(tmp_path: Path) -> None:
    argv = by_hand(TOOL, Path("in.mp4"), tmp_path, PLAN)
    assert argv.count("-i") == 1 and argv.count("libx264") == 3 and argv.count("aac") == 1
    assert "-threads" not in argv
    graph = argv[argv.index("-filter_complex") + 1].split(";")
    assert [chain.partition("]")[0] + "]" for chain in graph] == ["[0:v:0]", "[n0]", "[n1]"]
    assert graph[1].startswith("[n0]scale=1280:720") and graph[2].endswith("[v2]")


def test_one_by_one_decodes_and_carries_sound_once_per_quality(tmp_path: Path) -> None:
    commands = one_by_one(TOOL, Path("in.mp4"), tmp_path, PLAN, LADDER)
    assert [argv[argv.index("-vf") + 1] for argv in commands] == ["scale=-2:1080", "scale=-2:720", "scale=-2:360"]
    assert [argv[argv.index("-b:a") + 1] for argv in commands] == ["128k", "128k", "96k"]
    assert all(argv.count("-i") == 1 and argv[argv.index("-hls_time") + 1] == "6" for argv in commands)


def test_a_shown_command_has_no_folder_of_this_machine(tmp_path: Path) -> None:
    text = shown(by_hand(TOOL, tmp_path / "in.mp4", tmp_path / "out", PLAN), tmp_path / "out", tmp_path)
    assert text.startswith("ffmpeg -y") and str(tmp_path) not in text and "/opt" not in text
