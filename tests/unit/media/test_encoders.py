"""What each encoder is told; that they do it is judged with real ones, in integration/."""

import pytest

from contracts.media import FrameRate
from contracts.plan import Encoding, Grid, PlannedRendition
from contracts.states import Codec
from media import encoders

GRID = Grid(frame_rate=FrameRate(num=30000, den=1001), frames=730, segment_frames=180)


def told(codec: Codec, encoder: str, *, alone: bool = True, **encoding: object) -> dict[str, object]:
    rung = PlannedRendition(quality="x", width=640, height=360, video_kbps=300, codec=codec, encoder=encoder)
    return encoders.options(rung, Encoding.model_validate(encoding), GRID, 730, alone=alone)


@pytest.mark.parametrize(
    ("codec", "encoder"), [(Codec.H264, "libx264"), (Codec.HEVC, "libx265"), (Codec.AV1, "libsvtav1")]
)
def test_all_get_the_same_grid_cap_and_colours(codec: Codec, encoder: str) -> None:
    said = told(codec, encoder)
    assert said["c:v"] == encoder
    assert (said["g"], said["force_key_frames"], said["frames:v"]) == (180, "expr:not(mod(n,180))", 730)
    assert (said["maxrate"], said["bufsize"]) == ("300k", "600k")
    assert {said[name] for name in ("color_primaries", "color_trc", "colorspace")} == {"bt709"}
    assert "threads" not in said and told(codec, encoder, alone=False)["threads"] == 1


def test_hevc_is_written_for_apple_with_closed_groups_and_a_header_that_never_varies() -> None:
    said = told(Codec.HEVC, "libx265")
    params = dict(part.split("=") for part in str(said["x265-params"]).split(":"))
    assert (said["tag:v"], said["forced-idr"], said["crf"]) == ("hvc1", 1, "26")
    assert params["open-gop"] == params["scenecut"] == params["info"] == params["wpp"] == "0"
    assert params["keyint"] == params["min-keyint"] == "180"
    assert "pools=1" in str(told(Codec.HEVC, "libx265", alone=False)["x265-params"]).split(":")


def test_av1_counts_its_presets_and_has_a_scale_of_its_own() -> None:
    assert told(Codec.AV1, "libsvtav1", preset="medium")["preset"] == 7
    assert told(Codec.AV1, "libsvtav1", preset="ultrafast")["preset"] == 9
    assert [told(Codec.AV1, "libsvtav1", crf=crf)["crf"] for crf in (22, 60)] == ["33", "63"]
    assert "lp=1" in str(told(Codec.AV1, "libsvtav1", alone=False)["svtav1-params"])
