"""Choosing among ffmpegs."""

from pathlib import Path

import pytest

from contracts.errors import BuildMissing, FailureKind, SourceUnsupported
from media.tools import ToolsMissing, find_tools
from tests.support.media_facts import tool, toolbox


def test_the_first_that_has_everything_is_picked() -> None:
    plain, rich = tool("plain"), tool("rich", decoders=frozenset({"av1"}), filters=frozenset({"zscale"}))
    box = toolbox(plain, rich)
    assert box.pick() is plain
    assert box.pick(decoder="av1") is rich
    assert box.pick(filters=("zscale",)) is rich
    assert box.ffprobe == plain.ffprobe


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SourceUnsupported, match="a decoder for vvc, the filter magic"):
        toolbox().pick(decoder="vvc", filters=("magic",))


def test_a_pinned_build_is_used_or_nothing() -> None:
    box = toolbox(tool("one"), tool("two"))
    assert box.pick(build="8.1-two").origin == "two"
    with pytest.raises(BuildMissing, match="planned for") as caught:
        box.pick(build="5.0-gone")
    assert caught.value.kind is FailureKind.LATER  # it is this worker's lack: no attempt is counted


def test_pictures_prefer_a_build_and_do_with_another() -> None:
    one, two = tool("one"), tool("two", decoders=frozenset({"av1"}))
    box = toolbox(one, two)
    assert box.preferring(two.build).pick() is two
    assert box.preferring("5.0-gone").pick() is one


async def test_a_wrong_override_is_an_error_not_a_default(tmp_path: Path) -> None:
    with pytest.raises(ToolsMissing, match="VLOG_FFMPEG"):
        await find_tools(str(tmp_path / "ffmpeg"))
    impostor = tmp_path / "impostor"
    impostor.write_text("#!/bin/sh\necho ffmpeg version 4.4 Copyright\n")
    impostor.chmod(0o755)
    with pytest.raises(ToolsMissing, match="too old"):
        await find_tools(str(impostor))


async def test_an_override_comes_first_and_is_found_again_at_once() -> None:
    usual = await find_tools()
    named = await find_tools(str(usual.tools[-1].ffmpeg))
    assert (named.tools[0].ffmpeg, named.tools[0].origin) == (usual.tools[-1].ffmpeg, "VLOG_FFMPEG")
    assert (await find_tools()).tools[0] is usual.tools[0]


async def test_some_ffmpeg_here_decodes_av1_and_some_maps_hdr() -> None:
    box = await find_tools()
    assert box.pick(decoder="av1")
    assert box.pick(decoder="hevc", filters=("zscale", "tonemap"))
    for one in box.tools:
        # ffmpeg's own `av1` only drives hardware and does not count.
        assert ("av1" in one.decoders) == bool(one.decoders & {"libdav1d", "libaom-av1"})
