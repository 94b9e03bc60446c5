"""Playlists of a video that is still being encoded, over real segments that arrive one by one."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from temporalio.testing import ActivityEnvironment

from activities.publishing import ManifestSteps
from activities.verifying import VerifySteps
from api import growing
from contracts.end_steps import VerifyRenditions, WriteManifests
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.layout import INIT, PLAYLIST, SUBTITLES, segment_name, timeline_key
from contracts.media import AudioTimeline, PlannedSubtitle, Rung
from contracts.steps import EncodedAudio
from media.boxes import read_init, read_segment
from media.manifests import MediaPlaylist, media_playlist_subtitles
from media.planning import PlanOptions
from media.tools import find_tools
from mirror import writes
from mirror.reads_growing import growing_job
from mirror.writes import NewVideo
from storage.local import LocalStore
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

    def store(self, folder: str, *names: str, generation: str = "") -> None:
        target = self.api.root / PREFIX / "r1" / (folder + generation)
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
        self.timeline().parent.mkdir(exist_ok=True)
        self.timeline().write_text(timeline.model_dump_json())

    def timeline(self, attempt: int = 1) -> Path:
        return self.api.root / timeline_key(f"{PREFIX}r1/audio_0/", JobId(self.job_id), 0, attempt)

    async def tell(
        self, step_key: str, attempt: int, outcome: str = "failed", *, generation: int = 0, will_retry: bool = False
    ) -> None:
        """Write what an attempt has come to."""
        step, _, work = step_key.partition(":")
        qualities = work.partition(":")[2].split(",") if step == "transcode" else []
        await self.api.change(
            "INSERT INTO job_steps (job_id, step, step_key, qualities, generation, attempt, tries, started_at,"
            " heartbeat_at, claim_expires_at, finished_at, outcome, will_retry, percent, progress)"
            " VALUES (:job, :step, :key, CAST(:qualities AS jsonb), :generation, :attempt, :attempt, now(),"
            " now(), now(), now(), :outcome, :again, 0, '{}')",
            job=self.job_id,
            step=step,
            key=step_key,
            qualities=json.dumps(qualities),
            generation=generation,
            attempt=attempt,
            outcome=outcome,
            again=will_retry,
        )

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
        return re.findall(r"^r1/([\w.]+)/playlist.m3u8$", await self.read("master.m3u8"), re.M)

    async def can_be_played(self, path: str) -> list[str]:
        """Ask for all that a playlist names, as a player would, and give the segments' addresses."""
        text = await self.read(path)
        segments = [line for line in text.splitlines() if line and not line.startswith("#")]
        for address in [*segments, *re.findall(r'#EXT-X-MAP:URI="(.+)"', text)]:
            answer = await self.api.http.get(str(httpx.URL(f"/videos/clip/{path}").join(address)))
            assert answer.status_code == 200, address
        return segments


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


async def test_subtitles_are_listed_from_when_they_are_there(stage: Stage) -> None:
    planned = PlannedSubtitle(track=0, stream=2, codec="subrip", language="deu", name="Deutsch")
    plan = stage.encoded.work.plan.model_copy(update={"subtitles": (planned,)})
    async with stage.api.database.write() as session:
        await writes.record_plan(session, JobId(stage.job_id), VideoId(1), plan)
    stage.store("144p", INIT, segment_name(0))
    stage.store_sound(1)
    assert "SUBTITLES" not in await stage.read("master.m3u8")
    folder = stage.api.root / PREFIX / "r1/subtitles_0"
    folder.mkdir(parents=True)
    (folder / SUBTITLES).write_text("WEBVTT\n")
    (folder / PLAYLIST).write_text(media_playlist_subtitles(3))
    master = await stage.read("master.m3u8")
    assert 'TYPE=SUBTITLES,GROUP-ID="subs",NAME="Deutsch",LANGUAGE="de"' in master
    assert await stage.can_be_played(f"r1/subtitles_0/{PLAYLIST}") == [SUBTITLES]
    answer = await stage.api.http.get(f"/videos/clip/r1/subtitles_0/{SUBTITLES}")
    assert answer.headers["content-type"] == "text/vtt; charset=utf-8"


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


async def test_who_watches_a_rung_that_starts_anew_is_led_to_its_end(stage: Stage) -> None:
    old, new = (f"r1/240p{generation}/{PLAYLIST}" for generation in ("", ".1"))
    stage.store("144p", INIT, *(segment_name(index) for index in range(3)))
    stage.store_sound(len(list((stage.encoded.folder / "r1/audio_0").glob("seg_*"))), whole=True)
    stage.store("240p", INIT, segment_name(0), segment_name(1))
    assert await stage.rungs() == ["240p", "144p"]
    watched = await stage.read(old)

    # The last segment never came: the rung starts anew beside what is stored.
    plan = stage.encoded.work.plan
    anew = tuple(r.model_copy(update={"generation": 1}) if r.quality == "240p" else r for r in plan.renditions)
    plan = plan.model_copy(update={"renditions": anew})
    [job] = await stage.api.rows("SELECT video_id FROM transcoding_jobs WHERE id = :id", id=stage.job_id)
    async with stage.api.database.write() as session:
        await writes.record_plan(session, JobId(stage.job_id), job["video_id"], plan)
    assert await stage.read(old) == watched, "nothing new is there yet"
    assert await stage.status(new) == 404
    stage.store("240p", INIT, segment_name(0), generation=".1")
    assert await stage.read(old) == watched
    assert (await stage.read(new)).count("#EXTINF") == 1
    stage.store("240p", segment_name(1), segment_name(2), generation=".1")
    assert (await stage.read(old)).startswith(watched)
    expected = [segment_name(0), segment_name(1), f"../240p.1/{segment_name(2)}"]
    assert await stage.can_be_played(old) == expected
    assert await stage.rungs() == ["240p.1", "144p"], "who comes now is shown the new one"

    # Then it is published, by the real steps: every address that was ever given still answers.
    store, steps = LocalStore(stage.api.root), ActivityEnvironment()
    ids = {"job_id": JobId(stage.job_id), "video_id": job["video_id"], "slug": "clip"}
    sound = next(iter(stage.encoded.work.plan.audio))
    timeline = AudioTimeline.model_validate_json(stage.timeline().read_text())
    heard = EncodedAudio(
        track=sound.track,
        prefix=f"{PREFIX}r1/audio_0/",
        segments=timeline.segments,
        segment_durations=timeline.segment_durations,
    )
    verify = VerifyRenditions(**ids, output="r1", plan=plan, audio=(heard,), again=True)
    whole = await steps.run(VerifySteps(store).verify, verify)
    assert not whole.broken
    await steps.run(ManifestSteps(store).write_manifests, WriteManifests(**ids, grid=plan.grid, renditions=whole))
    await stage.api.change("UPDATE transcoding_jobs SET completed_at = now() WHERE id = :id", id=stage.job_id)
    assert await stage.can_be_played(old) == expected
    assert (await stage.read(old)).endswith("#EXT-X-ENDLIST\n")
    assert await stage.can_be_played(new) == [segment_name(index) for index in range(3)]


async def test_a_lowest_rung_that_starts_anew_does_not_end_the_show(stage: Stage) -> None:
    stage.store("144p", INIT, segment_name(0), segment_name(1))
    stage.store_sound(2)
    assert await stage.rungs() == ["144p"]
    plan = stage.encoded.work.plan
    anew = tuple(r.model_copy(update={"generation": 1}) if r.quality == "144p" else r for r in plan.renditions)
    [job] = await stage.api.rows("SELECT video_id FROM transcoding_jobs WHERE id = :id", id=stage.job_id)
    async with stage.api.database.write() as session:
        await writes.record_plan(
            session, JobId(stage.job_id), job["video_id"], plan.model_copy(update={"renditions": anew})
        )
    assert await stage.rungs() == ["144p"], "the old one, until the new one has caught up"
    stage.store("144p", INIT, segment_name(0), generation=".1")
    assert await stage.rungs() == ["144p.1"]


async def test_a_look_at_a_long_film_costs_what_has_come_since(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = 1800  # three hours
    plan = stage.encoded.work.plan
    grid = plan.grid.model_copy(update={"frames": segments * plan.grid.segment_frames})
    [job] = await stage.api.rows("SELECT video_id FROM transcoding_jobs WHERE id = :id", id=stage.job_id)
    async with stage.api.database.write() as session:
        await writes.record_plan(session, JobId(stage.job_id), job["video_id"], plan.model_copy(update={"grid": grid}))
    for rung in ("144p", "240p"):
        stage.store(rung, INIT)
        for index in range(segments - 10):
            (stage.api.root / PREFIX / "r1" / rung / segment_name(index)).touch()
    low = f"r1/144p/{PLAYLIST}"
    assert (await stage.read(low)).count("#EXTINF") == segments - 10

    calls: list[tuple[str, object]] = []

    def note(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def noted(self: object, first: object, *rest: object) -> object:
            calls.append((name, first))
            return real(self, first, *rest)

        monkeypatch.setattr(owner, name, noted)

    note(MediaPlaylist, "add")
    note(LocalStore, "stat")
    note(LocalStore, "list")
    (stage.api.root / PREFIX / "r1/144p" / segment_name(segments - 10)).touch()
    answer = await stage.api.http.get(f"/videos/clip/{low}")
    assert answer.text.count("#EXTINF") == segments - 9
    assert [name for name, _ in calls if name != "stat"] == ["add"], "only the new segment is written"
    # The playlist itself may have been published; the segment that has come; the one that has not.
    asked = [PurePosixPath(str(key)).name for name, key in calls if name == "stat"]
    assert asked == [PLAYLIST, segment_name(segments - 10), segment_name(segments - 9)]


async def test_a_zombie_shortens_no_sound(stage: Stage) -> None:
    sound = f"r1/audio_0/{PLAYLIST}"
    stage.store("144p", INIT, segment_name(0))
    stage.store_sound(1)
    heard = await stage.read(sound)
    stage.timeline().rename(stage.timeline(2))
    # The first attempt wakes up and tells what it knew.
    stage.timeline(1).write_text(AudioTimeline().model_dump_json())
    assert await stage.read(sound) == heard
    # An API that has just started reads both.
    parts: Any = SimpleNamespace(database=stage.api.database, store=LocalStore(stage.api.root))
    assert await growing.Growing().playlist(parts, "clip", sound) == heard


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


async def test_a_second_sound_that_failed_for_good_holds_nothing_back(stage: Stage) -> None:
    plan = stage.encoded.work.plan
    second = plan.audio[0].model_copy(update={"track": 1, "name": "Second", "default": False})
    [job] = await stage.api.rows("SELECT video_id FROM transcoding_jobs WHERE id = :id", id=stage.job_id)
    async with stage.api.database.write() as session:
        two = plan.model_copy(update={"audio": (plan.audio[0].model_copy(update={"default": True}), second)})
        await writes.record_plan(session, JobId(stage.job_id), job["video_id"], two)
    stage.store("144p", INIT, segment_name(0))
    stage.store_sound(1)
    assert await stage.status("master.m3u8") == 404, "the second sound may still come"

    await stage.tell("audio:1", 1, will_retry=True)
    assert await stage.status("master.m3u8") == 404, "it is tried again"
    await stage.tell("audio:1", 2)
    master = await stage.read("master.m3u8")
    assert "r1/audio_0/playlist.m3u8" in master and "r1/audio_1/" not in master


@pytest.mark.parametrize("outcome", ["failed", "lost"])
async def test_who_watches_a_rung_that_failed_for_good_is_sent_to_another(stage: Stage, outcome: str) -> None:
    """Its playlist would stand still until the job has ended, and a player that waits for it with it."""
    high, low = f"r1/240p/{PLAYLIST}", f"r1/144p/{PLAYLIST}"
    stage.store("144p", INIT, segment_name(0))
    stage.store("240p", INIT, segment_name(0))
    stage.store_sound(1)
    await stage.tell("transcode:0+3:240p,144p", 1)
    assert await stage.rungs() == ["240p", "144p"], "the list is split: each is tried by itself"
    await stage.tell("transcode:0+3:240p", 2, outcome, will_retry=outcome == "failed")
    assert await stage.status(high) == 200, "it is tried again"
    await stage.tell("transcode:0+3:240p", 3, outcome)
    assert await stage.status(high) == 404
    assert await stage.rungs() == ["144p"]
    stage.store("144p", segment_name(1))
    assert (await stage.read(low)).count("#EXTINF") == 2
    # A job that Temporal had forgotten begins again, with all its tries.
    await stage.tell("transcode:0+3:240p", 1, "running", generation=1)
    assert await stage.status(high) == 200
