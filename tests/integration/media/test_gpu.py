"""A GPU is found by encoding, and a step on it makes what the CPU makes: the same pictures on the same grid.

There is no GPU here. A software encoder stands in for one, and scripts in front of ffmpeg for devices that fail.
"""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.transcode import TranscodeSteps
from contracts.errors import GpuBusy, GpuFailed, OutputIncomplete, SourceUnreadable, VlogError
from contracts.ids import ObjectKey
from contracts.layout import INIT, rendition_prefix
from contracts.plan import Rung
from contracts.states import Codec
from contracts.steps import TranscodedSpan, TranscodeSpan
from media.gpu import Gpu, UnknownEncoder, detect
from media.planning import PlanOptions
from media.tools import Toolbox
from storage.local import LocalStore
from tests.support.clips import Clips, decoded_frames
from tests.support.encoding import Work, checked, prepare
from tests.support.wrapping import as_nvenc, wrapped

KEY = ObjectKey("uploads/1")
NO_CUDA = "[h264_nvenc @ 0x56] Cannot load libcuda.so.1"
NO_SESSION = "[h264_nvenc @ 0x56] OpenEncodeSessionEx failed: out of memory (10): (no details)"
NO_SURFACES = "[h264 @ 0x1e8] No decoder surfaces left"
NO_B_FRAMES = "[h264_nvenc @ 0x56] Max B-frames 2 exceed 0"


def refusing(said: str, word: str = "_nvenc") -> str:
    return f"""case " $* " in *"{word}"*) echo '{said}' >&2; exit 187 ;; esac\n"""


@pytest.fixture(scope="module")
def stand_in(tools: Toolbox) -> Gpu:
    return asyncio.run(detect(tools, wanted=("libx264",)))


def routed(work: Work, encoder: str = "libx264") -> TranscodeSpan:
    """Ask for the smallest rendition as routing does."""
    span = work.span([work.plan.renditions[-1].quality])
    (one,) = span.renditions
    changed = one.model_copy(update={"gpu": True, "encoder": encoder, "ffmpeg": ""})
    return span.model_copy(update={"renditions": (changed,), "ffmpeg": ""})


async def encoded(work: Work, root: Path, request: TranscodeSpan, gpu: Gpu, *, stall_s: float = 30) -> Path:
    """Run the step and name the folder of its rendition."""
    await transcoded(work, root, request, gpu, stall_s=stall_s)
    return root / rendition_prefix("clip", "r1", request.renditions[0].quality, 0)


async def transcoded(
    work: Work, root: Path, request: TranscodeSpan, gpu: Gpu, *, stall_s: float = 30
) -> TranscodedSpan:
    store = LocalStore(root)
    await store.put_file(KEY, work.source)
    steps = TranscodeSteps(store, work.tools, stall_s=stall_s, gpu=gpu)
    done = await ActivityEnvironment().run(steps.transcode_span, request)
    assert isinstance(done, TranscodedSpan)
    return done


def without_segments(folder: Path) -> None:
    for segment in folder.glob("seg_*"):
        segment.unlink()


async def test_no_gpu_here_is_found_out_fast_and_each_family_is_named(tools: Toolbox) -> None:
    begun = time.monotonic()
    found = await detect(tools)
    took_s = time.monotonic() - begun
    if found:
        pytest.skip("a GPU encodes on this machine")
    assert took_s < 10
    assert not found.names and found.sessions == 0
    tried = " ".join(str(attempt) for attempt in found.attempts)
    assert all(f"h264_{family}" in tried for family in ("nvenc", "qsv", "vaapi")), "in order, each with its answer"


async def test_an_encoder_that_is_named_is_tried_by_encoding_with_it(tools: Toolbox) -> None:
    found = await detect(tools, wanted=("libx264", "libx265"))
    assert found.names == {"h264": "libx264", "hevc": "libx265"} and not found.attempts
    assert found.shown()["sessions"] == 1 and found.shown()["decode"] == []


async def test_a_name_that_nobody_knows_is_a_mistake_to_be_told(tools: Toolbox) -> None:
    with pytest.raises(UnknownEncoder, match="h264_nvdec is not known here; h264_nvenc, h264_qsv"):
        await detect(tools, wanted=("h264_nvdec",))


async def test_a_span_on_the_gpu_has_pictures_and_keyframes_where_the_grid_wants_them(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, stand_in: Gpu
) -> None:
    work = await prepare(tools, clips.get("ntsc.mp4"), options)
    made = await encoded(work, tmp_path, routed(work), stand_in)
    segments = checked(work, made)
    assert [one.sync_samples for one in segments] == [(0,)] * work.plan.grid.segments and len(segments) > 2
    assert decoded_frames(tools, made / INIT, *sorted(made.glob("seg_*"))) == work.plan.grid.frames


async def test_what_one_of_gpu_and_cpu_began_the_other_does_not_go_on_with(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, stand_in: Gpu
) -> None:
    work = await prepare(tools, clips.get("short.mp4"), options)
    on_cpu = work.span([work.plan.renditions[-1].quality])
    made = await encoded(work, tmp_path / "gpu", routed(work), stand_in)
    without_segments(made)
    with pytest.raises(OutputIncomplete, match="init segment differs"):
        await encoded(work, tmp_path / "gpu", on_cpu, Gpu())
    made = await encoded(work, tmp_path / "cpu", on_cpu, Gpu())
    without_segments(made)
    with pytest.raises(GpuFailed, match="init segment differs"):
        await encoded(work, tmp_path / "cpu", routed(work), stand_in)


async def test_a_device_that_cannot_be_reached_is_asked_once_and_its_answer_is_told(
    tools: Toolbox, tmp_path: Path
) -> None:
    count = f"""case " $* " in *_nvenc*) echo x >>'{tmp_path}/asked' ;; esac\n"""
    script = f'{count}{refusing(NO_CUDA)}exec "$real" "$@"'
    card = wrapped(tools.pick(), tmp_path / "none", script, "h264_nvenc", "hevc_nvenc")
    found = await detect(Toolbox((card,)))
    answers = [str(attempt) for attempt in found.attempts]
    assert not found and answers[0] == f"h264_nvenc with ffmpeg {card.build}: {NO_CUDA}"
    assert (tmp_path / "asked").read_text() == "x\n", "what is not there for H.264 is not there for HEVC"


async def test_a_card_without_b_frames_is_told_so_and_then_encodes(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    card = as_nvenc(tools.pick(), tmp_path / "old", refusing(NO_B_FRAMES, " -bf 2 "))
    found = await detect(Toolbox((card,)))
    assert found.names == {"h264": "h264_nvenc"} and found.sessions == 3
    assert [(one.way, one.decodes) for one in found.encoders] == [(1, frozenset())], "no scale_cuda, no decoding there"
    work = await prepare(tools, clips.get("short.mp4"), options)
    checked(work, await encoded(work, tmp_path, routed(work, "h264_nvenc"), found))


async def test_what_a_card_decodes_stays_there_and_what_it_cannot_after_all_the_cpu_decodes_for_it(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    log = tmp_path / "log"
    card = as_nvenc(tools.pick(), tmp_path / "card", f"echo \"$*\" >>'{log}'\n", decodes=True)
    found = await detect(Toolbox((card,)))
    assert found.shown()["decode"] == ["h264"] and found.shown()["scale"]
    source = tmp_path / "tagged.mp4"
    tags = ["-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709"]
    clips.ffmpeg("-i", clips.get("land.mp4"), "-an", "-c:v", "libx264", "-preset", "ultrafast", *tags, source)
    work = await prepare(tools, source, options)
    log.write_text("")
    made = await encoded(work, tmp_path / "there", routed(work, "h264_nvenc"), found)
    there = checked(work, made)
    assert [("-hwaccel cuda" in line, "scale_cuda=" in line) for line in log.read_text().splitlines()] == [(True, True)]

    failing = as_nvenc(tools.pick(), tmp_path / "failing", refusing(NO_SURFACES, "-hwaccel"), decodes=True)
    gpu = Gpu((replace(found.encoders[0], tool=failing),))
    fed = await encoded(work, tmp_path / "fed", routed(work, "h264_nvenc"), gpu)
    assert [one.samples for one in checked(work, fed)] == [one.samples for one in there]
    assert (fed / INIT).read_bytes() == (made / INIT).read_bytes()

    # It decodes a second, of which a second more is made, and then no more: the CPU goes on, and both are counted.
    midway = (
        f"""case "$inner $*" in " "*-hwaccel*) inner=yes "$0" -t 1 "$@"; echo '{NO_SURFACES}' >&2; exit 187 ;; esac\n"""
    )
    tired = as_nvenc(tools.pick(), tmp_path / "tired", f"export inner\n{midway}", decodes=True)
    gpu = Gpu((replace(found.encoders[0], tool=tired),))
    done = await transcoded(work, tmp_path / "both", routed(work, "h264_nvenc"), gpu)
    assert (done.segments, done.encoded_frames) == (3, 90)


async def test_a_card_that_sets_keyframes_where_it_likes_is_not_taken(tools: Toolbox, tmp_path: Path) -> None:
    card = as_nvenc(tools.pick(), tmp_path / "lying", "keys=no\n")
    found = await detect(Toolbox((card,)))
    assert not found and "Segment 0 has 40 pictures instead of 16" in str(found.attempts[0])


async def test_an_ffmpeg_that_hangs_in_detection_is_killed_with_all_it_started(tools: Toolbox, tmp_path: Path) -> None:
    hang = f"""case " $* " in *_nvenc*) sleep 300 & echo $! $$ >>'{tmp_path}/pids'; wait ;; esac\nexec "$real" "$@" """
    card = wrapped(tools.pick(), tmp_path / "stuck", hang, "h264_nvenc", "hevc_nvenc")
    found = await detect(Toolbox((card,)), trial_s=3)
    assert not found and "longer than the 3 seconds" in str(found.attempts[0])
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2, "a device that hangs is asked once"
    assert not any(_runs(int(pid)) for pid in pids)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        (refusing(NO_CUDA, "libx264"), GpuFailed, "cannot be reached"),
        (refusing(NO_SESSION, "libx264"), GpuBusy, "session"),
        ("kill -11 $$", GpuFailed, "signal 11"),
        ("echo 'Unrecognized option nope' >&2; exit 8", GpuFailed, "refused the command"),
        ("exit 0", GpuFailed, "ended after 0 of"),
        ("exec sleep 300", GpuFailed, "no progress"),
    ],
)
async def test_a_gpu_that_fails_a_step_says_that_it_was_the_gpu(
    tools: Toolbox,
    clips: Clips,
    tmp_path: Path,
    options: PlanOptions,
    stand_in: Gpu,
    script: str,
    error: type[VlogError],
    said: str,
) -> None:
    work = await prepare(tools, clips.get("short.mp4"), options)
    broken = wrapped(tools.pick(), tmp_path / "broken", script)
    gpu = Gpu((replace(stand_in.encoders[0], tool=broken),))
    with pytest.raises(error, match=said):
        await encoded(work, tmp_path, routed(work), gpu, stall_s=1)


async def test_a_source_that_cannot_be_decoded_is_not_the_gpus_fault(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, stand_in: Gpu
) -> None:
    work = await prepare(tools, clips.get("short.mp4"), options)
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(work.source.read_bytes().replace(b"moov", b"voom"))
    with pytest.raises(SourceUnreadable):
        await encoded(replace(work, source=damaged), tmp_path, routed(work), stand_in)


async def test_a_rendition_for_another_kind_of_gpu_goes_back(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, stand_in: Gpu
) -> None:
    work = await prepare(tools, clips.get("short.mp4"), options)
    with pytest.raises(GpuFailed, match="no encoder h264_vaapi"):
        await encoded(work, tmp_path, routed(work, "h264_vaapi"), stand_in)


@pytest.mark.parametrize(("codec", "encoder"), [(Codec.HEVC, "libx265"), (Codec.AV1, "libsvtav1")])
async def test_a_stand_in_of_any_codec_has_a_header_of_its_own(
    tools: Toolbox, clips: Clips, tmp_path: Path, codec: Codec, encoder: str
) -> None:
    rung = Rung(name="144p", short_side=144, video_kbps=200, audio_kbps=64)
    wanted = PlanOptions(ladder=(rung,), segment_seconds=1, preset="ultrafast", codecs=(Codec.H264, codec))
    work = await prepare(tools, clips.get("short.mp4"), wanted)
    found = await detect(tools, wanted=(encoder,))
    by_gpu = await encoded(work, tmp_path / "gpu", routed(work, encoder), found)
    by_cpu = await encoded(work, tmp_path / "cpu", work.span([f"144p-{codec}"]), Gpu())
    checked(work, by_gpu)
    assert (by_gpu / INIT).read_bytes() != (by_cpu / INIT).read_bytes()
