"""The sounds and subtitles of videos, as their manifests list them."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import select

from mirror.sessions import AnySession
from mirror.showing import Tracks, show_audio_rendition, show_subtitle_rendition
from mirror.tables import AudioRenditionRow, SubtitleRenditionRow


async def tracks_of(s: AnySession, video_ids: Sequence[int]) -> dict[int, Tracks]:
    """Read the tracks of some videos, in two queries however many they are; every video has an entry."""
    found: dict[int, Tracks] = defaultdict(lambda: ([], []))
    sound = select(AudioRenditionRow).where(AudioRenditionRow.video_id.in_(video_ids))
    for row in (await s.execute(sound.order_by(AudioRenditionRow.track))).scalars():
        found[row.video_id][0].append(show_audio_rendition(row))
    words = select(SubtitleRenditionRow).where(SubtitleRenditionRow.video_id.in_(video_ids))
    for text in (await s.execute(words.order_by(SubtitleRenditionRow.track))).scalars():
        found[text.video_id][1].append(show_subtitle_rendition(text))
    return found
