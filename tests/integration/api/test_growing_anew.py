"""Playlists of renditions that start anew, or fail, while people watch them grow."""

import shutil

import pytest

from contracts.layout import INIT, PLAYLIST, segment_name
from tests.integration.api.growing_stage import Stage
from tests.support.encoding import PREFIX


async def test_who_watches_a_rung_that_starts_anew_is_led_to_its_end(stage: Stage) -> None:
    old, new = (f"r1/240p{generation}/{PLAYLIST}" for generation in ("", ".1"))
    stage.store("144p", INIT, *(segment_name(index) for index in range(3)))
    stage.store_sound(stage.sounds, whole=True)
    stage.store("240p", INIT, segment_name(0), segment_name(1))
    assert await stage.rungs() == ["240p", "144p"]
    watched = await stage.read(old)

    # The last segment never came: the rung starts anew beside what is stored.
    plan = stage.encoded.work.plan
    anew = tuple(r.model_copy(update={"generation": 1}) if r.quality == "240p" else r for r in plan.renditions)
    plan = plan.model_copy(update={"renditions": anew})
    await stage.replan(plan)
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
    await stage.publish(plan)
    assert await stage.can_be_played(old) == expected
    assert (await stage.read(old)).endswith("#EXT-X-ENDLIST\n")
    assert await stage.can_be_played(new) == [segment_name(index) for index in range(3)]


async def test_a_lowest_rung_that_starts_anew_does_not_end_the_show(stage: Stage) -> None:
    stage.store("144p", INIT, segment_name(0), segment_name(1))
    stage.store_sound(2)
    assert await stage.rungs() == ["144p"]
    plan = stage.encoded.work.plan
    anew = tuple(r.model_copy(update={"generation": 1}) if r.quality == "144p" else r for r in plan.renditions)
    await stage.replan(plan.model_copy(update={"renditions": anew}))
    assert await stage.rungs() == ["144p"], "the old one, until the new one has caught up"
    stage.store("144p", INIT, segment_name(0), generation=".1")
    assert await stage.rungs() == ["144p.1"]


async def test_who_hears_a_sound_that_starts_anew_is_led_to_its_end(stage: Stage) -> None:
    """As when the ffmpeg that began it is upgraded away."""
    old = f"r1/audio_0/{PLAYLIST}"
    stage.store("144p", INIT, *(segment_name(index) for index in range(3)))
    stage.store("240p", INIT, *(segment_name(index) for index in range(3)))
    stage.store_sound(2)
    watched = await stage.read(old)
    plan = stage.encoded.work.plan
    plan = plan.model_copy(update={"audio": (plan.audio[0].model_copy(update={"generation": 1}),)})
    await stage.replan(plan)
    assert await stage.read(old) == watched, "nothing new is there yet"
    assert '"r1/audio_0/playlist.m3u8"' in await stage.read("master.m3u8"), "the old one, until the new one catches up"
    stage.store_sound(1, generation=".1")
    assert '"r1/audio_0.1/playlist.m3u8"' in await stage.read("master.m3u8")
    assert await stage.read(old) == watched
    stage.store_sound(stage.sounds, whole=True, generation=".1")
    grown = await stage.read(old)
    assert grown.startswith(watched) and grown.endswith("#EXT-X-ENDLIST\n")
    expected = [f"{'' if index < 2 else '../audio_0.1/'}{segment_name(index)}" for index in range(stage.sounds)]
    assert await stage.can_be_played(old) == expected
    await stage.publish(plan)
    assert await stage.can_be_played(old) == expected
    assert len(await stage.can_be_played(f"r1/audio_0.1/{PLAYLIST}")) == stage.sounds


async def test_a_second_sound_holds_nothing_back_and_is_listed_from_its_opening_until_it_failed_for_good(
    stage: Stage,
) -> None:
    plan = stage.encoded.work.plan
    second = plan.audio[0].model_copy(update={"track": 1, "name": "Second", "default": False})
    await stage.replan(plan.model_copy(update={"audio": (plan.audio[0].model_copy(update={"default": True}), second)}))
    stage.store("144p", INIT, segment_name(0))
    assert await stage.status("master.m3u8") == 404, "the default sound is not there"
    stage.store_sound(1)
    master = await stage.read("master.m3u8")
    assert "r1/audio_0/playlist.m3u8" in master and "r1/audio_1/" not in master

    folder = stage.api.root / PREFIX / "r1"
    shutil.copytree(folder / "audio_0", folder / "audio_1")
    await stage.tell("audio:1", 1, will_retry=True)
    assert "r1/audio_1/playlist.m3u8" in await stage.read("master.m3u8"), "it is tried again"
    await stage.tell("audio:1", 2)
    assert "r1/audio_1/" not in await stage.read("master.m3u8")


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
