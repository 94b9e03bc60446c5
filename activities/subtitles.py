"""Text tracks of the source as WebVTT renditions. A video is whole without them: nothing here can fail it."""

import asyncio
from contextlib import aclosing

from temporalio import activity

from activities.pulse import pulsing
from contracts.layout import PLAYLIST, SUBTITLES, subtitles_prefix
from contracts.plan import PlannedSubtitle
from contracts.renditions import SubtitleRendition
from contracts.subtitle_steps import MadeSubtitles, MakeSubtitles
from media import commands, encoder, manifests
from media.subtitles import TrackCues, read_track, webvtt
from media.tools import Toolbox
from storage.store import Store

_LEAST_S = 120.0
_SLOWEST_BYTES_PER_S = 5_000_000  # a disk slower than this is broken, not slow


class SubtitleSteps:
    def __init__(self, store: Store, tools: Toolbox) -> None:
        self._store, self._tools = store, tools

    @activity.defn
    async def make_subtitles(self, request: MakeSubtitles) -> MadeSubtitles:
        """Read the source once and store each text track that says anything, with the playlist that names it.

        Safe to repeat: keys are derived from the request, the text follows from the source, and each file is
        replaced whole; the playlist, by which a growing stream finds a track, comes last.
        """
        tool = self._tools.pick(encoders=(), build=request.ffmpeg or None)
        made: list[SubtitleRendition] = []
        notes: list[str] = []
        async with (
            pulsing(),
            self._store.local_file(request.source_key) as source,
            self._store.scratch(f"job{request.job_id}-subtitles-a{activity.info().attempt}") as here,
        ):
            size_bytes = (await asyncio.to_thread(source.stat)).st_size
            argv = commands.subtitles(tool, source, here, request.subtitles)
            # By the clock alone: between two cues of a long silence there is nothing that could advance.
            limit_s = _LEAST_S + size_bytes / _SLOWEST_BYTES_PER_S
            async with aclosing(encoder.run(argv, timeout_s=limit_s)) as reports:
                async for _ in reports:
                    pass
            for planned in request.subtitles:
                found = await asyncio.to_thread(read_track, here, planned, request.video_start_s, request.duration_s)
                if found.cues:
                    made.append(await self._keep(request, planned, found))
                notes += _told(planned, found)
        if made and not any(track.default for track in made) and any(one.default for one in request.subtitles):
            notes.append("The default subtitles hold no text; none are shown unless a viewer asks.")
        return MadeSubtitles(tracks=tuple(made), notes=tuple(notes))

    async def _keep(self, request: MakeSubtitles, planned: PlannedSubtitle, found: TrackCues) -> SubtitleRendition:
        prefix = subtitles_prefix(request.slug, request.output, planned.track)
        text = webvtt(found.cues).encode()
        await self._store.put_bytes(prefix + SUBTITLES, text)
        playlist = manifests.media_playlist_subtitles(request.duration_s)
        await self._store.put_bytes(prefix + PLAYLIST, playlist.encode())
        return SubtitleRendition(
            track=planned.track,
            prefix=prefix,
            language=planned.language,
            name=planned.name,
            default=planned.default,
            forced=planned.forced,
            cues=len(found.cues),
            size_bytes=len(text),
        )


def _told(planned: PlannedSubtitle, found: TrackCues) -> list[str]:
    if not found.cues:
        return [f"The subtitles “{planned.name}” hold no text that could be shown, and are left out."]
    return [f"The subtitles “{planned.name}” are longer than a track may be; the rest is cut."] if found.cut else []
