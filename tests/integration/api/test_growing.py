"""Playlists of a video that is still being encoded, over real segments that arrive one by one."""

import asyncio
import shutil
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from api import growing
from contracts.layout import INIT, PLAYLIST, SUBTITLES, segment_name
from contracts.plan import PlannedSubtitle
from contracts.renditions import AudioTimeline
from media.manifests import MediaPlaylist, media_playlist_subtitles
from mirror.reads_growing import growing_job
from storage.local import LocalStore
from storage.store import ObjectFacts
from tests.integration.api.growing_stage import Encoded, Stage, begin
from tests.integration.api.running import Api, serving
from tests.support.encoding import PREFIX


async def test_subtitles_are_listed_from_when_they_are_there(stage: Stage) -> None:
    planned = PlannedSubtitle(track=0, stream=2, codec="subrip", language="deu", name="Deutsch")
    plan = stage.encoded.work.plan.model_copy(update={"subtitles": (planned,)})
    await stage.replan(plan)
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
    stage.store_sound(stage.sounds, whole=True)
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


async def test_a_look_at_a_long_film_costs_what_has_come_since(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = 1800  # three hours
    plan = stage.encoded.work.plan
    grid = plan.grid.model_copy(update={"frames": segments * plan.grid.segment_frames})
    await stage.replan(plan.model_copy(update={"grid": grid}))
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


async def test_a_look_after_a_long_time_asks_once_for_all_that_has_come(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, segments = stage.encoded.work.plan, 500
    grid = plan.grid.model_copy(update={"frames": segments * plan.grid.segment_frames})
    await stage.replan(plan.model_copy(update={"grid": grid}))
    stage.store("144p", INIT, segment_name(0))
    low = f"r1/144p/{PLAYLIST}"
    assert (await stage.read(low)).count("#EXTINF") == 1
    asked: list[str] = []
    really_stat, really_list = LocalStore.stat, LocalStore.list

    async def noted_stat(store: LocalStore, key: str) -> ObjectFacts | None:
        asked.append("stat")
        return await really_stat(store, key)

    async def noted_list(store: LocalStore, prefix: str) -> list[ObjectFacts]:
        asked.append("list")
        return await really_list(store, prefix)

    monkeypatch.setattr(LocalStore, "stat", noted_stat)
    monkeypatch.setattr(LocalStore, "list", noted_list)
    for index in (*range(1, 400), *range(410, 420)):
        (stage.api.root / PREFIX / "r1/144p" / segment_name(index)).touch()
    answer = await stage.api.http.get(f"/videos/clip/{low}")
    assert answer.text.count("#EXTINF") == 400, "and nothing behind the gap"
    assert asked == ["stat"] * (1 + growing.FEW) + ["list"], "first the playlist itself, then some of the segments"


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
