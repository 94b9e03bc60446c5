"""Playlists of a video that is still being encoded, over real segments that arrive one by one."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from api import growing
from contracts.ids import ObjectKey
from contracts.layout import INIT, PLAYLIST, TIMELINE, segment_name
from contracts.media import AudioTimeline, Rung
from media.boxes import read_init, read_segment
from media.planning import PlanOptions
from media.tools import find_tools
from mirror import writes
from mirror.reads_growing import growing_job
from mirror.writes import NewVideo
from tests.integration.api.running import Api, serving
from tests.support.clips import Clips
from tests.support.encoding import PREFIX, Work, prepare, publish

LADDER = (
    Rung(name="240p", short_side=240, video_kbps=300, audio_kbps=64),
    Rung(name="144p", short_side=144, video_kbps=200, audio_kbps=64),
)


@dataclass(frozen=True)
class Encoded:
    """What an encoder made, waiting to be stored."""

    work: Work
    master: Path

    @property
    def folder(self) -> Path:
        return self.master.parent


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Encoded:
    here = tmp_path_factory.mktemp("encoded")

    async def make() -> Encoded:
        tools = await find_tools()
        clip = Clips(tools, here / "clips").get("land.mp4")
        options = PlanOptions(ladder=LADDER, segment_seconds=1, preset="ultrafast")
        work = await prepare(tools, clip, options)
        return Encoded(work, await publish(work, here))

    return asyncio.run(make())


@dataclass(frozen=True)
class Stage:
    """An API, a video with an unfinished job, and the hand that stores segments."""

    api: Api
    encoded: Encoded
    job_id: int

    def store(self, folder: str, *names: str) -> None:
        target = self.api.root / PREFIX / "r1" / folder
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copyfile(self.encoded.folder / "r1" / folder / name, target / name)

    def store_sound(self, segments: int, *, whole: bool = False) -> None:
        self.store("audio_0", INIT, *(segment_name(index) for index in range(segments)))
        made = self.encoded.folder / "r1" / "audio_0"
        init = read_init((made / INIT).read_bytes())
        lengths = [read_segment(made / segment_name(index), init).duration for index in range(segments)]
        runs = tuple((length, len(list(run))) for length, run in groupby(lengths))
        timeline = AudioTimeline(timescale=init.timescale, segment_durations=runs, whole=whole)
        (self.api.root / PREFIX / "r1/audio_0" / TIMELINE).write_text(timeline.model_dump_json())

    async def status(self, path: str) -> int:
        return (await self.api.http.get(f"/videos/clip/{path}")).status_code

    async def read(self, path: str) -> str:
        answer = await self.api.http.get(f"/videos/clip/{path}")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/vnd.apple.mpegurl"
        assert answer.headers["cache-control"] == "no-cache"
        head = await self.api.http.head(f"/videos/clip/{path}")
        assert (head.status_code, head.headers["content-length"]) == (200, str(len(answer.content)))
        return answer.text

    async def rungs(self) -> list[str]:
        return re.findall(r"^r1/(\w+)/playlist.m3u8$", await self.read("master.m3u8"), re.M)


async def begin(api: Api, encoded: Encoded) -> Stage:
    async with api.database.write() as session:
        video_id = await writes.next_video_id(session)
        new = NewVideo(video_id=video_id, title="Clip", source_key=ObjectKey(f"uploads/{video_id}.mp4"))
        created = await writes.create_video(session, new)
        await writes.record_plan(session, created.job_id, video_id, encoded.work.plan)
    assert created.slug == "clip"
    return Stage(api, encoded, created.job_id)


@pytest.fixture
async def stage(lonely_api: Api, encoded: Encoded, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(growing, "LOOK_EVERY_S", 0.0)
    yield await begin(lonely_api, encoded)


async def test_playlists_grow_with_what_is_stored_and_end_as_the_published_ones(stage: Stage) -> None:
    low, high, sound = (f"r1/{name}/{PLAYLIST}" for name in ("144p", "240p", "audio_0"))
    missing = await stage.api.http.get("/videos/clip/master.m3u8")
    assert (missing.status_code, missing.json()["error"]) == (404, "NOT_FOUND")

    stage.store("144p", INIT, segment_name(0))
    assert await stage.status("master.m3u8") == 404, "its sound is not there"
    first = await stage.read(low)
    assert first.count("#EXTINF") == 1 and "TYPE:EVENT" in first and "#EXT-X-START:TIME-OFFSET=0" in first
    stage.store_sound(1)
    assert await stage.rungs() == ["144p"]
    assert await stage.status(high) == 404

    stage.store("144p", segment_name(2))
    assert await stage.read(low) == first, "a segment behind a gap is not listed"
    stage.store("240p", INIT, segment_name(0))
    assert await stage.rungs() == ["240p", "144p"]
    stage.store("144p", segment_name(1))
    assert await stage.rungs() == ["144p"], "240p is two segments behind"
    whole = await stage.read(low)
    assert whole.startswith(first) and whole.count("#EXTINF") == 3 and whole.endswith("#EXT-X-ENDLIST\n")

    heard = await stage.read(sound)
    assert "#EXT-X-ENDLIST" not in heard
    stage.store("240p", segment_name(1), segment_name(2))
    stage.store_sound(len(list((stage.encoded.folder / "r1/audio_0").glob("seg_*"))), whole=True)
    assert await stage.rungs() == ["240p", "144p"]
    assert (await stage.read(sound)).startswith(heard)
    for path in (low, high, sound):
        grown, published = await stage.read(path), (stage.encoded.folder / path).read_text()
        assert _segments(grown) == _segments(published), "who reloads after publish finds the same"
        shutil.copyfile(stage.encoded.folder / path, stage.api.root / PREFIX / path)
        assert await stage.read(path) == published

    shutil.copyfile(stage.encoded.master, stage.api.root / PREFIX / "master.m3u8")
    assert await stage.read("master.m3u8") == stage.encoded.master.read_text(), "what is published wins"


def _segments(playlist: str) -> list[str]:
    lines = playlist.splitlines()
    return lines[next(n for n, line in enumerate(lines) if line.startswith("#EXT-X-MAP")) :]


async def test_a_job_that_ended_leaves_nothing_to_play(stage: Stage) -> None:
    stage.store("144p", INIT, segment_name(0))
    stage.store_sound(1)
    assert await stage.rungs() == ["144p"]
    await stage.api.change("UPDATE transcoding_jobs SET cancelled_at = now() WHERE id = :id", id=stage.job_id)
    assert await stage.status("master.m3u8") == 404
    assert await stage.status(f"r1/144p/{PLAYLIST}") == 404


async def test_many_viewers_cost_one_look(lonely_api: Api, encoded: Encoded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "LOOK_EVERY_S", 60.0)
    stage = await begin(lonely_api, encoded)
    stage.store("144p", INIT, segment_name(0))
    stage.store_sound(1)
    looks = 0

    async def counted(*arguments: object) -> object:
        nonlocal looks
        looks += 1
        return await growing_job(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(growing, "growing_job", counted)
    answers = await asyncio.gather(*(stage.status("master.m3u8") for _ in range(20)))
    assert (set(answers), looks) == ({200}, 1)


async def test_an_unpublished_video_does_not_play_early_when_there_is_a_secret(
    database_url: str, tmp_path: Path, encoded: Encoded
) -> None:
    async with serving(database_url, tmp_path / "storage", admin_secret="s") as api:
        stage = await begin(api, encoded)
        stage.store("144p", INIT, segment_name(0))
        stage.store_sound(1)
        assert await stage.status("master.m3u8") == 404


async def test_the_stream_is_announced_when_it_is_playable(stage: Stage) -> None:
    [row] = await stage.api.rows("SELECT video_id FROM transcoding_jobs WHERE id = :id", id=stage.job_id)
    address = f"/api/videos/{row['video_id']}"
    assert (await stage.api.http.get(address)).json()["stream_url"] is None
    await stage.api.change("UPDATE videos SET status = 'processing', playable_at = now()")
    video = (await stage.api.http.get(address)).json()
    assert (video["stream_url"], video["dash_url"]) == ("/videos/clip/master.m3u8", None)
    await stage.api.change("UPDATE videos SET status = 'failed'")
    assert (await stage.api.http.get(address)).json()["stream_url"] is None
