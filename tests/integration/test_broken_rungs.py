"""A rung of which something is lost after it was stored: made anew beside it, once, and published whole or not."""

from pathlib import Path

import pytest

from contracts.layout import PLAYLIST, segment_name
from media.streams import verify_stream
from media.tools import find_tools
from mirror.sessions import Database
from runtime.settings import Settings
from storage.local import LocalStore
from tests.integration.mirror.story import row, rows_of
from tests.support.clips import Clips
from tests.support.real_steps import transcoded
from tests.support.shared_temporal import shared_temporal


class Forgetful(LocalStore):
    """A disk that says it has stored everything, and has not."""

    def __init__(self, root: Path, *lost: str) -> None:
        super().__init__(root)
        self._lost = lost

    async def put_file(self, key: str, path: Path, *, create_only: bool = False) -> bool:
        return key in self._lost or await super().put_file(key, path, create_only=create_only)


@pytest.mark.parametrize("folders", [("240p",), ("240p", "240p.1")], ids=["once", "twice"])
async def test_a_rung_that_is_not_whole_is_made_anew_and_listed_only_if_that_is(
    database: Database, tmp_path: Path, folders: tuple[str, ...]
) -> None:
    tools = await find_tools()
    settings = Settings(
        home=tmp_path / "home", ladder="360p=600/96,240p=300/64,144p=200/64", segment_seconds=1, preset="ultrafast"
    )
    output = tmp_path / "storage/videos/lossy"
    lost = [f"videos/lossy/r1/{folder}/{segment_name(1)}" for folder in folders]
    store = Forgetful(tmp_path / "storage", *lost)
    clip = Clips(tools, tmp_path / "clips").get("land.mp4")
    async with shared_temporal() as client:
        video, result = await transcoded(client, database, store, tools, settings, clip, "lossy")
    again = len(folders) > 1
    assert result.status == "ready"
    assert [(each.name, each.code) for each in result.missing] == ([("240p", "OUTPUT_INCOMPLETE")] if again else [])

    steps = await rows_of(
        database, "SELECT step_key, outcome FROM job_steps WHERE job_id = :job ORDER BY id", job=video.job_id
    )
    made = [(step["step_key"], step["outcome"]) for step in steps if step["step_key"].startswith(("tr", "ve"))]
    assert made == [
        ("transcode:0+3:360p,240p,144p", "completed"),
        ("verify", "completed"),
        ("transcode:0+3:240p.1", "completed"),
        ("verify:again", "completed"),
    ]
    query = "SELECT status, segments_completed, segments_total FROM quality_progress WHERE job_id = :job"
    quality = await row(database, f"{query} AND quality = '240p'", job=video.job_id)
    assert (quality["status"], quality["segments_total"]) == ("failed" if again else "completed", 3)

    # Whatever is listed is whole, to the last picture.
    report = await verify_stream(tools, output / "master.m3u8")
    assert [(rung.name, rung.frames) for rung in report.rungs] == [
        (name, 90) for name in ("360p", *([] if again else ["240p.1"]), "144p")
    ]
    for manifest in ("master.m3u8", "manifest.mpd"):
        listed = (output / manifest).read_text()
        assert "/240p/" not in listed and ("240p" in listed) != again
    assert again or (output / "r1/240p" / PLAYLIST).is_file(), "who watched it grow is led on"
