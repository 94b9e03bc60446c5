"""Commands on videos, over real HTTP to a small stand-in."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import following
from cli.client import Away, Unreachable
from cli.main import app
from cli.terminal import CliError
from tests.unit.cli.fake_api import FakeApi, progress, video

run = CliRunner()


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_POLL_SECONDS", 0.01)


def test_an_upload_sends_the_very_bytes_and_says_how_to_follow(api: FakeApi, tmp_path: Path) -> None:
    api.say("PUT", "/api/videos", {"video_id": 7, "slug": "clip", "job_id": 9, "status": "pending"}, status=201)
    clip = tmp_path / "my clip.mp4"
    clip.write_bytes(b"x" * 3_000_000)

    result = run.invoke(app, ["upload", str(clip), "--title", "Two words", "--tier", "creator"])

    assert result.exit_code == 0, result.output
    assert api.bodies == [b"x" * 3_000_000]
    assert api.queries == [{"filename": ["my clip.mp4"], "title": ["Two words"], "tier": ["creator"]}]
    assert " watch 7" in result.output


def test_an_upload_as_json_is_one_object_per_file(api: FakeApi, tmp_path: Path) -> None:
    api.say("PUT", "/api/videos", {"video_id": 7, "slug": "clip", "job_id": 9, "status": "pending"}, status=201)
    files = [tmp_path / "a.mp4", tmp_path / "b.mp4"]
    for file in files:
        file.write_bytes(b"x")

    result = run.invoke(app, ["upload", *map(str, files), "--json"])

    assert [json.loads(line)["video_id"] for line in result.stdout.splitlines()] == [7, 7]


@pytest.mark.parametrize("kind", ["missing", "empty", "folder"])
def test_what_is_no_file_is_refused_before_anything_is_sent(api: FakeApi, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "clip.mp4"
    if kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()

    result = run.invoke(app, ["upload", str(path)])

    assert isinstance(result.exception, CliError)
    assert api.bodies == []


def test_a_refused_upload_tells_the_reason_and_the_code(api: FakeApi, tmp_path: Path) -> None:
    api.say("PUT", "/api/videos", {"error": "TITLE_TOO_LONG", "detail": "The title is too long."}, status=400)
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(b"x")

    result = run.invoke(app, ["upload", str(clip)])

    assert isinstance(result.exception, CliError)
    assert result.exception.sentence == "The title is too long. (TITLE_TOO_LONG)"


def test_the_admin_secret_travels_in_its_header(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_ADMIN_SECRET", "hush-hush-hush-hush")
    api.say("GET", "/api/videos", {"items": [], "next_cursor": None})

    assert run.invoke(app, ["list"]).exit_code == 0
    assert {name.lower(): value for name, value in api.headers[0].items()}["x-admin-secret"] == "hush-hush-hush-hush"


def test_a_list_shows_the_newest_and_disarms_titles(api: FakeApi) -> None:
    api.say("GET", "/api/videos", {"items": [video(title="[bold]x\x1b[2J")], "next_cursor": None})

    result = run.invoke(app, ["list", "--status", "ready", "--limit", "5"])

    assert api.queries == [{"limit": ["5"], "status": ["ready"]}]
    assert "a-walk" in result.output and "[bold]x" in result.output
    assert "\x1b" not in result.output


def test_show_names_where_it_plays(api: FakeApi) -> None:
    api.say("GET", "/api/videos/7", video())
    api.say("GET", "/api/videos/7/progress", progress("ready", 100, 4))

    result = run.invoke(app, ["show", "7"])

    assert f"{api.url}/videos/a-walk/master.m3u8" in result.output
    assert json.loads(run.invoke(app, ["show", "7", "--json"]).stdout)["progress"]["status"] == "ready"


def test_watch_prints_a_line_only_when_something_changed(api: FakeApi) -> None:
    steps = [progress(percent=10, done=1), progress(percent=11, done=1), progress(percent=50, done=2)]
    api.say("GET", "/api/videos/7/progress", *steps, progress("ready", 100, 4, step=None))
    api.say("GET", "/api/videos/7", video())

    result = run.invoke(app, ["watch", "7"])

    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if "720p" in line]
    assert len(lines) == 3
    assert "720p 2/4" in lines[1] and "1080p" not in lines[1]


def test_watch_exits_1_with_the_reason_when_the_video_failed(api: FakeApi) -> None:
    api.say("GET", "/api/videos/7/progress", progress("failed", 0))
    api.say(
        "GET", "/api/videos/7", video(status="failed", error_code="SOURCE_UNREADABLE", error_message="It is broken.")
    )

    result = run.invoke(app, ["watch", "7"])

    assert result.exit_code == 1
    assert "It is broken. (SOURCE_UNREADABLE)" in result.output


def test_watch_as_json_repeats_the_answers_that_differ(api: FakeApi) -> None:
    first, again = progress(percent=10, eta_seconds=9), progress(percent=10, eta_seconds=8)
    api.say("GET", "/api/videos/7/progress", first, again, progress("ready", 100, 4))
    api.say("GET", "/api/videos/7", video())

    result = run.invoke(app, ["watch", "7", "--json"])

    assert [json.loads(line)["percent"] for line in result.stdout.splitlines()] == [10, 100]


def test_watch_waits_while_postgres_restarts(api: FakeApi) -> None:
    away = {"error": "DATABASE_UNAVAILABLE", "detail": "The database does not answer right now."}
    api.answers["GET", "/api/videos/7/progress"] = [
        (200, progress(percent=10, done=1)),
        (503, away),
        (502, "no json of ours"),
        (200, progress("ready", 100, 4)),
    ]
    api.answers["GET", "/api/videos/7"] = [(200, video()), (503, away), (200, video())]

    result = run.invoke(app, ["watch", "7"])

    assert result.exit_code == 0, result.output


def test_watch_does_not_wait_for_ever(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_PATIENCE_SECONDS", 0.1)
    api.say("GET", "/api/videos/7", video())
    api.say("GET", "/api/videos/7/progress", {"error": "DATABASE_UNAVAILABLE", "detail": "Away."}, status=503)

    result = run.invoke(app, ["watch", "7"])

    assert isinstance(result.exception, Away) and result.exception.sentence == "Away. (DATABASE_UNAVAILABLE)"


def test_a_service_that_is_not_there_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VLOG_HOME", str(tmp_path))
    monkeypatch.delenv("VLOG_API_URL", raising=False)

    nobody = run.invoke(app, ["list"])
    silent = run.invoke(app, ["list", "--api", "http://127.0.0.1:9"])

    assert isinstance(nobody.exception, CliError) and "vlog up" in nobody.exception.mend
    assert isinstance(silent.exception, Unreachable)
