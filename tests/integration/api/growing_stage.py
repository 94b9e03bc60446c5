"""A video that is being encoded, by hand: an API, an unfinished job, and real segments to store one by one."""

import asyncio
import json
import re
import shutil
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import httpx
from temporalio.testing import ActivityEnvironment

from activities.publishing import ManifestSteps
from activities.verifying import VerifySteps
from contracts.end_steps import VerifyRenditions, WriteManifests
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.layout import INIT, segment_name, timeline_key
from contracts.plan import Rung, TranscodePlan
from contracts.renditions import AudioTimeline
from contracts.steps import EncodedAudio
from media.boxes import read_init, read_segment
from media.planning import PlanOptions
from media.tools import find_tools
from mirror import writes
from mirror.writes import NewVideo
from storage.local import LocalStore
from tests.integration.api.running import Api
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


def make_encoded(here: Path) -> Encoded:

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

    def store_sound(self, segments: int, *, whole: bool = False, generation: str = "") -> None:
        self.store("audio_0", INIT, *(segment_name(index) for index in range(segments)), generation=generation)
        made = self.encoded.folder / "r1" / "audio_0"
        init = read_init((made / INIT).read_bytes())
        lengths = [read_segment(made / segment_name(index), init).duration for index in range(segments)]
        runs = tuple((length, len(list(run))) for length, run in groupby(lengths))
        timeline = AudioTimeline(timescale=init.timescale, segment_durations=runs, whole=whole)
        told = self.timeline(generation=generation)
        told.parent.mkdir(exist_ok=True)
        told.write_text(timeline.model_dump_json())

    def timeline(self, attempt: int = 1, generation: str = "") -> Path:
        return self.api.root / timeline_key(f"{PREFIX}r1/audio_0{generation}/", JobId(self.job_id), 0, attempt)

    @property
    def sounds(self) -> int:
        """Count the segments of the sound when it is whole."""
        return len(list((self.encoded.folder / "r1/audio_0").glob("seg_*")))

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

    async def replan(self, plan: TranscodePlan) -> None:
        [job] = await self.api.rows("SELECT video_id FROM transcoding_jobs WHERE id = :id", id=self.job_id)
        async with self.api.database.write() as session:
            await writes.record_plan(session, JobId(self.job_id), job["video_id"], plan)

    async def publish(self, plan: TranscodePlan) -> None:
        """Check all of it and write its playlists, by the real steps; then the job has ended."""
        store, steps = LocalStore(self.api.root), ActivityEnvironment()
        ids = {"job_id": JobId(self.job_id), "video_id": VideoId(1), "slug": "clip"}
        sound = plan.audio[0]
        generation = f".{sound.generation}" if sound.generation else ""
        timeline = AudioTimeline.model_validate_json(self.timeline(generation=generation).read_text())
        heard = EncodedAudio(
            track=sound.track,
            prefix=f"{PREFIX}r1/audio_0{generation}/",
            segments=timeline.segments,
            segment_durations=timeline.segment_durations,
        )
        verify = VerifyRenditions(**ids, output="r1", plan=plan, audio=(heard,), again=True)
        whole = await steps.run(VerifySteps(store).verify, verify)
        assert not whole.broken
        await steps.run(ManifestSteps(store).write_manifests, WriteManifests(**ids, grid=plan.grid, renditions=whole))
        await self.api.change("UPDATE transcoding_jobs SET completed_at = now() WHERE id = :id", id=self.job_id)


async def begin(api: Api, encoded: Encoded) -> Stage:
    async with api.database.write() as session:
        video_id = await writes.next_video_id(session)
        new = NewVideo(video_id=video_id, title="Clip", source_key=ObjectKey(f"uploads/{video_id}.mp4"))
        created = await writes.create_video(session, new)
        await writes.record_plan(session, created.job_id, video_id, encoded.work.plan)
    assert created.slug == "clip"
    return Stage(api, encoded, created.job_id)
