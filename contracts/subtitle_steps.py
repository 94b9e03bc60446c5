"""Request and result of the step that makes subtitles."""

from contracts.ids import ObjectKey
from contracts.message import Message
from contracts.plan import PlannedSubtitle
from contracts.renditions import SubtitleRendition
from contracts.states import StepName
from contracts.steps import StepRequest


class MakeSubtitles(StepRequest):
    """Ask for the text tracks of a source as WebVTT; the file is read once for all of them."""

    step = StepName.SUBTITLES
    source_key: ObjectKey
    slug: str
    output: str
    subtitles: tuple[PlannedSubtitle, ...]
    video_start_s: str  # cues are measured from the picture's start, as the sound is
    duration_s: float  # of the picture: what comes later is never seen
    ffmpeg: str = ""


class MadeSubtitles(Message):
    tracks: tuple[SubtitleRendition, ...] = ()
    notes: tuple[str, ...] = ()  # what was left out, for people
