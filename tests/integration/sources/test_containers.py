"""Containers, codecs, clocks and what else lies in a file: every picture of the video, each once, from its start."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from contracts.plan import Rung
from media.planning import PlanOptions
from tests.integration.sources.conftest import Judge
from tests.support import chart
from tests.support.charts import X264, X264_B, Charts, yuv
from tests.support.judging import Outcome

OFF = 3  # of 255
SVT = ("-c:v", "libsvtav1", "-preset", "8", "-crf", "12", "-svtav1-params", "lp=1")
AOM = ("-c:v", "libaom-av1", "-cpu-used", "8", "-crf", "12", "-row-mt", "0")
VP9 = ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-crf", "8", "-b:v", "0")
VP8 = ("-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-crf", "4", "-b:v", "8M")
X265 = ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:crf=10")
MPEG2 = ("-c:v", "mpeg2video", "-q:v", "2", "-bf", "2", "-g", "12")
MPEG4 = ("-c:v", "mpeg4", "-q:v", "2", "-bf", "2")


async def _whole_and_resumed(
    judge: Judge, source: Path, numbers: Sequence[int], options: PlanOptions | None = None
) -> Outcome:
    """Judge the whole and its last segment alone, which begins with a seek where the source can."""
    more = {"options": options} if options else {}
    out = await judge(source, **more)
    assert out.numbers == list(numbers) and out.corners == {chart.UPRIGHT}
    last = out.plan.grid.segments - 1
    if last:
        tail = await judge(source, first_segment=last, **more)
        assert tail.numbers == list(numbers)[last * out.plan.grid.segment_frames :]
    return out


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("h264.mkv", X264_B),
        ("h264.mov", X264_B),
        ("h264.ts", X264_B),
        ("h264.flv", X264_B),
        ("h264.avi", (*X264, "-bf", "0")),
        ("hevc.mp4", (*X265, "-tag:v", "hvc1")),
        ("hevc.ts", X265),
        ("vp9.webm", VP9),
        ("vp8.webm", VP8),
        ("av1_svt.mp4", SVT),
        ("av1_aom.webm", AOM),
        ("prores.mov", ("-c:v", "prores_ks", "-profile:v", "3")),
        ("prores_4444.mov", ("-c:v", "prores_ks", "-profile:v", "4")),
        ("mpeg2.ts", MPEG2),
        ("mpeg2.mpg", MPEG2),
        ("mpeg4.mp4", MPEG4),
        ("mpeg4.avi", (*MPEG4, "-vtag", "XVID")),
        ("mjpeg.mov", ("-c:v", "mjpeg", "-q:v", "2")),
        ("wmv.asf", ("-c:v", "wmv2", "-b:v", "8M", "-q:v", "2")),
    ],
)
async def test_every_container_and_codec_gives_every_picture(
    charts: Charts, judge: Judge, name: str, codec: tuple[str, ...]
) -> None:
    kinds = {"prores.mov": "yuv422p10le", "prores_4444.mov": "yuv444p10le", "mjpeg.mov": "yuvj420p"}
    # JPEG is BT.601 by definition; these others cannot say what they are, and small ones are taken as BT.601.
    matrix = "smpte170m" if name in ("mjpeg.mov", "vp8.webm", "wmv.asf", "mpeg4.avi") else "bt709"
    pictures = yuv(kinds.get(name, "yuv420p"), matrix=matrix, full=name == "mjpeg.mov", tags={"colorspace": matrix})
    out = await _whole_and_resumed(
        judge, charts.make(name, *codec, rate="25", numbers=range(50), pictures=pictures), range(50)
    )
    assert out.plan.grid.frame_rate.fraction == 25
    assert out.off() <= OFF


async def test_a_gif_moves_at_its_pace(charts: Charts, judge: Judge) -> None:
    palette = "split[a][b];[a]palettegen=stats_mode=full[p];[b][p]paletteuse=dither=none"
    out = await _whole_and_resumed(
        judge, charts.make("moving.gif", "-c:v", "gif", rate="20", numbers=range(40), pictures=palette), range(40)
    )
    assert out.plan.grid.frame_rate.fraction == 20 and out.off() <= OFF


async def test_reordered_pictures_come_out_in_order(charts: Charts, judge: Judge) -> None:
    pyramid = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "8", "-bf", "8", "-g", "60", "-refs", "6")
    deep = (*pyramid, "-x264-params", "b-pyramid=normal:b-adapt=0:open-gop=1:keyint=20:scenecut=0")
    await _whole_and_resumed(judge, charts.make("pyramid.mp4", *deep, numbers=range(72)), range(72))


@pytest.mark.parametrize("name", ["late.mkv", "late.ts", "late.mp4", "late.mov"])
async def test_a_start_that_is_not_zero_changes_nothing(charts: Charts, judge: Judge, name: str) -> None:
    source = charts.make("on_time.mp4", *X264_B, rate="30000/1001", numbers=range(90))
    late = charts.again(name, source, "-c", "copy", "-output_ts_offset", "13.724")
    await _whole_and_resumed(judge, late, range(90))


async def test_pictures_and_sound_that_start_apart_keep_every_picture(charts: Charts, judge: Judge) -> None:
    source = charts.make("on_time.mp4", *X264_B, rate="30000/1001", numbers=range(90))
    tone = ("-f", "lavfi", "-i", "sine=d=4")
    apart = charts.again(
        "apart.mkv",
        source,
        "-map",
        "1:v",
        "-map",
        "0:a",
        "-c:v",
        "copy",
        "-c:a",
        "aac",
        before=(*tone, "-itsoffset", "0.7"),
    )
    out = await _whole_and_resumed(judge, apart, range(90))
    assert float(out.facts.video.start_s) > 0.6


async def test_an_edit_list_hides_what_it_hides(charts: Charts, judge: Judge) -> None:
    source = charts.make("on_time.mp4", *X264_B, rate="30000/1001", numbers=range(90))
    # Copied from the middle: the group of pictures is there from its keyframe, the edit list skips to the cut.
    cut = charts.again("edited.mp4", source, "-c", "copy", before=("-ss", "0.701"))
    out = await judge(cut)
    shown = list(range(out.numbers[0] or 0, 90))
    assert shown[0] in (21, 22)
    await _whole_and_resumed(judge, cut, shown)


async def test_of_two_videos_the_default_one_comes_out_whole(charts: Charts, judge: Judge) -> None:
    """A seek in Matroska finds keyframes of the first one only; those of the second lie elsewhere."""
    wanted = charts.make("long_groups.mp4", *X264, "-g", "90", "-sc_threshold", "0", rate="30", numbers=range(90))
    other = charts.make("other_angle.mp4", *X264, "-g", "10", rate="30", numbers=[200] * 90, size=(160, 90))
    both = ("-i", str(other), "-map", "1:v", "-map", "0:v", "-disposition:v:0", "0", "-disposition:v:1", "default")
    source = charts.again("two_videos.mkv", wanted, *both, "-c", "copy")
    for first_segment in (0, 2):
        out = await judge(source, first_segment=first_segment)
        assert out.numbers == list(range(30 * first_segment, 90)) and out.off() <= OFF


async def test_a_cover_beside_the_video_is_not_the_video(charts: Charts, judge: Judge) -> None:
    source = charts.make("on_time.mp4", *X264_B, rate="30000/1001", numbers=range(90))
    cover = charts.make(
        "cover.jpg",
        "-c:v",
        "mjpeg",
        "-q:v",
        "2",
        "-f",
        "image2",
        numbers=[200],
        pictures=yuv("yuvj420p", full=True),
        size=(600, 600),
    )
    first = ("-map", "1:v", "-map", "0:v", "-disposition:v:0", "attached_pic", "-disposition:v:1", "default")
    covered = charts.again("covered.mp4", cover, *first, "-c", "copy", before=("-i", str(source)))
    out = await _whole_and_resumed(judge, covered, range(90))
    assert out.facts.video.codec == "h264"


async def test_timecode_and_data_streams_are_passed_over(charts: Charts, judge: Judge) -> None:
    source = charts.make("on_time.mp4", *X264_B, rate="30000/1001", numbers=range(90))
    coded = charts.again("timecode.mov", source, "-c", "copy", "-timecode", "01:00:00;00")
    await _whole_and_resumed(judge, coded, range(90))


async def test_2160p_comes_down_every_rung(charts: Charts, judge: Judge) -> None:
    rungs = tuple(Rung(name=f"{side}p", short_side=side, video_kbps=20_000, audio_kbps=96) for side in (2160, 90))
    source = charts.make("uhd.mp4", size=(3840, 2160), numbers=range(3))
    out = await judge(source, options=PlanOptions(ladder=rungs, segment_seconds=1, preset="ultrafast", crf=20))
    assert [(one.width, one.height) for one in out.plan.renditions] == [(3840, 2160), (160, 90)]
    assert out.numbers == [0, 1, 2] and out.corners == {chart.UPRIGHT} and out.off() <= OFF
