"""HEVC and AV1 by real encoders: cut into spans and joined they are one stream, on the same grid as H.264."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.transcode import TranscodeSteps
from contracts.errors import VlogError
from contracts.ids import ObjectKey
from contracts.layout import INIT, rendition_prefix
from contracts.plan import Rung, Span
from contracts.states import Codec
from media import commands, encoder
from media.boxes import read_init
from media.planning import PlanOptions
from media.tools import Ffmpeg, Toolbox
from media.verify import verify_stream
from storage.local import LocalStore
from tests.support import numbered
from tests.support.clips import Clips
from tests.support.encoding import Work, checked, prepare, publish

KEY = ObjectKey("uploads/1")
ALL = (Codec.H264, Codec.HEVC, Codec.AV1)
ONE_RUNG = (Rung(name="144p", short_side=144, video_kbps=400, audio_kbps=64),)
CODECS = {
    Codec.H264: r"avc1\.64[0-9A-F]{4}",
    Codec.HEVC: r"hvc1\.1\.6\.L\d+\.90",  # Main profile, compatible with Main and Main 10, progressive
    Codec.AV1: r"av01\.0\.\d\dM\.08",  # Main profile, main tier, 8 bits
}


async def with_a_tail_of_one(tools: Toolbox, source: Path, options: PlanOptions) -> Work:
    """Two whole segments and one of a single picture, the hardest tail there is."""
    work = await prepare(tools, source, replace(options, ladder=ONE_RUNG, codecs=ALL, preset="veryfast"))
    grid = work.plan.grid
    short = grid.model_copy(update={"frames": 2 * grid.segment_frames + 1})
    return replace(work, plan=work.plan.model_copy(update={"grid": short}))


def able(tools: Toolbox, encoder: str) -> list[Ffmpeg]:
    return [one for one in tools.tools if encoder in one.encoders]


@pytest.mark.parametrize(("codec", "encoder"), [("h264", "libx264"), ("hevc", "libx265"), ("av1", "libsvtav1")])
async def test_two_spans_of_a_codec_join_without_a_seam(
    tools: Toolbox, options: PlanOptions, tmp_path: Path, codec: str, encoder: str
) -> None:
    source = tmp_path / "numbered.mp4"
    numbered.make(tools, source, "-c:v", "libx264", "-preset", "veryfast", "-c:a", "aac", rate="30000/1001", frames=90)
    work = await with_a_tail_of_one(tools, source, options)
    quality = "144p" if codec == "h264" else f"144p-{codec}"
    builds = able(tools, encoder)
    assert builds, f"no ffmpeg here has {encoder}"
    for tool in builds:
        store = LocalStore(tmp_path / tool.build)
        await store.put_file(KEY, work.source)
        steps = TranscodeSteps(store, Toolbox((tool,)), stall_s=30)
        # The threads differ too, as they do between a lone worker's try and a shared one's.
        for first, segments, alone in ((2, 1, True), (0, 2, False)):
            request = work.span([quality], alone=alone).model_copy(
                update={"ffmpeg": tool.build, "span": Span(first_segment=first, segments=segments)}
            )
            # Refuses segments off the grid, with stray keyframes, and an init that differs from the first span's.
            await ActivityEnvironment().run(steps.transcode_span, request)
        folder = tmp_path / tool.build / rendition_prefix("clip", "r1", quality)
        found = checked(work, folder)
        assert [segment.samples for segment in found] == [30, 30, 1]
        init = read_init((folder / INIT).read_bytes())
        assert re.fullmatch(CODECS[Codec(codec)], init.codecs), init.codecs
        parts = [folder / INIT, *sorted(folder.glob("seg_*.m4s"))]
        decoding = Toolbox((tools.pick(decoder=codec, encoders=()),))
        assert numbered.read(decoding, *parts) == list(range(61))  # every picture, and none for another


async def test_all_codecs_of_a_video_are_published_and_verified_together(
    tools: Toolbox, clips: Clips, options: PlanOptions, tmp_path: Path
) -> None:
    ladder = (replace_name(ONE_RUNG[0], 240), ONE_RUNG[0])
    work = await prepare(tools, clips.get("short.mp4"), replace(options, ladder=ladder, codecs=ALL, preset="ultrafast"))
    report = await verify_stream(tools, await publish(work, tmp_path))
    assert [rung.name for rung in report.rungs] == [*["240p", "144p", "240p-hevc", "144p-hevc", "240p-av1", "144p-av1"]]
    assert {rung.frames for rung in report.rungs} == {15}
    assert [rung.codecs.split(".")[0] for rung in report.rungs[::2]] == ["avc1", "hvc1", "av01"]


def replace_name(rung: Rung, side: int) -> Rung:
    return rung.model_copy(update={"name": f"{side}p", "short_side": side})


async def test_an_av1_source_is_decoded_by_a_build_that_can_and_the_plan_says_which(
    tools: Toolbox, clips: Clips, options: PlanOptions
) -> None:
    work = await prepare(tools, clips.get("av1.mp4"), replace(options, codecs=ALL))
    makers = {rendition.ffmpeg for rendition in work.plan.renditions} | {work.plan.ffmpeg}
    for build in makers:
        maker = tools.pick(build=build, encoders=())
        assert "av1" in maker.decoders
        assert any(f"ffmpeg {maker.version} from {maker.origin} makes" in note for note in work.plan.notes)
    # What no build can both read and write is left out, and named.
    if not any("av1" in one.decoders and "libsvtav1" in one.encoders for one in tools.tools):
        assert any("360p-av1 is left out" in note for note in work.plan.notes)


async def test_an_av1_encoder_says_nothing_unless_something_is_wrong(
    tools: Toolbox, clips: Clips, options: PlanOptions, tmp_path: Path
) -> None:
    """Its last words would otherwise be about presets, and not why it died."""
    work = await prepare(
        tools, clips.get("short.mp4"), replace(options, ladder=ONE_RUNG, codecs=(Codec.H264, Codec.AV1))
    )
    request = work.span(["144p-av1"])
    tool = tools.pick(build=request.ffmpeg, encoders=())
    argv = commands.transcode(tool, work.source, tmp_path, request, first_segment=0)
    wrong = list(argv)
    wrong[wrong.index("-preset") + 1] = "99"
    with pytest.raises(VlogError) as caught:
        async for _ in encoder.run(wrong, stall_s=30):
            pass
    assert "Svt[info]" not in caught.value.detail and "preset" in caught.value.detail
