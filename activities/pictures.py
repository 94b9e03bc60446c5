"""The pictures that stand for a video: its thumbnail, and the storyboard above a player's time line."""

from temporalio import activity

from activities.pulse import pulsing
from contracts.ids import ObjectKey
from contracts.layout import STORYBOARD, THUMBNAIL, sheet_name, video_prefix
from contracts.steps import MadeStoryboard, MadeThumbnail, MakeStoryboard, MakeThumbnail
from media.limits import Limits
from media.sheets import make_sheets
from media.storyboard import lay_out
from media.thumbnails import take_thumbnail
from media.tools import Toolbox
from storage.store import Store

_NEEDS = ("mjpeg",)


class PictureSteps:
    def __init__(self, store: Store, tools: Toolbox, limits: Limits | None = None) -> None:
        self._store, self._tools, self._limits = store, tools, limits or Limits()

    @activity.defn
    async def thumbnail(self, request: MakeThumbnail) -> MadeThumbnail:
        """Make the thumbnail: the best of several pictures, neither black nor blurred if there is such a one.

        Safe to repeat: the key is derived from the video and the file is replaced whole.
        """
        key = ObjectKey(video_prefix(request.slug) + THUMBNAIL)
        tool = self._tools.preferring(request.ffmpeg).pick(decoder=request.video.codec, encoders=_NEEDS)
        async with (
            pulsing(),
            self._store.local_file(request.source_key) as source,
            self._store.scratch(f"job{request.job_id}-thumbnail") as here,
        ):
            taken = await take_thumbnail(tool, source, here, request, self._limits.memory(request.video))
            await self._store.put_file(key, taken.path)
        return MadeThumbnail(key=key, at_s=taken.at_s)

    @activity.defn
    async def storyboard(self, request: MakeStoryboard) -> MadeStoryboard:
        """Make the storyboard: sheets of small pictures, and the WebVTT file that says which is shown when.

        Safe to repeat: keys are derived from the video, every file is replaced whole, and the .vtt, by which
        players find the sheets, comes last.
        """
        prefix = video_prefix(request.slug)
        tool = self._tools.preferring(request.ffmpeg).pick(decoder=request.video.codec, encoders=_NEEDS)
        board = lay_out(request.video, request.duration_s)
        async with (
            pulsing(),
            self._store.local_file(request.source_key) as source,
            self._store.scratch(f"job{request.job_id}-storyboard") as here,
        ):
            sheets = await make_sheets(tool, source, here, request, board, self._limits.memory(request.video))
            for sheet in sheets:
                await self._store.put_file(prefix + sheet.name, sheet)
            await self._store.put_bytes(prefix + STORYBOARD, board.webvtt().encode())
            # Sheets of an earlier, longer storyboard: nothing names them any more.
            beyond = board.sheets
            while await self._store.stat(stale := prefix + sheet_name(beyond)):
                await self._store.delete(stale)
                beyond += 1
        return MadeStoryboard(sheets=board.sheets, tiles=board.tiles, interval_s=board.interval_s)
