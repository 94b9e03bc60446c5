"""A job in any state, by the writes that bring it there."""

from dataclasses import dataclass
from typing import Any

from contracts.end_steps import FailJob, Finalize, VerifiedRenditions
from contracts.ids import JobId, VideoId
from contracts.media import FrameRate
from contracts.renditions import VideoRendition
from contracts.states import Codec
from contracts.steps import MissingRendition
from mirror import writes
from tests.integration.api.running import Api
from tests.integration.mirror.story import PLAN
from tests.support.eventually import eventually

STATES = (
    "unstarted",
    "unclaimed",
    "claimed",
    "expired",
    "retrying",
    "paused",
    "completed",
    "failed",
    "cancelled",
)
ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True)
class Made:
    video_id: int
    job_id: int
    slug: str

    @property
    def workflow_id(self) -> str:
        return f"video-{self.video_id}-job-{self.job_id}"


async def upload(api: Api, **fields: str) -> Made:
    answer = await api.http.put("/api/videos", params={"filename": "clip.mp4"} | fields, content=b"not a video")
    assert answer.status_code == 201, answer.text
    body = answer.json()
    return Made(body["video_id"], body["job_id"], body["slug"])


async def registered(api: Api) -> None:
    """Wait until the API has told Temporal what workflows are searched by."""

    async def is_started() -> bool:
        made = await upload(api)
        return (await job_row(api, made.job_id))["workflow_started_at"] is not None

    await eventually(is_started, within=60, every=0.3)
    await api.change("DELETE FROM videos")


async def job_row(api: Api, job_id: int) -> dict[str, Any]:
    query = """
        SELECT j.*, s.state, v.status AS video_status, v.error_code AS video_error_code, v.deleted_at, v.playable_at
        FROM transcoding_jobs j JOIN job_states s ON s.job_id = j.id JOIN videos v ON v.id = j.video_id WHERE j.id = :id
    """
    [row] = await api.rows(query, id=job_id)
    return dict(row)


async def events(api: Api, job_id: int) -> list[str]:
    query = "SELECT event FROM job_events WHERE job_id = :id ORDER BY id"
    return [row["event"] for row in await api.rows(query, id=job_id)]


def rendition(slug: str, quality: str = "360p", output: str = "r1") -> VideoRendition:
    side = int(quality.removesuffix("p"))
    return VideoRendition(
        quality=quality,
        prefix=f"videos/{slug}/{output}/{quality}/",
        width=side * 16 // 9,
        height=side,
        codec=Codec.H264,
        codecs="avc1.64001e",
        bitrate_kbps=600,
        frame_rate=FrameRate(num=25),
        timescale=12800,
        frame_duration=512,
        segment_frames=150,
        frames=600,
        size_bytes=1000,
        peak_bandwidth=700_000,
        average_bandwidth=600_000,
    )


async def publish(
    api: Api, made: Made, *qualities: str, output: str = "r1", missing: tuple[MissingRendition, ...] = ()
) -> None:
    """End a job well, as its publish and finalize steps do, with something for a player to fetch."""
    job_id, video_id = JobId(made.job_id), VideoId(made.video_id)
    whole = VerifiedRenditions(video=tuple(rendition(made.slug, quality, output) for quality in qualities))
    async with api.database.write() as s:
        await writes.record_plan(s, job_id, video_id, PLAN)
        await writes.record_renditions(s, job_id, video_id, whole)
        end = Finalize(job_id=job_id, video_id=video_id, duration_s=24, qualities=qualities, missing=missing)
        assert await writes.complete_job(s, end)
    folder = api.root / "videos" / made.slug
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "master.m3u8").write_text(f"#EXTM3U\n# {output}\n")


async def fail(api: Api, made: Made, code: str = "ENCODER_CRASHED") -> None:
    async with api.database.write() as s:
        job_id, video_id = JobId(made.job_id), VideoId(made.video_id)
        await writes.record_plan(s, job_id, video_id, PLAN)
        await writes.fail_job(s, FailJob(job_id=job_id, video_id=video_id, code=code, sentence="It broke."))


async def in_state(api: Api, state: str) -> Made:
    """Bring a new video's job into a state."""
    made = await upload(api)
    held = "worker_id = 'w', claimed_at = now(), claim_expires_at = now()"
    change = {
        "unstarted": "workflow_started_at = NULL",
        "claimed": f"{held} + interval '1 hour'",
        "expired": f"{held} - interval '1 second'",
        "retrying": "last_error = 'once', attempt_number = 2",
    }.get(state)
    if change:
        await api.change(f"UPDATE transcoding_jobs SET {change} WHERE id = :id", id=made.job_id)
    match state:
        case "paused":
            answer = await api.http.post(f"/api/jobs/{made.job_id}/pause")
            assert answer.status_code == 200, answer.text
        case "completed":
            await publish(api, made, "720p", "360p")
        case "failed":
            await fail(api, made)
        case "cancelled":
            await fail(api, made, "CANCELLED")
    expected = "unclaimed" if state == "unstarted" else state
    assert (await job_row(api, made.job_id))["state"] == expected
    return made
