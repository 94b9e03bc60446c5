"""What a remote worker may say of a source: nothing that whoever acts on it could come to harm by."""

from pathlib import Path
from typing import Any

import pytest

from api.probed import unbelievable
from contracts.media import AudioFacts, SourceFacts, SubtitleFacts
from runtime.settings import Settings
from tests.replay.fake_plans import FACTS
from tests.support.media_facts import source, track, video

SETTINGS = Settings(home=Path("/nowhere"))
SIZE = 1_000_000


def doubted(facts: SourceFacts) -> str:
    return unbelievable(facts, SIZE, SETTINGS)


def film(*sounds: AudioFacts, **changes: Any) -> SourceFacts:
    return source(video(**changes), *sounds).model_copy(update={"size_bytes": SIZE})


def test_what_files_have_is_believed() -> None:
    assert doubted(FACTS) == ""
    phone = {"rotation": 90, "color_transfer": "arib-std-b67", "color_space": "bt2020nc", "pixel_format": "yuv420p10le"}
    assert doubted(film(track(layout="5.1(side)", title="Kommentar – Ana & Bo"), **phone)) == ""
    odd = {"start_s": "-0.083000", "sample_aspect": "16:11", "field_order": "tt", "crop": (0, 8, 0, 8), "codec": "012v"}
    assert doubted(film(track(layout="2 channels (FL+FR)", gaps=((0.0, 31.5),)), **odd)) == ""
    words = FACTS.model_copy(update={"subtitles": (SubtitleFacts(stream=2, codec="subrip", language="pt-BR"),)})
    assert doubted(words) == ""
    broadcast = film(end_s=1e8).model_copy(update={"wants_remux": True, "clock_jumps": True, "duration_s": 1e8})
    assert doubted(broadcast) == ""


@pytest.mark.parametrize(
    "changes",
    [
        # In a filter graph each of these would open a file, or be another filter.
        {"start_s": "0/TB),movie=/etc/passwd[x];[x]setpts=(PTS"},
        {"start_s": "1e9999"},
        {"color_primaries": "bt709,movie=/etc/passwd"},
        {"color_space": "bt709:x=1"},
        {"color_transfer": "a'b"},
        {"pixel_format": "yuv420p;sleep"},
        {"codec": "h264\n-i"},
        {"sample_aspect": "1:1,"},
        {"field_order": "tt[x]"},
        # Numbers by which somebody would divide, count or make room.
        {"frame_rate": {"num": 30, "den": 0}},
        {"average_rate": {"num": 0, "den": 1}},
        {"frame_rate": {"num": 10**40, "den": 1}},
        {"packets": 0},
        {"packets": 10**12},
        {"packets": 10**400},
        {"width": 10**400},
        {"packets": 10**6, "end_s": 1.0},
        {"end_s": 0.0},
        {"end_s": 1e9},
        {"end_s": float("nan")},
        {"peak_nits": float("inf")},
        {"keyframe_gap_s": float("-inf")},
        {"width": 0},
        {"display_height": 0},
        {"width": 10**6, "height": 1},
        {"display_width": 16_000, "display_height": 16_000},
        {"crop": (-1, 0, 0, 0)},
        {"crop": (960, 0, 960, 0)},
        {"rotation": 45},
        {"bit_depth": 10**9},
        {"stream": -1},
    ],
    ids=str,
)
def test_what_no_picture_is_like_is_not_believed(changes: dict[str, Any]) -> None:
    told = FACTS.model_dump()
    told["video"] |= changes
    told["duration_s"] = changes.get("end_s", told["duration_s"])
    assert doubted(SourceFacts.model_validate(told))


@pytest.mark.parametrize(
    "changes",
    [
        {"size_bytes": SIZE + 1},
        {"remuxed": "matroska"},
        {"duration_s": 21.0},
        {"format_name": "concat;file"},
        {"format_name": ""},
        {"warnings": ("\x1b[2J",)},
        {"warnings": ("x",) * 221},
        {"warnings": ("x" * 1001,)},
        {"audio": (track(),) * 200},
        {"audio": (track(channels=0),)},
        {"audio": (track(layout="5.1\n"),)},
        {"audio": (track(language="en[x]"),)},
        {"audio": (track(title="a\0b"),)},
        {"audio": (track(gaps=((0.0, 1.0),) * 101),)},
        {"audio": (track(gaps=((0.0, float("inf")),)),)},
        {"subtitles": (SubtitleFacts(stream=2, codec="subrip,x"),)},
    ],
    ids=str,
)
def test_what_no_file_is_like_is_not_believed(changes: dict[str, Any]) -> None:
    assert doubted(FACTS.model_copy(update=changes))
