"""The source and the plans of the stories that are recorded."""

from contracts.media import AudioFacts, FrameRate, SourceFacts, VideoFacts
from contracts.plan import Grid, PlannedAudio, PlannedRendition, PlannedSubtitle, Span, TranscodePlan
from contracts.states import Codec
from tests.replay import outgrown_stories, paused_stories

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
    subtitles=(PlannedSubtitle(track=0, stream=2, codec="subrip"),),
    spans=(Span(first_segment=0, segments=4),),
    ffmpeg="test",
)


# A video of an hour: its lists have workflows of their own.
LONG = PLAN.model_copy(
    update={
        "grid": PLAN.grid.model_copy(update={"frames": 40 * 180}),
        "spans": tuple(Span(first_segment=2 * n, segments=2) for n in range(20)),
        "lists": (("360p",), ("720p",)),
        "window": 2,
    }
)
TWO_TRACKS = PLAN.model_copy(
    update={"audio": (*PLAN.audio, PlannedAudio(track=1, stream=2, kbps=128, language="deu", name="Deutsch"))}
)
# Begun with an ffmpeg that nobody has any more, beside a codec that the new one does not make.
GONE = PLAN.model_copy(
    update={
        "renditions": (
            *(rendition.model_copy(update={"ffmpeg": "8.1-gone"}) for rendition in PLAN.renditions),
            PlannedRendition(
                quality="360p-av1", width=640, height=360, video_kbps=300, codec=Codec.AV1, ffmpeg="8.1-gone"
            ),
        ),
        "audio": tuple(track.model_copy(update={"ffmpeg": "8.1-gone"}) for track in PLAN.audio),
        "lists": (("720p", "360p"), ("360p-av1",)),
    }
)
# Some workers lack its ffmpeg, others do not.
HALF_GONE = LONG.model_copy(
    update={"renditions": tuple(r.model_copy(update={"ffmpeg": "8.1-first"}) for r in LONG.renditions)}
)
# A video of minutes, for a site of many workers: all its spans wait side by side.
WIDE = LONG.model_copy(update={"spans": LONG.spans[:12], "lists": (), "window": 12})
PLANS = {
    "gone": GONE,
    "partial": TWO_TRACKS,
    "paused lists": LONG,
    paused_stories.LISTS: LONG,
    "cancelled lists": LONG,
    "lists": LONG,
    "moved lists": HALF_GONE,
    outgrown_stories.LISTS: LONG.model_copy(update={"spans": LONG.spans[:16], "window": 4}),
    outgrown_stories.COMMANDED: LONG.model_copy(update={"spans": LONG.spans[:16], "window": 4}),
    outgrown_stories.CANCELLED_LISTS: LONG.model_copy(update={"spans": LONG.spans[:16], "window": 4}),
    outgrown_stories.LOST: TWO_TRACKS,
    outgrown_stories.WIDE: WIDE,
}
