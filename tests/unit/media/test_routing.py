"""Which renditions an idle GPU is given, and what becomes of them when it does not make them."""

import pytest

from activities.planning import PlanSteps
from contracts.ids import JobId
from contracts.media import FrameRate
from contracts.plan import Capacity, Grid, IdleGpu, PlannedRendition, Span, TranscodePlan
from contracts.states import Codec
from contracts.steps import MakePlan, MissingRendition
from media.continuing import continued
from media.pinning import pin_anew
from media.planning import PlanOptions
from media.routing import descended, routed
from tests.support.media_facts import source, tool, toolbox

H264 = {Codec.H264: "h264_nvenc"}
BOTH = {Codec.H264: "h264_nvenc", Codec.HEVC: "hevc_nvenc"}


def rung(side: int, codec: Codec = Codec.H264, **given: object) -> PlannedRendition:
    name = f"{side}p" if codec is Codec.H264 else f"{side}p-{codec}"
    plain = {"quality": name, "width": side * 16 // 9, "height": side, "video_kbps": side, "codec": codec}
    return PlannedRendition.model_validate({**plain, "ffmpeg": "8.1-first", **given})


def plan(*renditions: PlannedRendition) -> TranscodePlan:
    grid = Grid(frame_rate=FrameRate(num=30), frames=600, segment_frames=180)
    return TranscodePlan(grid=grid, renditions=renditions, spans=(Span(first_segment=0, segments=4),))


LADDER = plan(rung(1080), rung(720), rung(480), rung(360))


def gpus_of(made: TranscodePlan) -> dict[str, str]:
    return {r.quality: r.encoder for r in made.renditions if r.gpu}


@pytest.mark.parametrize(
    ("slots", "given"),
    [((), []), ((1,), ["1080p"]), ((1, 1), ["1080p", "720p"]), ((9,), ["1080p", "720p", "480p"])],
)
def test_each_free_slot_gets_the_largest_that_is_left_and_never_the_one_that_begins_to_play(
    slots: tuple[int, ...], given: list[str]
) -> None:
    made = routed(LADDER, [IdleGpu(slots=n, encoders=H264) for n in slots], [r.quality for r in LADDER.renditions])
    assert list(gpus_of(made)) == given
    assert all(r.ffmpeg == "" for r in made.renditions if r.gpu)
    assert [r.quality for r in made.renditions] == [r.quality for r in LADDER.renditions]


def test_a_video_of_one_rung_goes_to_the_gpu() -> None:
    assert gpus_of(routed(plan(rung(360)), [IdleGpu(slots=1, encoders=H264)], ["360p"])) == {"360p": "h264_nvenc"}


def test_a_codec_goes_only_where_it_can_be_encoded() -> None:
    both = plan(rung(720), rung(360), rung(720, Codec.HEVC), rung(360, Codec.HEVC))
    others = ["720p-hevc", "360p-hevc"]
    assert gpus_of(routed(both, [IdleGpu(slots=2, encoders=H264)], others)) == {}
    # The one that can do less is taken first, so that the other is left for what only it can do.
    gpus = [IdleGpu(slots=1, encoders=BOTH), IdleGpu(slots=1, encoders=H264)]
    assert gpus_of(routed(both, gpus, ["720p", *others])) == {"720p": "h264_nvenc", "720p-hevc": "hevc_nvenc"}


def test_what_a_gpu_does_not_make_is_the_cpus_from_its_start_and_says_why() -> None:
    before = routed(LADDER, [IdleGpu(slots=2, encoders=H264)], ["1080p", "720p"])
    lost = MissingRendition(name="1080p", code="GPU_FAILED", sentence="The device is gone.")
    made = descended(before, pin_anew(before, source(), toolbox(), (), ("1080p",)), lost)
    fell, stays = made.renditions[0], made.renditions[1]
    assert (fell.gpu, fell.encoder, fell.ffmpeg, fell.generation) == (False, "libx264", "8.1-first", 1)
    assert fell.descended == "The device is gone." and "The device is gone." in made.notes[-1]
    assert stays.gpu and not any("is gone; another begins" in note for note in made.notes)
    # Said once: a later plan does not say it again.
    again = descended(made, pin_anew(made, source(), toolbox(), (), ("720p",)), None)
    assert [r.descended for r in again.renditions] == ["The device is gone.", "What the GPU made is not whole.", "", ""]


def test_a_codec_that_only_the_gpu_could_make_stays_its_own() -> None:
    """So the workflow can tell that nobody else makes it."""
    before = routed(plan(rung(360), rung(360, Codec.HEVC)), [IdleGpu(slots=1, encoders=BOTH)], ["360p-hevc"])
    made = pin_anew(before, source(), toolbox(), (), ("360p-hevc",))
    assert made.renditions[1] == before.renditions[1]
    able = toolbox(tool(encoders=frozenset({"libx264", "libx265", "aac", "mjpeg"})))
    fell = pin_anew(before, source(), able, (), ("360p-hevc",)).renditions[1]
    assert (fell.gpu, fell.encoder, fell.generation) == (False, "libx265", 1)


@pytest.mark.parametrize(
    ("gpus", "gpu", "generation"),
    [
        ([IdleGpu(slots=1, encoders=H264)], True, 0),
        ([IdleGpu(slots=1, encoders={Codec.H264: "h264_qsv"})], False, 1),
        ([], False, 1),
    ],
)
def test_a_retry_goes_on_with_what_a_gpu_began_only_on_such_a_gpu(
    gpus: list[IdleGpu], gpu: bool, generation: int
) -> None:
    before = routed(LADDER, [IdleGpu(slots=1, encoders=H264)], ["1080p"])
    request = MakePlan(job_id=1, video_id=1, facts=source(), continues=before, same_output=True)
    made = continued(LADDER, request, frozenset({"8.1-first"}), gpus)
    kept = routed(made, gpus, [r.quality for r in made.renditions], made.goes_on_with(before))
    assert (kept.renditions[0].gpu, kept.renditions[0].generation) == (gpu, generation)
    # The CPU's own are not given away: segments of them are stored.
    assert [r.gpu for r in kept.renditions[1:]] == [False, False, False]


@pytest.mark.parametrize(("raised", "given"), [(False, {}), (True, {"360p-hevc": "hevc_nvenc"})])
async def test_what_a_cpu_began_stays_there_when_its_turn_comes_unless_it_starts_anew(
    raised: bool, given: dict[str, str]
) -> None:
    """A codec beside H.264 is routed after the others, by a plan that no longer says what an earlier job began."""

    async def capacity(job_id: JobId) -> Capacity:
        return Capacity(workers=1, slots=1)

    async def gpus(but: JobId) -> tuple[IdleGpu, ...]:
        return (IdleGpu(slots=1, encoders=BOTH),)

    steps = PlanSteps(toolbox(), PlanOptions(), capacity, gpus=gpus)
    before = plan(rung(360), rung(360, Codec.HEVC))
    now = plan(rung(360), rung(360, Codec.HEVC, generation=int(raised)))
    begun = now.goes_on_with(before)
    assert begun == (("360p",) if raised else ("360p", "360p-hevc"))
    request = MakePlan(job_id=1, video_id=1, facts=source(), continues=now, routes=("360p-hevc",), begun=begun, again=1)
    assert gpus_of(await steps.plan(request)) == given
