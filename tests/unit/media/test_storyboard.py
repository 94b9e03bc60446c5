"""Every moment of a video has exactly one tile, and every tile lies on a sheet."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.plan import Encoding
from contracts.steps import MakeStoryboard
from media.picture_commands import storyboard
from media.sheets import keyframes_serve
from media.storyboard import lay_out, tile_size
from tests.support.encoding import IDS
from tests.support.media_facts import tool, video

CUE = re.compile(r"(\d+):(\d\d):(\d\d)\.(\d{3}) --> (\d+):(\d\d):(\d\d)\.(\d{3})\n(storyboard_\d{3,}\.jpg)#xywh=(.*)")


@settings(deadline=None, max_examples=60)  # the longest have thousands of cues
@given(seconds=st.floats(0.001, 120_000), width=st.integers(1, 8192), height=st.integers(1, 8192))
def test_cues_cover_the_video_and_tiles_lie_on_sheets(seconds: float, width: int, height: int) -> None:
    board = lay_out(video(width, height), seconds)
    cues = list(board.cues())
    assert len(cues) == board.tiles <= 10_000
    assert (cues[0].start_ms, cues[-1].end_ms) == (0, board.duration_ms)
    assert -0.001 <= board.duration_ms - seconds * 1000 < 1.001
    assert all(cue.start_ms < cue.end_ms for cue in cues)
    assert all(one.end_ms == following.start_ms for one, following in pairwise(cues))
    assert {cue.sheet for cue in cues} == set(range(board.sheets))
    assert len({(cue.sheet, cue.x, cue.y) for cue in cues}) == board.tiles
    for cue in cues:
        assert 0 <= cue.x <= (board.columns - 1) * board.tile_width and cue.x % board.tile_width == 0
        assert 0 <= cue.y <= (board.rows - 1) * board.tile_height and cue.y % board.tile_height == 0
    assert board.columns * board.tile_width < 65_536 and board.rows * board.tile_height < 65_536  # JPEG's limit


@settings(deadline=None, max_examples=60)
@given(seconds=st.floats(0.001, 20_000))
def test_what_is_written_is_what_was_laid_out(seconds: float) -> None:
    board = lay_out(video(), seconds)
    text = board.webvtt()
    assert text.startswith("WEBVTT\n\n") and text.endswith("\n")
    found = CUE.findall(text)
    assert len(found) == board.tiles == text.count("-->")
    for cue, (h, m, s, ms, end_h, end_m, end_s, end_ms, sheet, where) in zip(board.cues(), found, strict=True):
        assert cue.start_ms == ((int(h) * 60 + int(m)) * 60 + int(s)) * 1000 + int(ms)
        assert cue.end_ms == ((int(end_h) * 60 + int(end_m)) * 60 + int(end_s)) * 1000 + int(end_ms)
        assert sheet == f"storyboard_{cue.sheet:03d}.jpg" and where == f"{cue.x},{cue.y},160,90"


@pytest.mark.parametrize(
    ("seconds", "interval_s", "tiles", "sheets"),
    [(0.04, 1, 1, 1), (0.5, 1, 1, 1), (60, 1, 60, 1), (600, 5, 120, 2), (3600, 5, 720, 8), (7200, 10, 720, 8)],
)
def test_the_interval_follows_the_length(seconds: float, interval_s: int, tiles: int, sheets: int) -> None:
    board = lay_out(video(), seconds)
    assert (board.interval_s, board.tiles, board.sheets) == (interval_s, tiles, sheets)


@pytest.mark.parametrize(
    ("size", "tile"),
    [((1920, 1080), (160, 90)), ((1080, 1920), (160, 284)), ((120, 80), (120, 80)), ((10, 4000), (2, 320))],
)
def test_tiles_keep_the_shape_with_even_sides(size: tuple[int, int], tile: tuple[int, int]) -> None:
    assert tile_size(*size) == tile


def test_only_sparse_keyframes_of_a_short_video_make_it_decode_everything() -> None:
    for gap_s, seconds, serve in ((10.4, 60, True), (30, 60, False), (30, 7200, True), (0, 0.04, True)):
        picture = video(keyframe_gap_s=gap_s)
        assert keyframes_serve(picture, lay_out(picture, seconds)) is serve


def test_a_folder_with_per_cent_signs_is_not_taken_for_a_pattern(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("100%d")
    request = MakeStoryboard(**IDS, slug="a", video=video(), encoding=Encoding(), duration_s=20)
    argv = storyboard(tool(), folder / "in.mp4", folder, request, lay_out(video(), 20))
    assert argv[-1].endswith("/storyboard_%03d.jpg") and "100%%d" in argv[-1]
    assert "fps=eof_action=pass:fps=1/1:round=down:start_time=0" in argv[argv.index("-filter_complex") + 1]
