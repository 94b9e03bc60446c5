"""The steps themselves, on real ffmpeg and a real folder, without a Temporal server."""

import dataclasses
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities import pulse
from activities.audio import AudioSteps
from activities.transcode import TranscodeSteps
from activities.verifying import VerifySteps
from contracts.end_steps import VerifyRenditions
from contracts.ids import JobId, ObjectKey
from contracts.layout import INIT, rendition_prefix, segment_name, timeline_key
from contracts.plan import Rung
from contracts.renditions import AudioTimeline
from contracts.steps import EncodeAudio, EncodedAudio, QualityProgress, StepProgress
from media.planning import PlanOptions
from media.tools import Toolbox
from storage.local import LocalStore
from tests.support.clips import Clips
from tests.support.encoding import IDS, PREFIX, Work, prepare, transcode

KEY = ObjectKey("uploads/1")


@asynccontextmanager
async def stored(source: Path, folder: Path) -> AsyncIterator[LocalStore]:
    store = LocalStore(folder)
    await store.put_file(KEY, source)
    yield store


def sound(work: Work, track: int = 0) -> EncodeAudio:
    return work.audio(track).model_copy(update={"prefix": f"{PREFIX}r1/audio_{track}/", "ffmpeg": work.plan.ffmpeg})


@pytest.mark.parametrize(("amount", "some"), [(1, False), (20, True)])
async def test_a_broken_audio_track_costs_the_sound_and_not_the_video(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, amount: int, some: bool
) -> None:
    broken = tmp_path / "broken.mp4"
    clips.ffmpeg("-i", clips.get("land.mp4"), "-c", "copy", "-bsf:a", f"noise=amount={amount}", broken)
    work = await prepare(tools, broken, options)
    assert work.facts.audio, "the packets are there; what is in them is not known yet"
    async with stored(broken, tmp_path / "store") as store:
        steps = AudioSteps(store, tools, stall_s=30)
        done = await ActivityEnvironment().run(steps.encode_audio, sound(work))
        assert isinstance(done, EncodedAudio)
        assert bool(done.segments) == some
        names = [facts.key.rpartition("/")[2] for facts in await store.list(f"{PREFIX}r1/audio_0/")]
        assert (segment_name(0) in names) == some
        told = await store.read_bytes(timeline_key(f"{PREFIX}r1/audio_0/", JobId(1), 0, 1))
        timeline = AudioTimeline.model_validate_json(told)
        assert timeline.whole and timeline.segment_durations == done.segment_durations


async def test_a_track_without_sound_is_left_out_and_another_becomes_the_default(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    source = clips.get("multiaudio.mp4")
    work = await prepare(tools, source, options)
    async with stored(source, tmp_path / "store") as store:
        await transcode(work, tmp_path / "store" / PREFIX / "r1")
        steps = AudioSteps(store, tools, stall_s=30)
        english = await ActivityEnvironment().run(steps.encode_audio, sound(work, 0))
        german = EncodedAudio(track=1, prefix=f"{PREFIX}r1/audio_1/", segments=0, segment_durations=())
        request = VerifyRenditions(
            job_id=IDS["job_id"],
            video_id=IDS["video_id"],
            slug="clip",
            output="r1",
            plan=work.plan,
            audio=(english, german),
        )
        assert [track.default for track in work.plan.audio] == [False, True]
        found = await ActivityEnvironment().run(VerifySteps(store).verify, request)
    assert [(track.track, track.default) for track in found.audio] == [(0, True)]


async def test_a_rung_that_came_out_otherwise_than_planned_or_lost_something_is_broken_and_no_other(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    work = await prepare(tools, clips.get("short.mp4"), options)
    store = LocalStore(tmp_path / "store")
    await transcode(work, tmp_path / "store" / PREFIX / "r1")

    async def broken(*, wider: int = 0) -> list[str]:
        first, *others = work.plan.renditions
        planned = (first.model_copy(update={"width": first.width + wider}), *others)
        plan = work.plan.model_copy(update={"renditions": planned})
        ids = {name: IDS[name] for name in ("job_id", "video_id")}
        request = VerifyRenditions(**ids, slug="clip", output="r1", plan=plan)
        found = await ActivityEnvironment().run(VerifySteps(store).verify, request)
        assert [r.quality for r in found.video] == [r.quality for r in others] or not found.broken
        return [each.sentence for each in found.broken]

    folder = tmp_path / "store" / rendition_prefix("clip", "r1", work.plan.renditions[0].quality)
    assert await broken() == []
    assert await broken(wider=2) == ["360p came out as 640x360."]
    (folder / INIT).rename(folder / "elsewhere")
    assert await broken() == ["360p: the init segment is missing."]
    (folder / segment_name(0)).write_bytes(b"")
    assert await broken() == ["360p: 1 of 1 segments are missing."]


@pytest.mark.parametrize("jump_s", [5, 3000, 864_000])
async def test_a_jump_in_the_sound_makes_no_hours_of_silence(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, jump_s: int
) -> None:
    jumping = tmp_path / "jumping.mkv"
    # By the packet: filters would fill or drop, and a jump in a file is one between packets.
    moved = f"setts=ts=TS+gte(N\\,80)*{jump_s}/TB"
    clips.ffmpeg("-i", clips.get("land.mp4"), "-c", "copy", "-copyts", "-bsf:a", moved, jumping)
    assert 1.6 < await _heard_s(tools, jumping, tmp_path / "store", options) <= 4.1


async def test_a_single_wrong_time_in_the_sound_costs_only_itself(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    stray = tmp_path / "stray.mkv"
    clips.ffmpeg("-i", clips.get("land.mp4"), "-c", "copy", stray)
    # No muxer writes such a file. A block of Matroska's second track: 0x82, milliseconds, flags.
    data = stray.read_bytes()
    blocks = [struct.pack(">Bh", 0x82, ms) for ms in range(1700, 1800)]
    block = next(one for one in blocks if data.count(one + b"\x80") == 1)
    (at,) = struct.unpack(">h", block[1:])
    stray.write_bytes(data.replace(block + b"\x80", struct.pack(">Bh", 0x82, at + 20_000) + b"\x80"))
    assert 2.9 < await _heard_s(tools, stray, tmp_path / "store", options) <= 4.1


async def _heard_s(tools: Toolbox, source: Path, folder: Path, options: PlanOptions) -> float:
    """Encode the sound of a clip of three seconds whose sound jumps, and tell its length."""
    work = await prepare(tools, source, options)
    assert work.plan.grid.frames == 90
    assert work.facts.audio[0].end_s > 6, "the jump must be in the file"
    async with stored(source, folder) as store:
        done = await ActivityEnvironment().run(AudioSteps(store, tools, stall_s=30).encode_audio, sound(work))
    return sum(length * count for length, count in done.segment_durations) / 48_000


async def test_sound_longer_than_the_picture_is_cut_a_second_after_it(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions
) -> None:
    longer = tmp_path / "longer.mkv"
    tone = ["-f", "lavfi", "-i", "sine=d=8:r=48000", "-map", "0:v", "-map", "1:a"]
    clips.ffmpeg("-i", clips.get("noaudio.mp4"), *tone, "-c:v", "copy", "-c:a", "flac", longer)
    work = await prepare(tools, longer, options)
    assert any("5.0 s after the picture; it is cut" in note for note in work.plan.notes)
    async with stored(longer, tmp_path / "store") as store:
        done = await ActivityEnvironment().run(AudioSteps(store, tools, stall_s=30).encode_audio, sound(work))
    seconds = sum(length * count for length, count in done.segment_durations) / 48_000
    assert seconds == pytest.approx(4, abs=0.05)


async def test_a_resumed_span_of_a_source_that_cannot_seek_lives_until_its_first_picture(
    tools: Toolbox, clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = tmp_path / "long.ts"
    clips.ffmpeg("-stream_loop", "14", "-i", clips.get("hd.mp4"), "-map", "0:v", "-c", "copy", stream)
    ladder = (Rung(name="144p", short_side=144, video_kbps=200, audio_kbps=64),)
    work = await prepare(tools, stream, PlanOptions(ladder=ladder, segment_seconds=6, preset="ultrafast"))
    assert not work.facts.video.seekable
    monkeypatch.setattr(pulse, "EVERY_S", 0.2)
    beats: list[StepProgress | None] = []
    last = work.plan.grid.segments - 1
    here = QualityProgress(quality="144p", segments_total=last + 1, segments_completed=last, percent=90)
    environment = ActivityEnvironment()
    # What the attempt before has told.
    environment.info = dataclasses.replace(environment.info, heartbeat_details=[StepProgress(qualities=(here,))])
    environment.on_heartbeat = lambda *details: beats.append(details[0] if details else None)
    async with stored(stream, tmp_path / "store") as store:
        folder = rendition_prefix("clip", "r1", "144p", 0)
        for index in range(last):
            await store.put_bytes(folder + segment_name(index), b"stored before")
        steps = TranscodeSteps(store, tools, stall_s=1)
        await environment.run(steps.transcode_span, work.span(alone=False))
        assert await store.stat(folder + segment_name(last))
    waiting = [beat for beat in beats if beat is None or beat.frames == 0]
    assert len(waiting) > 5, "it was long enough without a picture to be taken for stalled"
    assert all(beat and beat.qualities[0].segments_completed >= last for beat in beats), "no beat wipes the progress"
