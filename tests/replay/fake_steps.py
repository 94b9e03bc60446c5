"""Steps that only answer: the workflow's own story, without ffmpeg. Names and types are those of the real ones."""

import asyncio
from typing import Any

from temporalio import activity

from contracts.errors import Drained, EncoderCrashed, FailureKind, SourceUnreadable, VlogError
from contracts.ids import ObjectKey
from contracts.media import (
    AudioFacts,
    FrameRate,
    Grid,
    PlannedAudio,
    PlannedRendition,
    SourceFacts,
    Span,
    TranscodePlan,
    VideoFacts,
)
from contracts.steps import (
    BrokenRendition,
    EncodeAudio,
    EncodedAudio,
    FailJob,
    Finalize,
    MadeStoryboard,
    MadeThumbnail,
    MakePlan,
    MakeStoryboard,
    MakeThumbnail,
    Probe,
    Publish,
    Published,
    TranscodedSpan,
    TranscodeSpan,
    VerifiedRenditions,
    VerifyRenditions,
    WriteManifests,
)

FACTS = SourceFacts(
    format_name="mov,mp4",
    size_bytes=1_000_000,
    duration_s=20,
    video=VideoFacts(
        stream=0,
        codec="h264",
        width=1280,
        height=720,
        display_width=1280,
        display_height=720,
        frame_rate=FrameRate(num=30),
        average_rate=FrameRate(num=30),
        packets=600,
        end_s=20,
    ),
    audio=(AudioFacts(stream=1, codec="aac", channels=2, sample_rate=48000, duration_s=20),),
)

PLAN = TranscodePlan(
    grid=Grid(frame_rate=FrameRate(num=30), frames=600, segment_frames=180),
    renditions=(
        PlannedRendition(quality="720p", width=1280, height=720, video_kbps=2500),
        PlannedRendition(quality="360p", width=640, height=360, video_kbps=600),
    ),
    skipped=("1080p",),
    audio=(PlannedAudio(track=0, stream=1, kbps=128, default=True),),
    spans=(Span(first_segment=0, segments=4),),
    ffmpeg="test",
)


class Busy(VlogError):
    code = "SCRATCH_FULL"
    kind = FailureKind.LATER
    retry_after_s = 0.05


class FakeSteps:
    """What happens is chosen by the story's name."""

    def __init__(self, story: str = "success") -> None:
        self.story = story
        self.calls: list[str] = []
        self.planning = asyncio.Event()
        self.spans: list[TranscodeSpan] = []
        self.planned = PLAN
        self.ended: Finalize | FailJob | None = None

    @activity.defn
    async def probe(self, request: Probe) -> SourceFacts:
        self.calls.append("probe")
        if self.story in ("unreadable", "cancelled at the end"):
            raise SourceUnreadable("The file is cut off before its index.")
        return FACTS

    @activity.defn
    async def plan(self, request: MakePlan) -> TranscodePlan:
        self.calls.append("plan")
        if self.story == "cancelled":
            self.planning.set()
            await asyncio.sleep(0.5)  # it never hears of the cancel, and answers as if nothing had happened
        return self.planned

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
        return EncodedAudio(track=0, prefix=request.prefix, segments=4, segment_durations=((288768, 3), (95232, 1)))

    @activity.defn
    async def transcode_span(self, request: TranscodeSpan) -> TranscodedSpan:
        self.calls.append(f"transcode~{request.generation}")
        self.spans.append(request)
        if self.story == "split" and len(request.renditions) > 1 and request.span.first_segment == 0:
            raise EncoderCrashed("ffmpeg crashed on one of them.")
        if self.story == "drained" and request.generation == 0:
            raise Drained("The worker was stopped.")
        if self.story == "later" and request.generation == 0:
            raise Busy("The scratch disk is full.")
        if self.story == "later" and request.generation == 1:
            raise Drained("The worker was stopped.")
        if self.story == "worn out" and activity.info().attempt == 1:
            raise RuntimeError("once in each generation")
        if self.story == "worn out" and request.generation == 0:
            raise Drained("The worker was stopped.")
        if self.story == "exhausted":
            raise RuntimeError("the machine is on fire")
        if self.story == "retried" and activity.info().attempt == 1:
            raise RuntimeError("once")
        return TranscodedSpan(segments=request.span.segments)

    @activity.defn
    async def verify(self, request: VerifyRenditions) -> VerifiedRenditions:
        self.calls.append(request.step_key)
        if self.story in ("anew", "broken") and (self.story == "broken" or not request.again):
            return VerifiedRenditions(
                video=(), broken=(BrokenRendition(quality="720p", sentence="720p is not whole."),)
            )
        return VerifiedRenditions(video=())

    @activity.defn
    async def write_manifests(self, request: WriteManifests) -> None:
        self.calls.append("manifests")

    @activity.defn
    async def publish(self, request: Publish) -> Published:
        self.calls.append("publish")
        return Published(master_key=ObjectKey("m"), mpd_key=ObjectKey("d"))

    @activity.defn
    async def finalize(self, request: Finalize) -> None:
        self.calls.append("finalize")
        self.ended = request

    @activity.defn
    async def fail_job(self, request: FailJob) -> None:
        self.calls.append("fail")
        if self.story == "cancelled at the end" and activity.info().attempt < 4:
            self.planning.set()
            raise RuntimeError("Postgres is away")
        self.ended = request

    def by_queue(self) -> dict[str, list[Any]]:
        return {
            "vlog-orchestrate": [self.publish, self.finalize, self.fail_job],
            "vlog-io": [self.probe, self.plan, self.verify, self.write_manifests],
            "vlog-cpu": [self.transcode_span, self.encode_audio, self.thumbnail, self.storyboard],
        }
