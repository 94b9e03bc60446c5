"""Retry and retranscode: what the new job is asked for, and what the video is meanwhile and afterwards."""

import asyncio
from typing import Any

from contracts.end_steps import FailJob, Finalize, VerifiedRenditions
from contracts.ids import JobId, VideoId
from contracts.steps import MissingRendition, TranscodeRequest
from mirror import writes, writes_again
from mirror.writes_again import Again
from tests.integration.api.running import Api
from tests.integration.commands.story import Made, events, fail, in_state, job_row, publish, rendition, upload
from tests.integration.mirror.story import PLAN
from tests.support.eventually import eventually

LOST = MissingRendition(name="720p", code="ENCODER_CRASHED", sentence="ffmpeg crashed.")


async def again(api: Api, made: Made, verb: str, **body: Any) -> Made:
    answer = await api.http.post(f"/api/videos/{made.video_id}/{verb}", json=body or None)
    assert answer.status_code == 201, answer.text
    created = answer.json()
    assert answer.headers["Location"] == f"/api/jobs/{created['job_id']}"
    return Made(created["video_id"], created["job_id"], created["slug"])


async def asked_for(api: Api, made: Made) -> TranscodeRequest:
    """Read what the workflow was started with."""
    handle = api.temporal.get_workflow_handle(made.workflow_id)
    [first] = [event async for event in handle.fetch_history_events() if event.event_id == 1]
    return TranscodeRequest.model_validate_json(
        first.workflow_execution_started_event_attributes.input.payloads[0].data
    )


async def video_of(api: Api, made: Made) -> dict[str, Any]:
    video: dict[str, Any] = (await api.http.get(f"/api/videos/{made.video_id}")).json()
    return video


async def test_a_retry_inherits_output_and_plan_of_the_job_that_failed(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "failed")
    new = await again(quiet_api, made, "retry")
    request = await asked_for(quiet_api, new)
    assert (request.kind, request.output, request.keep) == ("retry", "r1", ())
    assert request.plan == PLAN
    video = await video_of(quiet_api, made)
    assert (video["status"], video["error_code"], video["job_id"]) == ("pending", None, new.job_id)
    assert (await events(quiet_api, made.job_id))[-1] == "job.retried"
    assert (await events(quiet_api, new.job_id))[0] == "job.created"
    # The first one is history: its row stays as it ended.
    assert (await job_row(quiet_api, made.job_id))["state"] == "failed"


async def test_what_failed_before_it_had_a_plan_is_planned_by_its_retry(quiet_api: Api) -> None:
    made = await upload(quiet_api, qualities="360p")
    async with quiet_api.database.write() as s:
        end = FailJob(job_id=JobId(made.job_id), video_id=VideoId(made.video_id), code="X", sentence="No.")
        await writes.fail_job(s, end)
    request = await asked_for(quiet_api, await again(quiet_api, made, "retry"))
    assert (request.kind, request.plan, request.qualities) == ("upload", None, ("360p",))


async def test_a_retry_that_may_keep_nothing_begins_in_a_folder_of_its_own(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "failed")
    async with quiet_api.database.write() as s:
        new = await writes_again.retry_video(s, VideoId(made.video_id), Again(keep_completed=False))
    assert new is not None
    assert (new.request.output, new.request.plan, new.request.kind) == ("r2", None, "upload")


async def test_a_retry_of_a_ready_video_makes_just_what_is_missing(quiet_api: Api) -> None:
    made = await upload(quiet_api)
    await publish(quiet_api, made, "360p", missing=(LOST,))
    video = await video_of(quiet_api, made)
    assert (video["status"], video["missing"]) == ("ready", [LOST.model_dump()])
    new = await again(quiet_api, made, "retry")
    request = await asked_for(quiet_api, new)
    assert (request.qualities, request.keep, request.output) == (("720p",), ("360p",), "r1")
    assert (await video_of(quiet_api, made))["status"] == "ready"

    whole = VerifiedRenditions(video=(rendition(made.slug, "720p"),))
    await _end(quiet_api, new, whole, keep=("360p",))
    video = await video_of(quiet_api, made)
    assert [quality["quality"] for quality in video["qualities"]] == ["720p", "360p"]
    assert video["missing"] == []
    refused = await quiet_api.http.post(f"/api/videos/{made.video_id}/retry")
    assert (refused.status_code, refused.json()["error"]) == (409, "NOTHING_TO_RETRY")


async def test_a_retry_that_fails_again_leaves_what_was_missing_missing(quiet_api: Api) -> None:
    made = await upload(quiet_api)
    await publish(quiet_api, made, "360p", missing=(LOST,))
    await fail(quiet_api, await again(quiet_api, made, "retry"))
    video = await video_of(quiet_api, made)
    assert (video["status"], video["missing"]) == ("ready", [LOST.model_dump()])
    request = await asked_for(quiet_api, await again(quiet_api, made, "retry"))
    assert (request.qualities, request.keep) == (("720p",), ("360p",))


async def test_a_retranscode_has_an_output_of_its_own_and_the_video_stays_ready(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "completed")
    new = await again(quiet_api, made, "retranscode")
    request = await asked_for(quiet_api, new)
    assert (request.kind, request.output, request.plan, request.keep) == ("retranscode", "r2", None, ())
    row = await job_row(quiet_api, new.job_id)
    assert row["retranscode_metadata"] == {
        "retranscode_all": True,
        "qualities_to_delete": ["360p", "720p"],
        "delete_transcription": False,
        "video_dir": f"videos/{made.slug}/",
    }
    assert (row["video_status"], row["state"]) == ("ready", "unclaimed")
    assert "job.retranscode" in await events(quiet_api, new.job_id)
    # What people play is the stored stream, not the one that grows.
    await quiet_api.change(
        "UPDATE transcoding_jobs SET plan = (SELECT plan FROM transcoding_jobs WHERE id = :old) WHERE id = :id",
        old=made.job_id,
        id=new.job_id,
    )
    played = await quiet_api.http.get(f"/videos/{made.slug}/master.m3u8")
    assert played.text == "#EXTM3U\n# r1\n"
    assert (await quiet_api.http.get(f"/videos/{made.slug}/r2/360p/playlist.m3u8")).status_code == 404

    # A smaller ladder tomorrow: what was not made anew is no longer listed.
    await _end(quiet_api, new, VerifiedRenditions(video=(rendition(made.slug, "360p", "r2"),)))
    video = await video_of(quiet_api, made)
    assert [quality["quality"] for quality in video["qualities"]] == ["360p"]
    assert (await job_row(quiet_api, new.job_id))["retranscode_metadata"] is None
    request = await asked_for(quiet_api, await again(quiet_api, made, "retranscode"))
    assert request.output == "r3"


async def test_a_partial_retranscode_keeps_the_others_and_their_grid(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "completed")
    new = await again(quiet_api, made, "retranscode", qualities=["720p"], tier="bulk")
    request = await asked_for(quiet_api, new)
    assert (request.qualities, request.keep, request.output, request.tier) == (("720p",), ("360p",), "r2", "bulk")
    assert request.plan is not None and request.plan.grid == PLAN.grid
    metadata = (await job_row(quiet_api, new.job_id))["retranscode_metadata"]
    assert (metadata["retranscode_all"], metadata["qualities_to_delete"]) == (False, ["720p"])

    await _end(quiet_api, new, VerifiedRenditions(video=(rendition(made.slug, "720p", "r2"),)), keep=("360p",))
    rows = await quiet_api.rows("SELECT quality, prefix FROM video_qualities ORDER BY quality")
    assert [(row["quality"], row["prefix"].split("/")[2]) for row in rows] == [("360p", "r1"), ("720p", "r2")]


async def test_a_retranscode_that_fails_changes_nothing_but_says_why(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "completed")
    new = await again(quiet_api, made, "retranscode")
    await fail(quiet_api, new)
    video = await video_of(quiet_api, made)
    assert (video["status"], video["error_code"]) == ("ready", None)
    assert [quality["quality"] for quality in video["qualities"]] == ["720p", "360p"]
    progress = (await quiet_api.http.get(f"/api/videos/{made.video_id}/progress")).json()
    assert (progress["state"], progress["last_error"], progress["error_code"]) == (
        "failed",
        "It broke.",
        "ENCODER_CRASHED",
    )
    # Tried again it is still all or nothing, in the folder it had.
    request = await asked_for(quiet_api, await again(quiet_api, made, "retry"))
    assert (request.kind, request.output, request.plan) == ("retry", "r2", PLAN)
    assert request.critical == ("720p", "360p", "audio")


async def test_only_one_at_a_time(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "completed")
    path = f"/api/videos/{made.video_id}/retranscode"
    answers = await asyncio.gather(*(quiet_api.http.post(path) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    assert {answer.json().get("error") for answer in answers} == {None, "JOB_UNFINISHED"}


async def test_qualities_that_cannot_be_made_are_refused(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "completed")
    await quiet_api.change("UPDATE videos SET source_width = 1280, source_height = 720")
    path = f"/api/videos/{made.video_id}/retranscode"
    unknown = await quiet_api.http.post(path, json={"qualities": ["999p"]})
    assert (unknown.status_code, unknown.json()["error"]) == (400, "QUALITIES_INVALID")
    large = await quiet_api.http.post(path, json={"qualities": ["1080p"]})
    assert (large.status_code, large.json()["error"]) == (409, "QUALITY_TOO_LARGE")
    typo = await quiet_api.http.post(path, json={"quality": ["720p"]})
    assert typo.status_code == 422


async def test_a_transcription_goes_with_the_old_stream_only_if_asked(quiet_api: Api) -> None:
    for asked, left in ((False, 1), (True, 0)):
        made = await in_state(quiet_api, "completed")
        await quiet_api.change("INSERT INTO transcriptions (video_id) VALUES (:id)", id=made.video_id)
        new = await again(quiet_api, made, "retranscode", delete_transcription=asked)
        count = "SELECT count(*) AS left FROM transcriptions WHERE video_id = :id"
        assert (await quiet_api.rows(count, id=made.video_id))[0]["left"] == 1
        await _end(quiet_api, new, VerifiedRenditions(video=(rendition(made.slug, "360p", "r2"),)))
        assert (await quiet_api.rows(count, id=made.video_id))[0]["left"] == left


async def test_a_deleted_video_is_gone_at_once_and_comes_back_under_its_address(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "completed")
    address = f"/videos/{made.slug}/master.m3u8"
    assert (await quiet_api.http.get(address)).status_code == 200
    answer = await quiet_api.http.delete(f"/api/videos/{made.video_id}", headers={"X-Actor": "ana"})
    assert answer.json()["deleted_at"] is not None
    assert (await quiet_api.http.get(address)).status_code == 404
    assert (await quiet_api.http.get(f"/api/videos/{made.video_id}")).status_code == 404
    other = await upload(quiet_api)
    assert other.slug != made.slug
    assert (await _listed(quiet_api), await _listed(quiet_api, deleted=True)) == ([other.video_id], [made.video_id])
    assert (await quiet_api.http.post(f"/api/videos/{made.video_id}/restore")).json()["deleted_at"] is None
    assert await _listed(quiet_api, deleted=True) == []
    assert (await quiet_api.http.get(address)).status_code == 200
    told = await quiet_api.rows("SELECT event, actor, fields FROM job_events WHERE job_id IS NULL ORDER BY id")
    assert [(row["event"], row["actor"]) for row in told] == [("video.deleted", "ana"), ("video.restored", None)]
    assert {row["fields"]["video_id"] for row in told} == {made.video_id}
    await quiet_api.change("UPDATE videos SET deleted_at = now(), purged_at = now() WHERE id = :id", id=made.video_id)
    gone = await quiet_api.http.post(f"/api/videos/{made.video_id}/restore")
    assert (gone.status_code, gone.json()["error"]) == (404, "VIDEO_NOT_FOUND")
    assert await _listed(quiet_api, deleted=True) == [], "nobody is offered what cannot come back"


async def _listed(api: Api, **filters: bool) -> list[int]:
    answer = await api.http.get("/api/videos", params=filters)
    return [video["video_id"] for video in answer.json()["items"]]


async def test_a_delete_cancels_a_retry_that_was_being_written(quiet_api: Api) -> None:
    made = await in_state(quiet_api, "failed")
    blocked = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"

    async def is_waiting() -> bool:
        return bool(await quiet_api.rows(blocked))

    async with quiet_api.database.write() as s:
        new = await writes_again.retry_video(s, VideoId(made.video_id), Again())
        assert new is not None
        deleting = asyncio.create_task(quiet_api.http.delete(f"/api/videos/{made.video_id}"))
        await eventually(is_waiting, within=60)
    assert (await deleting).status_code == 200
    row = await job_row(quiet_api, new.job_id)
    assert (row["state"], row["deleted_at"] is not None) == ("cancelled", True)


async def _end(api: Api, made: Made, whole: VerifiedRenditions, keep: tuple[str, ...] = ()) -> None:
    job_id, video_id = JobId(made.job_id), VideoId(made.video_id)
    qualities = tuple(video.quality for video in whole.video)
    async with api.database.write() as s:
        await writes.record_renditions(s, job_id, video_id, whole, keep)
        end = Finalize(job_id=job_id, video_id=video_id, duration_s=24, qualities=qualities)
        assert await writes.complete_job(s, end)
