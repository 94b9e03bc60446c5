"""Commands that change something, over real HTTP to a small stand-in."""

import json

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.terminal import CliError
from tests.unit.cli.fake_api import FakeApi, progress, video

run = CliRunner()
JOB = {"job_id": 9, "state": "claimed", "tier": "free"}
CREATED = {"video_id": 7, "slug": "a-walk", "job_id": 10, "status": "ready"}


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_command_on_a_video_reaches_its_newest_job(api: FakeApi, verb: str) -> None:
    api.say("GET", "/api/videos/7", video())
    api.say("POST", f"/api/jobs/9/{verb}", JOB | {"state": "paused"})

    result = run.invoke(app, [verb, "7"])

    assert (result.exit_code, result.output) == (0, "Video 7: job 9 is paused.\n")
    assert api.headers[-1]["X-Actor"].startswith("vlog:")


def test_a_priority_is_a_tier(api: FakeApi) -> None:
    api.say("GET", "/api/videos/7", video())
    api.say("POST", "/api/jobs/9/priority", JOB | {"tier": "viral"})

    result = run.invoke(app, ["priority", "7", "--tier", "viral", "--json"])

    assert json.loads(result.stdout)["tier"] == "viral"
    assert json.loads(api.bodies[-1]) == {"tier": "viral"}


@pytest.mark.parametrize(
    ("state", "says"), [("claimed", "job 9 is being cancelled"), ("completed", "job 9 is completed")]
)
def test_a_cancel_says_whether_there_was_anything_to_cancel(api: FakeApi, state: str, says: str) -> None:
    api.say("POST", "/api/videos/7/cancel", JOB | {"state": state})

    result = run.invoke(app, ["cancel", "7"])

    assert result.exit_code == 0 and says in result.output


def test_a_retranscode_takes_qualities_and_of_many_videos_waits_behind_everybody(api: FakeApi) -> None:
    for number in (7, 8):
        api.say("POST", f"/api/videos/{number}/retranscode", CREATED, status=201)

    one = run.invoke(app, ["retranscode", "7", "--quality", "720p", "--quality", "480p"])
    many = run.invoke(app, ["retranscode", "7", "8"])

    assert (one.exit_code, many.exit_code) == (0, 0)
    assert "watch 7" in one.output
    bodies = [json.loads(body) for body in api.bodies]
    assert bodies[0] == {"qualities": ["720p", "480p"], "tier": None, "delete_transcription": False}
    assert [body["tier"] for body in bodies[1:]] == ["bulk", "bulk"]


def test_one_that_is_refused_is_an_error_and_of_several_the_others_are_done(api: FakeApi) -> None:
    api.say("POST", "/api/videos/7/retry", {"error": "JOB_UNFINISHED", "detail": "Job 9 has not ended."}, status=409)
    api.say("POST", "/api/videos/8/retry", CREATED, status=201)

    with pytest.raises(CliError, match="JOB_UNFINISHED"):
        run.invoke(app, ["retry", "7"], catch_exceptions=False)
    several = run.invoke(app, ["retry", "7", "8"])

    assert several.exit_code == 1
    assert "job 10" in several.output and "Video 7" in several.stderr


def test_what_is_deleted_can_be_brought_back(api: FakeApi) -> None:
    api.say("DELETE", "/api/videos/7", video())
    api.say("POST", "/api/videos/7/restore", video())

    assert "restore 7" in run.invoke(app, ["delete", "7"]).output
    assert "is back (ready)" in run.invoke(app, ["restore", "7"]).output


def test_a_ready_video_is_watched_through_its_retranscode(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.following._POLL_SECONDS", 0.01)
    api.say("GET", "/api/videos/7", video())
    busy, paused = progress("ready", 40, 2, state="claimed"), progress("ready", 40, 2, state="paused")
    api.say("GET", "/api/videos/7/progress", busy, paused, progress("ready", 100, 4, state="completed"))

    result = run.invoke(app, ["watch", "7"])

    assert result.exit_code == 0
    assert "transcode" in result.output and "paused" in result.output


def test_show_names_what_is_missing_and_why_the_last_job_failed(api: FakeApi) -> None:
    api.say("GET", "/api/videos/7", video(missing=[{"name": "1080p", "code": "X", "sentence": "ffmpeg crashed."}]))
    api.say("GET", "/api/videos/7/progress", progress("ready", 40, state="failed", last_error="No space left."))

    output = run.invoke(app, ["show", "7"]).output

    assert "1080p: ffmpeg crashed." in output
    assert "failed: No space left." in output


def test_a_retranscode_that_fails_is_no_success_although_the_video_plays(api: FakeApi) -> None:
    api.say("GET", "/api/videos/7", video())
    api.say("GET", "/api/videos/7/progress", progress("ready", 40, state="failed", last_error="No space left."))

    result = run.invoke(app, ["watch", "7"])

    assert result.exit_code == 1
    assert "failed: No space left." in result.output
