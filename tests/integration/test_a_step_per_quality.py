"""With VLOG_SHARE_DECODE=never every quality is decoded and encoded by a step of its own; the stream is the same."""

from pathlib import Path

from media.streams import verify_stream
from media.tools import find_tools
from mirror.sessions import Database
from runtime.settings import Settings
from storage.local import LocalStore
from tests.integration.mirror.story import rows_of
from tests.support.clips import Clips
from tests.support.real_steps import transcoded
from tests.support.shared_temporal import shared_temporal

QUALITIES = ["360p", "240p", "144p"]


async def test_without_a_shared_decode_each_quality_has_its_own_step_and_all_fit_together(
    database: Database, tmp_path: Path
) -> None:
    tools = await find_tools()
    settings = Settings(
        home=tmp_path / "home",
        share_decode="never",
        ladder="360p=600/96,240p=300/64,144p=200/64",
        segment_seconds=1,
        preset="ultrafast",
    )
    store = LocalStore(tmp_path / "storage")
    clip = Clips(tools, tmp_path / "clips").get("land.mp4")
    async with shared_temporal() as client:
        video, result = await transcoded(client, database, store, tools, settings, clip, "alone")
    assert (result.status, list(result.qualities)) == ("ready", QUALITIES)

    steps = await rows_of(
        database,
        "SELECT qualities, first_segment, segments, attempt, outcome FROM job_steps"
        " WHERE job_id = :job AND step = 'transcode'",
        job=video.job_id,
    )
    assert sorted(step["qualities"] for step in steps) == sorted([quality] for quality in QUALITIES)
    assert {(s["first_segment"], s["segments"], s["attempt"], s["outcome"]) for s in steps} == {(0, 3, 1, "completed")}
    report = await verify_stream(tools, tmp_path / "storage/videos/alone/master.m3u8")
    assert [(rung.name, rung.frames) for rung in report.rungs] == [(quality, 90) for quality in QUALITIES]
    assert len({rung.boundaries_s for rung in report.rungs}) == 1
