"""Steps that only answer: the workflow's own story, without ffmpeg. Names and types are those of the real ones."""

import asyncio
import contextlib
from typing import Any

from temporalio import activity
from temporalio.client import Client

from contracts.end_steps import (
    BrokenRendition,
    FailJob,
    Finalize,
    Publish,
    Published,
    RemovePartial,
    VerifiedRenditions,
    VerifyRenditions,
    WriteManifests,
)
from contracts.errors import (
    BuildMissing,
    Drained,
    EncoderCrashed,
    FailureKind,
    SourceUnreadable,
    StorageUnavailable,
    VlogError,
)
from contracts.ids import ObjectKey
from contracts.media import FrameRate, SourceFacts
from contracts.plan import IdleGpu, PlannedRendition, TranscodePlan
from contracts.queues import TaskQueue
from contracts.remux_steps import DropRemux, Remux
from contracts.renditions import SubtitleRendition, VideoRendition
from contracts.steps import (
    EncodeAudio,
    EncodedAudio,
    MadeStoryboard,
    MadeThumbnail,
    MakePlan,
    MakeStoryboard,
    MakeThumbnail,
    Probe,
    RemuxedSource,
    TranscodedSpan,
    TranscodeSpan,
)
from contracts.subtitle_steps import MadeSubtitles, MakeSubtitles
from media.continuing import continued
from media.pinning import pin_anew
from media.routing import descended, routed
from tests.replay import gpu_stories, outgrown_stories, paused_stories
from tests.replay.fake_plans import FACTS, LONG, PLAN, PLANS
from tests.support.media_facts import toolbox

# Stories in which the encoder is at work when a command comes.
HELD = (
    "paused",
    "paused lists",
    "cancelled while encoding",
    "cancelled in a pause",
    "cancelled while it drains",
    "cancelled while it crashes",
    "cancelled lists",
    "cancelled beside a broken disk",
    *paused_stories.SECOND_RUNS,
    *gpu_stories.HELD,
)


def whole(planned: PlannedRendition) -> VideoRendition:
    return VideoRendition(
        quality=planned.quality,
        prefix=f"videos/x/r1/{planned.quality}/",
        width=planned.width,
        height=planned.height,
        codec=planned.codec,
        codecs="avc1.640020",
        bitrate_kbps=planned.video_kbps,
        frame_rate=FrameRate(num=30),
        timescale=15360,
        frame_duration=512,
        segment_frames=180,
        frames=600,
        size_bytes=1_000_000,
        peak_bandwidth=1_000_000,
        average_bandwidth=900_000,
    )


class Busy(VlogError):
    code = "SCRATCH_FULL"
    kind = FailureKind.LATER
    retry_after_s = 0.05


class Without(BuildMissing):
    retry_after_s = 0.05


class FakeSteps:
    """What happens is chosen by the story's name."""

    def __init__(self, story: str = "success") -> None:
        self.story = story
        self.temporal: Client | None = None  # that it is told on
        self.calls: list[str] = []
        self.planning = asyncio.Event()
        self.encoding = asyncio.Event()
        self.verifying = asyncio.Event()
        self.publishing = asyncio.Event()
        self.stopping = asyncio.Event()
        self.paused = asyncio.Event()
        self.plans: list[MakePlan] = []
        self.runs: dict[str, str] = {}  # workflows of what was asked, by their runs, as they came
        self.priorities: list[int | None] = []
        self.published: list[Publish] = []
        self.held = self.sent_away = 0
        self.let_go = False  # of the steps that a story holds
        self.spans: list[TranscodeSpan] = []
        self.attempts: list[int] = []  # at them
        self.verified: list[VerifyRenditions] = []
        self.planned = PLANS.get(story, PLAN)
        self.gpus: tuple[IdleGpu, ...] = ()  # idle when the plan is made
        if story in gpu_stories.STORIES:
            self.planned, self.gpus = gpu_stories.planned(story, PLAN, LONG), (gpu_stories.GPU,)
        self.queues: list[str] = []  # of the spans, as they came
        self.ended: Finalize | FailJob | None = None

    @activity.defn
    async def probe(self, request: Probe) -> SourceFacts:
        self.calls.append("probe")
        if self.story in ("unreadable", "cancelled at the end"):
            raise SourceUnreadable("The file is cut off before its index.")
        return FACTS.model_copy(update={"wants_remux": self.story.startswith("remuxed")})

    @activity.defn
    async def remux(self, request: Remux) -> RemuxedSource:
        self.calls.append("remux")
        return RemuxedSource(source_key=ObjectKey("remuxed/1-1.mkv"), facts=FACTS)

    @activity.defn
    async def drop_remux(self, request: DropRemux) -> None:
        self.calls.append(f"drop {request.source_key}")

    @activity.defn
    async def plan(self, request: MakePlan) -> TranscodePlan:
        self.calls.append(request.step_key)
        self.plans.append(request)
        self._note_run()
        if self.story == "cancelled":
            self.planning.set()
            await asyncio.sleep(0.5)  # it never hears of the cancel, and answers as if nothing had happened
        before = request.continues
        if request.again and before is not None:
            if request.routes:
                return routed(before, self.gpus, request.routes, request.begun)
            lost = request.descends
            anew = (*request.anew, lost.name) if lost else request.anew
            return descended(before, pin_anew(before, request.facts, toolbox(), request.pending, anew), lost)
        plan = continued(self.planned, request, frozenset({"test"}), self.gpus)
        plan = outgrown_stories.cut_anew(self.story, plan, self.calls.count("plan"))
        begun = plan.goes_on_with(before) if request.same_output else ()
        return routed(plan, self.gpus, [r.quality for r in plan.renditions if not r.is_alternative], begun)

    @activity.defn
    async def thumbnail(self, request: MakeThumbnail) -> MadeThumbnail:
        self.calls.append("thumbnail")
        return MadeThumbnail(key=ObjectKey("videos/x/thumbnail.jpg"), at_s=2)

    @activity.defn
    async def storyboard(self, request: MakeStoryboard) -> MadeStoryboard:
        self.calls.append("storyboard")
        if self.story == "no storyboard":
            raise SourceUnreadable("No keyframe could be read.")
        return MadeStoryboard(sheets=1, tiles=20, interval_s=1)

    @activity.defn
    async def encode_audio(self, request: EncodeAudio) -> EncodedAudio:
        self.calls.append("audio")
        if request.ffmpeg == "8.1-gone":
            raise Without("This worker does not have that ffmpeg.")
        self._find_room(request)
        if outgrown_stories.stops_slowly(self.story, request, self.calls.count("plan")):
            await self._stop_slowly()
        if self.story.endswith("partial") and request.audio.track == 1:
            raise SourceUnreadable("The second sound track is damaged.")
        return EncodedAudio(
            track=request.audio.track, prefix=request.prefix, segments=4, segment_durations=((288768, 3), (95232, 1))
        )

    @activity.defn
    async def make_subtitles(self, request: MakeSubtitles) -> MadeSubtitles:
        self.calls.append("subtitles")
        if self.story == "no subtitles":
            raise SourceUnreadable("The text could not be read.")
        text = SubtitleRendition(
            track=0, prefix="p/", language="und", name="S", default=False, forced=False, cues=1, size_bytes=9
        )
        return MadeSubtitles(tracks=(text,), notes=("Something was left out.",))

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        self.calls.append(f"transcode~{request.generation}")
        self.priorities.append(activity.info().priority.priority_key)
        self.spans.append(request)
        self.attempts.append(activity.info().attempt)
        self._note_run()
        self.queues.append(activity.info().task_queue)
        await gpu_stories.happen(self.story, request, lambda: self.ended is not None)
        if request.ffmpeg == "8.1-gone":
            raise Without("This worker does not have that ffmpeg.")
        if self.story == "split" and len(request.renditions) > 1 and request.span.first_segment == 0:
            raise EncoderCrashed("ffmpeg crashed on one of them.")
        if self.story == "drained" and request.generation == 0:
            raise Drained("The worker was stopped.")
        if self.story == "later" and request.generation == 0:
            raise Busy("The scratch disk is full.")
        if self.story == "later" and request.generation == 1:
            raise Drained("The worker was stopped.")
        if self.story == "moved lists" and request.step_qualities == ("360p",) and request.span.first_segment == 0:
            self._drain_and_lack(request.generation)
        outgrown_stories.wear_out(self.story, request, self.calls.count("plan"))
        paused_stories.wear_out(self.story, request)
        self._find_room(request)
        if outgrown_stories.stops_slowly(self.story, request, self.calls.count("plan")):
            await self._stop_slowly()
        if self.story == "worn out" and activity.info().attempt == 1:
            raise RuntimeError("once in each generation")
        if self.story == "worn out" and request.generation == 0:
            raise Drained("The worker was stopped.")
        if self.story.endswith("exhausted"):
            raise RuntimeError("the machine is on fire")
        if self.story == "retried" and activity.info().attempt == 1:
            raise RuntimeError("once")
        if self.story.endswith("partial") and "720p" in request.step_qualities:
            raise EncoderCrashed("ffmpeg crashed on 720p.")
        elsewhere = self.story in gpu_stories.HELD and activity.info().task_queue != TaskQueue.GPU
        if self.story in HELD and not self.let_go and not elsewhere:
            self.held += 1
            self.encoding.set()
            try:
                await self._hold()
            except asyncio.CancelledError:
                if self.story == "cancelled while it drains":
                    raise Drained("The worker was stopped.") from None
                if self.story == "cancelled while it crashes":
                    raise RuntimeError("the machine is on fire") from None
                raise
        return TranscodedSpan(segments=request.span.segments)

    def _drain_and_lack(self, generation: int) -> None:
        """Fail once, come to workers that stop, then to as many without the ffmpeg as make it move; all others do."""
        if generation == 0 and activity.info().attempt == 1:
            raise RuntimeError("once")
        if generation < 2:
            raise Drained("The worker was stopped.")
        if self.calls.count("plan:again") == 0:
            raise Without("This worker does not have that ffmpeg.")

    async def _hold(self) -> None:
        """Encode for ever, until somebody takes the step back."""
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.05)

    def _note_run(self) -> None:
        info = activity.info()
        self.runs[info.workflow_run_id or ""] = info.workflow_id or ""

    def _find_room(self, request: EncodeAudio | TranscodeSpan) -> None:
        full = outgrown_stories.is_full(self.story, request, self.calls.count("plan"), self.sent_away)
        if full and not self.let_go:
            self.sent_away += isinstance(request, TranscodeSpan)
            if self.story == outgrown_stories.DRAINED:
                raise Drained("The worker was stopped.")
            raise Busy("The scratch disk is full.")

    async def _stop_slowly(self) -> None:
        """Hear of the cancel, and end only when there is a pause as well."""
        try:
            await self._hold()
        except asyncio.CancelledError:
            self.stopping.set()
            await self.paused.wait()
            raise

    @activity.defn
    async def verify(self, request: VerifyRenditions) -> VerifiedRenditions:
        self.calls.append(request.step_key)
        self.verified.append(request)
        if self.story == "paused at the end":
            self.verifying.set()
            while not self.paused.is_set():
                activity.heartbeat()
                with contextlib.suppress(asyncio.CancelledError):  # it answers as if there were no pause
                    await asyncio.sleep(0.05)
        broken = {"anew": "720p", "broken": "360p", "a rung stays broken": "720p"}.get(self.story)
        if self.story == "anew" and request.again:
            broken = None
        return VerifiedRenditions(
            video=tuple(whole(r) for r in request.plan.renditions if r.quality != broken),
            broken=(BrokenRendition(quality=broken, sentence=f"{broken} is not whole."),) if broken else (),
        )

    @activity.defn
    async def write_manifests(self, request: WriteManifests) -> None:
        self.calls.append("manifests")

    @activity.defn
    async def publish(self, request: Publish) -> Published:
        self.calls.append("publish")
        self.published.append(request)
        if self.story == "cancelled while publishing":
            self.publishing.set()
            while not self.let_go:
                await asyncio.sleep(0.05)
        return Published(master_key=ObjectKey("m"), mpd_key=ObjectKey("d"))

    @activity.defn
    async def finalize(self, request: Finalize) -> None:
        self.calls.append("finalize")
        self.ended = request

    @activity.defn
    async def remove_partial(self, request: RemovePartial) -> None:
        self.calls.append("remove")
        if self.story == "cancelled beside a broken disk":
            raise StorageUnavailable("The disk does not answer.")

    @activity.defn
    async def fail_job(self, request: FailJob) -> None:
        self.calls.append("fail")
        if self.story == "cancelled at the end" and activity.info().attempt < 4:
            self.planning.set()
            raise RuntimeError("Postgres is away")
        self.ended = request

    def numbers_are_used_once(self) -> bool:
        """Tell whether no attempt would be taken for another, older one by the mirror."""
        tried = {(span.step_key, span.generation, n) for span, n in zip(self.spans, self.attempts, strict=True)}
        return len(tried) == len(self.spans)

    def by_queue(self) -> dict[str, list[Any]]:
        return {
            "vlog-orchestrate": [self.publish, self.remove_partial, self.finalize, self.fail_job],
            "vlog-io": [
                *(self.remux, self.drop_remux, self.plan),
                *(self.make_subtitles, self.verify, self.write_manifests),
            ],
            "vlog-probe": [self.probe],
            "vlog-cpu": [self.transcode_span, self.encode_audio, self.thumbnail, self.storyboard],
            **({} if self.story == gpu_stories.SILENT else {"vlog-gpu": [self.transcode_span]}),
        }
