"""Requests and results of every step, and of the workflow that orders them.

A step's request names its job, its key and its generation: with Temporal's attempt that is the fence
which keeps a zombie from overwriting a newer try.
"""

from typing import ClassVar

from pydantic import Field

from contracts.errors import FailureKind
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.media import SourceFacts, VideoFacts
from contracts.message import Message
from contracts.plan import Encoding, Grid, PlannedAudio, PlannedRendition, Span, TranscodePlan
from contracts.renditions import SegmentRuns
from contracts.states import JobKind, StepName, Tier


class RemuxedSource(Message):
    source_key: ObjectKey  # what later steps read: the copy, or the source itself where no copy could be made
    facts: SourceFacts


class StepFailure(Message):
    """Why an attempt failed: travels as the detail of Temporal's ApplicationError."""

    code: str
    kind: FailureKind
    sentence: str
    detail: str = ""  # the tail of stderr
    retry_after_s: float = 0.0  # for `later`
    attempt: int = 1  # Temporal's, within the generation that failed


class Tried(Message):
    """What a piece of unfinished work has used in the runs that this one goes on from."""

    work: str  # a name of `StepRequest.work`
    used: int  # real tries
    span: Span | None = None  # of a rendition: the segments that it is about; none: all
    failure: StepFailure | None = None  # it was given up: the video does without it


class TranscodeRequest(Message):
    """Ask for one job of one video: the workflow's input."""

    video_id: VideoId
    job_id: JobId
    slug: str
    source_key: ObjectKey
    source_size_bytes: int = 0
    output: str = "r1"  # folder of this job's renditions: r1, r2, …
    qualities: tuple[str, ...] = ()  # empty: the whole ladder
    owner: str = ""
    tier: Tier = Tier.FREE
    max_attempts: int = 3
    heartbeat_timeout_s: float = 30.0  # how long a silent worker keeps a step
    kind: JobKind = JobKind.UPLOAD
    # The plan of the job that this one continues. Its grid, encoders, build and, in the same output, generations
    # are kept to, so that what is stored fits; the plan step cuts spans anew for the workers that are there now.
    plan: TranscodePlan | None = None
    # Renditions that exist and stay as they are: qualities, and sound as `audio_0`. They are neither made nor
    # removed, and stay in the manifests. What is published and not named here is replaced, or no longer listed.
    keep: tuple[str, ...] = ()
    # What the job cannot do without (VLOG_CRITICAL_QUALITIES; `audio` is the default track). Empty: the lowest
    # rung and the default sound; of a retranscode, which replaces a whole stream, every rung.
    critical: tuple[str, ...] = ()
    # Above 0 when Temporal has forgotten an earlier run of this job: its attempts stay older than every new one.
    first_generation: int = 0
    resumes: bool = False  # `plan` is this job's own, from that earlier run
    # Of a run that goes on from another: what had been said, the copy of the source, which is there already, and what
    # its unfinished work has used.
    paused: bool = False
    copied: RemuxedSource | None = None
    tried: tuple[Tried, ...] = ()

    @property
    def same_output(self) -> bool:
        """Tell whether what `plan` has begun is gone on with, in the same folders."""
        return self.resumes or self.kind is JobKind.RETRY


class MissingRendition(Message):
    """What a ready video does without, and why; a retry can make just that."""

    name: str  # a quality, or a sound track as `audio_1`
    code: str
    sentence: str


class PauseJob(Message):
    """Ask that nothing of a job runs until it is resumed."""

    # Attempts of unfinished steps that had failed when it was asked, by Temporal's names for them: what is cancelled
    # says no word of how many it has used. The asker can see it.
    failed: dict[str, int] = Field(default_factory=dict)


class SetPriority(Message):
    """Ask that what is scheduled from now on waits with another tier; what is queued is moved by the asker."""

    tier: Tier


class TranscodeResult(Message):
    video_id: VideoId
    job_id: JobId
    status: str
    qualities: tuple[str, ...] = ()
    duration_s: float = 0.0
    missing: tuple[MissingRendition, ...] = ()


class StepRequest(Message):
    """What every step of a job carries."""

    step: ClassVar[StepName]
    job_id: JobId
    video_id: VideoId
    generation: int = 0  # scheduled anew without a failure: drained, paused, told to wait
    tries_before: int = 0  # real tries that earlier generations, or the list it was split from, have used
    # How often it was told to come later since it was last held, by the code of why.
    put_off: dict[str, int] = Field(default_factory=dict)

    @property
    def step_key(self) -> str:
        """Name the step within its job; attempts of the same work share it."""
        return self.step.value

    @property
    def work(self) -> tuple[str, ...]:
        """Name the pieces whose tries are counted, however a later plan bundles them."""
        return (self.step_key,)

    @property
    def step_qualities(self) -> tuple[str, ...]:
        return ()

    @property
    def step_span(self) -> Span | None:
        return None


class Probe(StepRequest):
    step = StepName.PROBE
    source_key: ObjectKey


class MakePlan(StepRequest):
    step = StepName.PLAN
    facts: SourceFacts
    qualities: tuple[str, ...] = ()
    continues: TranscodePlan | None = None  # a plan to keep to: of an earlier job, or this one's when some start anew
    same_output: bool = False  # what was stored under that plan is still to be used
    keep: tuple[str, ...] = ()  # not to be made: they are there
    anew: tuple[str, ...] = ()  # to be made under their next generation
    pending: tuple[str, ...] = ()  # unfinished, and some worker lacks the ffmpeg for them
    descends: MissingRendition | None = None  # one that no GPU makes, and why: the CPU does, all of it
    routes: tuple[str, ...] = ()  # about to be encoded: is there a GPU for them now?
    begun: tuple[str, ...] = ()  # of the plan that is routed: what an earlier job began, and this one goes on with
    again: int = 0  # how often this job has asked before: from then on it keeps to the plan it has

    @property
    def step_key(self) -> str:
        return "plan" if not self.again else "plan:again" if self.again == 1 else f"plan:again:{self.again}"


class MakeThumbnail(StepRequest):
    step = StepName.THUMBNAIL
    source_key: ObjectKey
    slug: str
    video: VideoFacts
    encoding: Encoding
    ffmpeg: str = ""


class MadeThumbnail(Message):
    key: ObjectKey
    at_s: float


class MakeStoryboard(StepRequest):
    """Ask for the small pictures that a player shows above its time line."""

    step = StepName.STORYBOARD
    source_key: ObjectKey
    slug: str
    video: VideoFacts
    encoding: Encoding
    duration_s: float  # of what was published: the cues cover it
    ffmpeg: str = ""


class MadeStoryboard(Message):
    sheets: int
    tiles: int
    interval_s: float


class EncodeAudio(StepRequest):
    step = StepName.AUDIO
    source_key: ObjectKey
    prefix: str
    audio: PlannedAudio
    grid: Grid  # audio is cut near the video's boundaries and measured from the video's start
    video_start_s: str
    ffmpeg: str = ""

    @property
    def step_key(self) -> str:
        return f"audio:{self.audio.track}"


class EncodedAudio(Message):
    """Durations in samples, run-length coded: a three-hour track stays a few hundred bytes."""

    track: int
    prefix: str
    segments: int
    segment_durations: SegmentRuns


class TranscodeSpan(StepRequest):
    """Ask for one span of some qualities of one video, decoded once."""

    step = StepName.TRANSCODE
    source_key: ObjectKey
    slug: str
    output: str
    video: VideoFacts
    grid: Grid
    span: Span
    renditions: tuple[PlannedRendition, ...]
    encoding: Encoding
    alone: bool = True  # the machine is this step's own: let the encoder choose its threads
    ffmpeg: str = ""  # the build that its renditions share

    @property
    def step_key(self) -> str:
        return f"transcode:{self.span.first_segment}+{self.span.segments}:{','.join(self.work)}"

    @property
    def work(self) -> tuple[str, ...]:
        return tuple(rendition.folder for rendition in self.renditions)

    @property
    def step_qualities(self) -> tuple[str, ...]:
        return tuple(r.quality for r in self.renditions)

    @property
    def step_span(self) -> Span | None:
        return self.span


def work_in(step_key: str) -> tuple[str, ...]:
    """Read out of a step's key which pieces it makes, as its request names them."""
    return tuple(step_key.rpartition(":")[2].split(",")) if step_key.startswith("transcode:") else (step_key,)


def generation_in(step_key: str, quality: str) -> int:
    """Read out of a transcode step's key which generation of a quality it makes."""
    for name in work_in(step_key):
        made, _, generation = name.partition(".")
        if made == quality and generation.isdecimal():
            return int(generation)
    return 0


class EncodeList(Message):
    """Ask for every span of a list of qualities; on long videos a child workflow's input."""

    job: TranscodeRequest
    video: VideoFacts
    grid: Grid
    spans: tuple[Span, ...]
    renditions: tuple[PlannedRendition, ...]
    encoding: Encoding
    window: int  # how many of its steps are scheduled at a time
    alone: bool
    opening: bool = False  # it makes the video playable: its first span goes before what else waits in its tier
    ahead: bool = False  # others follow it: the rest of it goes before them
    critical: tuple[str, ...] = ()  # without these the job fails; the others' fates are their own
    paused: bool = False  # the job was, when this was asked
    gpu_start_s: float = 60.0  # of a GPU's list: how long a step may wait for one


class EncodedList(Message):
    """Every span is done, but for the qualities that are missing."""

    missing: tuple[MissingRendition, ...] = ()
    descends: MissingRendition | None = None  # a GPU's list: what it could not do, and why
    # Of a list that ran in a workflow of its own: its steps have used all generations below, and these tries.
    next_generation: int = 0
    tried: tuple[Tried, ...] = ()


class TranscodedSpan(Message):
    segments: int  # how many of the span's segments this attempt had to make
    encoded_frames: int = 0  # what it spent on them


class QualityProgress(Message):
    quality: str
    segments_total: int
    segments_completed: int
    percent: float


class StepProgress(Message):
    """What a heartbeat says. Small on purpose: Temporal keeps the last one."""

    percent: float = 0.0
    frames: int = 0
    speed: float = 0.0  # seconds of video per second
    qualities: tuple[QualityProgress, ...] = ()
