"""The ladder, the grid and the choice of a tool."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import SourceUnsupported
from contracts.media import FrameRate
from contracts.plan import LADDER, Capacity, ToneMap
from media.planning import PlanOptions, choose_rungs, make_grid, make_plan
from tests.support.media_facts import source, tool, toolbox, track, video


def names(width: int, height: int) -> list[str]:
    return [rung.name for rung, _ in choose_rungs(video(width, height), LADDER)[0]]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((3840, 2160), ["2160p", "1440p", "1080p", "720p", "480p", "360p"]),
        ((1920, 1080), ["1080p", "720p", "480p", "360p"]),
        ((1080, 1920), ["1080p", "720p", "480p", "360p"]),
        ((1280, 718), ["480p", "360p"]),
        ((640, 360), ["360p"]),
        ((320, 240), ["240p"]),
        ((241, 161), ["160p"]),
    ],
)
def test_rungs_are_chosen_by_the_short_side(size: tuple[int, int], expected: list[str]) -> None:
    assert names(*size) == expected


def test_rungs_above_the_source_are_named_as_skipped() -> None:
    plan = make_plan(source(video(1280, 720)), PlanOptions(), toolbox())
    assert plan.skipped == ("2160p", "1440p", "1080p")
    assert [(one.quality, one.width, one.height) for one in plan.renditions] == [
        ("720p", 1280, 720),
        ("480p", 854, 480),
        ("360p", 640, 360),
    ]


@given(st.integers(2, 8000), st.integers(2, 8000))
def test_no_rung_is_larger_than_the_source_and_all_are_even(width: int, height: int) -> None:
    rungs, skipped = choose_rungs(video(width, height), LADDER)
    sizes = [size for _, size in rungs]
    assert sizes == sorted(sizes, reverse=True)
    for rung, (wide, high) in rungs:
        assert wide % 2 == 0 and high % 2 == 0
        assert min(wide, high) == rung.short_side or rung.short_side % 2
        assert wide <= width + 1 and high <= height + 1  # an odd size is rounded to its even neighbour
        assert rung.name == f"{rung.short_side}p"
    assert not {rung.name for rung, _ in rungs} & set(skipped)


def test_wanted_qualities_are_made_and_only_those() -> None:
    plan = make_plan(source(), PlanOptions(), toolbox(), ("480p", "1440p"))
    assert [one.quality for one in plan.renditions] == ["480p"]
    assert plan.skipped == ("1440p",)


def test_wanting_only_more_than_the_source_has_gives_its_best() -> None:
    plan = make_plan(source(video(1280, 720)), PlanOptions(), toolbox(), ("2160p",))
    assert [one.quality for one in plan.renditions] == ["720p"]


def test_an_unknown_quality_is_refused() -> None:
    with pytest.raises(SourceUnsupported, match="999p"):
        make_plan(source(), PlanOptions(), toolbox(), ("999p",))


@pytest.mark.parametrize(
    ("rate", "segment_frames"), [("24", 144), ("25", 150), ("30000/1001", 180), ("30", 180), ("60000/1001", 360)]
)
def test_the_grid_keeps_a_constant_rate_exactly(rate: str, segment_frames: int) -> None:
    exact = Fraction(rate)
    facts = video(frame_rate=FrameRate(num=exact.numerator, den=exact.denominator), packets=1000, end_s=12.3)
    grid, notes = make_grid(facts, 6.0)
    assert grid.frame_rate.fraction == exact
    assert (grid.frames, grid.segment_frames, notes) == (1000, segment_frames, [])


def test_more_than_sixty_pictures_a_second_are_too_many() -> None:
    facts = video(frame_rate=FrameRate(num=120), average_rate=FrameRate(num=120), packets=241, end_s=241 / 120)
    grid, notes = make_grid(facts, 6.0)
    assert (grid.frame_rate.fraction, grid.frames) == (Fraction(60), 120)
    assert notes == ["120 fps become 60: pictures are left out evenly."]


def test_a_variable_rate_gets_a_constant_one_that_is_not_slower() -> None:
    facts = video(variable_rate=True, frame_rate=FrameRate(num=30), average_rate=FrameRate(num=26777, den=1000))
    grid, notes = make_grid(facts, 6.0)
    assert (grid.frame_rate.fraction, grid.frames) == (Fraction(30), 600)
    assert "variable" in notes[0]


def test_one_span_covers_the_whole_grid() -> None:
    plan = make_plan(source(video(packets=601)), PlanOptions(), toolbox())
    assert plan.grid.segments == 4
    assert [(span.first_segment, span.segments) for span in plan.spans] == [(0, 4)]


def test_decoding_is_shared_unless_a_setting_says_never() -> None:
    shared = make_plan(source(video(1280, 720)), PlanOptions(), toolbox())
    assert shared.lists == (("720p", "480p", "360p"),)
    alone = make_plan(source(video(1280, 720)), PlanOptions(share_decode=False), toolbox())
    assert alone.lists == (("360p",), ("480p",), ("720p",)), "a step per quality, the one that plays first ahead"
    assert alone.spans == shared.spans


def test_each_track_has_its_own_name_and_one_is_the_default() -> None:
    tracks = [track(1, language="eng"), track(2, language="eng", default=True), track(3, title="Comments")]
    plan = make_plan(source(None, *tracks), PlanOptions(), toolbox())
    assert [(one.track, one.stream, one.name, one.default) for one in plan.audio] == [
        (0, 1, "English", False),
        (1, 2, "English (2)", True),
        (2, 3, "Comments", False),
    ]
    assert {one.kbps for one in plan.audio} == {128}


def test_without_a_mark_the_first_track_is_the_default() -> None:
    plan = make_plan(source(None, track(1), track(2)), PlanOptions(), toolbox())
    assert [(one.name, one.default) for one in plan.audio] == [("Main", True), ("Track 2", False)]


def test_an_av1_source_picks_a_tool_that_decodes_it() -> None:
    able = tool("able", decoders=frozenset({"h264", "av1"}))
    assert make_plan(source(video(codec="av1")), PlanOptions(), toolbox(tool(), able)).ffmpeg == able.build
    with pytest.raises(SourceUnsupported, match="a decoder for av1"):
        make_plan(source(video(codec="av1")), PlanOptions(), toolbox(tool()))


def test_hdr_picks_zscale_and_says_what_was_done_without_it() -> None:
    hdr = source(video(codec="hevc", color_transfer="smpte2084"))
    best = tool("best", filters=frozenset({"zscale", "tonemap"}))
    rough = tool("rough", filters=frozenset({"lutrgb", "colorchannelmixer"}))
    chosen = make_plan(hdr, PlanOptions(), toolbox(tool(), rough, best))
    assert (chosen.ffmpeg, chosen.encoding.tone_map) == (best.build, ToneMap.ZSCALE)
    assert make_plan(hdr, PlanOptions(), toolbox(tool(), rough)).encoding.tone_map is ToneMap.TABLES
    plain = make_plan(hdr, PlanOptions(), toolbox())
    assert plain.encoding.tone_map is ToneMap.NONE and any("not at all" in note for note in plain.notes)


def test_interlaced_pictures_are_deinterlaced() -> None:
    assert make_plan(source(video(field_order="tt")), PlanOptions(), toolbox()).encoding.deinterlace
    assert not make_plan(source(), PlanOptions(), toolbox()).encoding.deinterlace


def test_a_track_that_no_build_decodes_is_left_out_and_named() -> None:
    plan = make_plan(source(None, track(1, codec="exotic", default=True), track(2)), PlanOptions(), toolbox())
    assert [(one.track, one.stream, one.default) for one in plan.audio] == [(0, 2, True)]
    assert any("Audio track 1 (exotic) is left out" in note for note in plan.notes)


def test_sound_that_goes_on_after_the_picture_is_said_to_be_cut() -> None:
    longer = make_plan(source(None, track(1, end_s=864_000.0)), PlanOptions(), toolbox())
    assert any("863980.0 s after the picture; it is cut" in note for note in longer.notes)
    usual = make_plan(source(None, track(1, end_s=20.6)), PlanOptions(), toolbox())
    assert not any("cut" in note for note in usual.notes)


def test_a_call_with_a_single_keyframe_is_not_cut() -> None:
    """Each span would be decoded from the start: of three hours, a hundred and thirty-five in all."""
    call = video(packets=324_000, end_s=10_800.0, keyframe_gap_s=10_799.97)
    plan = make_plan(source(call), PlanOptions(), toolbox(), capacity=Capacity(workers=4, slots=8))
    assert len(plan.spans) == 1
    usual = make_plan(
        source(call.model_copy(update={"keyframe_gap_s": 10.0})),
        PlanOptions(),
        toolbox(),
        capacity=Capacity(workers=4, slots=8),
    )
    assert len(usual.spans) > 80


@pytest.mark.parametrize("seconds", [92, 122, 3601])
def test_a_source_that_cannot_seek_is_never_cut(seconds: int) -> None:
    picture = video().model_copy(update={"seekable": False, "packets": seconds * 30, "end_s": float(seconds)})
    plan = make_plan(source(picture), PlanOptions(), toolbox(), capacity=Capacity(workers=4, slots=8))
    assert [(span.first_segment, span.segments) for span in plan.spans] == [(0, plan.grid.segments)]
