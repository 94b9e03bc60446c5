"""What `vlog doctor` says of the ffmpegs it finds."""

import pytest

from contracts.states import Codec
from tests.support.media_facts import tool, toolbox
from workers import doctor
from workers.capabilities import describe, missing

READS = frozenset({"h264", "hevc", "av1", "vp9", "prores", "mpeg2video"})
ABLE = tool(
    "able",
    decoders=READS,
    encoders=frozenset({"libx264", "libx265", "libsvtav1", "aac", "mjpeg"}),
    filters=frozenset({"zscale", "tonemap"}),
)
NO_AV1 = tool("no av1", decoders=READS - {"av1"}, encoders=frozenset({"libx264", "aac", "mjpeg"}))


def test_a_build_is_shown_with_what_it_has_and_has_not() -> None:
    assert describe(ABLE)["cannot"] == []
    shown = describe(NO_AV1)
    assert shown["cannot"] == ["AV1 in", "zscale", "HEVC out", "AV1 out"]
    assert "H.264 out" in shown["can"] and shown["build"] == NO_AV1.build


def test_what_no_build_can_is_named_with_what_is_lost_and_how_to_get_it() -> None:
    found = missing(toolbox(NO_AV1), [Codec.H264, Codec.AV1])
    assert list(found) == ["AV1 in", "zscale", "AV1 out"]  # nobody asked for HEVC
    assert found["AV1 in"]["lost"] == "AV1 uploads are refused"
    assert "apt install ffmpeg" in found["AV1 in"]["mend"] and "pip install imageio-ffmpeg" in found["AV1 in"]["mend"]


def test_one_build_that_can_is_enough() -> None:
    assert missing(toolbox(NO_AV1, ABLE), list(Codec)) == {}


def test_people_read_a_line_per_build_and_per_lack(capsys: pytest.CaptureFixture[str]) -> None:
    ffmpeg = {"ok": True, "found": [describe(NO_AV1)], "missing": missing(toolbox(NO_AV1), [Codec.H264])}
    doctor.show({"ffmpeg": ffmpeg, "postgres": {"ok": True}, "settings": {}})
    lines = capsys.readouterr().out.splitlines()
    assert any("found: path /opt/no av1/ffmpeg" in line and "cannot AV1 in, zscale" in line for line in lines)
    assert any("missing AV1 in: lost AV1 uploads are refused; mend apt install" in line for line in lines)
