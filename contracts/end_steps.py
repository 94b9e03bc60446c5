"""Messages of how a job ends: checking, writing manifests, publishing, failing, removing."""

from contracts.ids import ObjectKey
from contracts.message import Message
from contracts.plan import Grid, TranscodePlan
from contracts.renditions import AudioRendition, SubtitleRendition, VideoRendition
from contracts.states import StepName
from contracts.steps import EncodedAudio, MissingRendition, StepRequest


class VerifyRenditions(StepRequest):
    """Ask whether all that was encoded is there and whole, by the recorded facts."""

    step = StepName.VERIFY
    slug: str
    output: str
    plan: TranscodePlan
    audio: tuple[EncodedAudio, ...] = ()
    subtitles: tuple[SubtitleRendition, ...] = ()
    again: bool = False  # after a rendition was started anew

    @property
    def step_key(self) -> str:
        return "verify:again" if self.again else "verify"


class BrokenRendition(Message):
    quality: str
    sentence: str


class VerifiedRenditions(Message):
    video: tuple[VideoRendition, ...]
    audio: tuple[AudioRendition, ...] = ()
    subtitles: tuple[SubtitleRendition, ...] = ()
    broken: tuple[BrokenRendition, ...] = ()  # not whole: never listed in a manifest


class WriteManifests(StepRequest):
    """Ask for the media playlist of each rendition; nothing points at them yet."""

    step = StepName.MASTER_PLAYLIST
    slug: str
    grid: Grid
    renditions: VerifiedRenditions


class Publish(StepRequest):
    """Ask to record the renditions and to put master.m3u8 and manifest.mpd in their place, whole."""

    step = StepName.PUBLISH
    slug: str
    renditions: VerifiedRenditions
    keep: tuple[str, ...] = ()  # published before and still current: see TranscodeRequest


class Published(Message):
    master_key: ObjectKey
    mpd_key: ObjectKey


class Finalize(StepRequest):
    """Ask to write the happy end; repeated until Postgres takes it."""

    step = StepName.FINALIZE
    duration_s: float
    qualities: tuple[str, ...]
    missing: tuple[MissingRendition, ...] = ()
    notes: tuple[str, ...] = ()  # what people should know of this video beside the plan's own notes
    plan: TranscodePlan | None = None  # as it was at the end: what a worker tells of it may come too late


class RemovePartial(StepRequest):
    """Ask to remove what a cancelled job has made: folders of its output that no rendition's row names."""

    step = StepName.FINALIZE
    slug: str
    output: str

    @property
    def step_key(self) -> str:
        return "finalize:remove"


class FailJob(StepRequest):
    """Ask to write the unhappy end; repeated until Postgres takes it."""

    step = StepName.FINALIZE
    code: str
    sentence: str
    failed_step: str = ""
    plan: TranscodePlan | None = None  # as far as it had come; a retry goes on with it
