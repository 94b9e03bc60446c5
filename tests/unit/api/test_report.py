"""The report about a source: told from what is stored, and harmless whatever the file said of itself."""

from typing import Any

from api.schemas_report import Report
from contracts.media import AudioFacts, FrameRate
from contracts.plan import Encoding, Grid, PlannedRendition, Span, ToneMap, TranscodePlan
from mirror.cleaning import jsonable
from mirror.views import ReportView
from tests.support.media_facts import source, video

PLAN = TranscodePlan(
    grid=Grid(frame_rate=FrameRate(num=30000, den=1001), frames=600, segment_frames=180),
    renditions=(PlannedRendition(quality="720p", width=720, height=1280, video_kbps=2500),),
    skipped=("1080p",),
    spans=(Span(first_segment=0, segments=4),),
    encoding=Encoding(tone_map=ToneMap.ZSCALE),
    ffmpeg="8.1-x",
    notes=("HDR is mapped.",),
)


def told(facts: Any, plan: Any = None) -> dict[str, Any]:
    report = Report.of(ReportView(facts=jsonable(facts), plan=jsonable(plan) if plan else None))
    assert report is not None
    return report.model_dump(mode="json")


def test_what_was_found_and_what_was_decided() -> None:
    picture = video(
        1920,
        1080,
        display_width=1080,
        display_height=1920,
        rotation=90,
        color_transfer="smpte2084",
        frame_rate=FrameRate(num=30000, den=1001),
        variable_rate=True,
    )
    facts = source(picture).model_copy(update={"format_name": "mpegts", "remuxed": "matroska", "warnings": ("Cut.",)})
    report = told(facts, PLAN)
    assert (report["container"], report["remuxed_to"], report["hdr"]) == ("mpegts", "matroska", "PQ (HDR10)")
    found = report["video"]
    assert (found["display_width"], found["display_height"], found["rotation"]) == (1080, 1920, 90)
    assert (found["frame_rate"], found["variable_rate"], found["frames"]) == ("30000/1001", True, 600)
    assert report["warnings"] == ["Cut."]
    decided = report["decided"]
    assert (decided["tone_map"], decided["segment_seconds"], decided["skipped"]) == ("zscale", 6.006, ["1080p"])
    assert [(one["quality"], one["ffmpeg"]) for one in decided["renditions"]] == [("720p", "8.1-x")]
    assert decided["notes"] == ["HDR is mapped."]


def test_a_source_that_was_only_read_has_no_decisions_yet() -> None:
    report = told(source())
    assert report["decided"] is None and report["hdr"] is None


def test_what_a_file_says_of_itself_cannot_steer_a_terminal_or_a_page() -> None:
    nasty = "\x1b[2J\u202eevil\x00\r\n" + "x" * 5000
    track = AudioFacts(stream=1, codec="aac", channels=2, sample_rate=48000, title=nasty, language=nasty)
    facts = jsonable(source(video(), track))
    facts["format_name"] = nasty
    report = Report.of(ReportView(facts=facts, plan=None))
    assert report is not None
    for text in (report.audio[0].title, report.audio[0].language, report.container):
        assert text.startswith("[2Jevilx") and len(text) <= 300 and text.isprintable()


def test_what_an_older_version_stored_otherwise_is_no_error() -> None:
    assert Report.of(ReportView(facts=None, plan=None)) is None
    assert Report.of(ReportView(facts={"format_name": "mp4"}, plan=None)) is None
    assert Report.of(ReportView(facts=jsonable(source()), plan={"grid": {}})) is None
