"""`vlog workers`, over real HTTP to a small stand-in."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.terminal import CliError
from tests.unit.cli.fake_api import FakeApi

run = CliRunner()
STUDIO, ATTIC = "5f0c9a7e-2b1d-4d0e-9a43-7f6f1c2b8a10", "5f0cffff-0000-4d0e-9a43-7f6f1c2b8a10"


def worker(**changes: Any) -> dict[str, Any]:
    return {
        "worker_id": STUDIO,
        "worker_name": "studio",
        "worker_type": "remote",
        "status": "idle",
        "standing": "welcome",
        "registered_at": "2026-11-16T09:30:00Z",
        "last_heartbeat": "2026-11-16T09:30:00+00:00",
        "current_job_id": None,
        "current_video_id": None,
        "capabilities": {"slots": {"cpu": 2}},
        "metadata": {},
        "version": "0.1",
        "quarantined_at": None,
        "pools_aside": [],
        "revoked_at": None,
        "a_field_of_tomorrow": 1,
    } | changes


def detail(**changes: Any) -> dict[str, Any]:
    key = {"key_id": 7, "key_prefix": "Zk3vQ0bX", "created_at": "2026-11-16T09:30:00Z", "expires_at": None}
    step = {"job_id": 9, "step_key": "probe", "outcome": "failed", "started_at": "2026-11-16T09:30:00Z"}
    return (
        worker(
            keys=[key | {"revoked_at": None, "last_used_at": None}],
            job={"job_id": 9, "video_id": 7, "state": "claimed", "current_step": "transcode", "progress_percent": 42},
            steps=[step | {"error_code": "ENCODER_CRASHED", "error_message": "ffmpeg \x1b[31mcrashed."}],
        )
        | changes
    )


def known(api: FakeApi, *workers: dict[str, Any]) -> None:
    """Say who there is, one to a page."""
    pages: list[dict[str, Any]] = [{"items": [each], "next_cursor": str(n)} for n, each in enumerate(workers)]
    pages[-1]["next_cursor"] = None
    api.say("GET", "/api/workers", *pages)


def test_the_list_is_what_comes_without_a_command_and_goes_over_all_pages(api: FakeApi) -> None:
    attic = worker(worker_id=ATTIC, worker_name=None, standing="revoked", status="offline", last_heartbeat=None)
    known(api, worker(status="busy", current_job_id=9), attic)
    result = run.invoke(app, ["workers"])
    assert result.exit_code == 0
    lines = [line for line in result.output.splitlines() if line.strip()]
    assert "studio" in lines[2] and "busy" in lines[2] and "cpu:2" in lines[2] and " 9 " in lines[2]
    assert ATTIC[:8] in lines[3] and "revoked" in lines[3]
    known(api, worker())
    listed = run.invoke(app, ["workers", "list", "--json", "--status", "idle", "--type", "local"])
    assert [each["worker_id"] for each in json.loads(listed.stdout)["items"]] == [STUDIO]
    assert api.queries[-1] == {"status": ["idle"], "type": ["local"], "limit": ["200"]}


@pytest.mark.parametrize("slots", [{"cpu": 10**300}, {"x" * 300: 1}, {"cpu": "y" * 300}, ["z" * 300], "cpu"])
def test_what_a_worker_says_of_its_slots_hides_nobody_s_state(api: FakeApi, slots: Any) -> None:
    known(api, worker(capabilities={"slots": slots}), worker(worker_id=ATTIC, worker_name="attic", status="busy"))
    lines = [line for line in run.invoke(app, ["workers"]).output.splitlines() if line.strip()]
    assert "studio" in lines[2] and "idle" in lines[2]
    assert "attic" in lines[3] and "busy" in lines[3] and "cpu:2" in lines[3]


def test_nobody_there_says_how_to_begin(api: FakeApi) -> None:
    api.say("GET", "/api/workers", {"items": [], "next_cursor": None})
    assert "workers register" in run.invoke(app, ["workers"]).output


def test_a_key_is_printed_with_what_to_do_with_it(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"worker_id": STUDIO, "api_key": "Zk3vQ0bX8nT1", "key_prefix": "Zk3vQ0bX", "message": "Keep it."}
    api.say("POST", "/api/worker/register", made, status=201)
    monkeypatch.setenv("VLOG_ADMIN_SECRET", "ruler")
    result = run.invoke(app, ["workers", "register", "studio", "--capabilities", '{"gpu": "nvenc"}'])
    assert result.exit_code == 0
    assert "key     Zk3vQ0bX8nT1\n" in result.output and "not shown again" in result.output
    assert json.loads(api.bodies[-1]) == {"worker_name": "studio", "capabilities": {"gpu": "nvenc"}, "metadata": {}}
    assert api.headers[-1]["X-Admin-Secret"] == "ruler"
    monkeypatch.setenv("VLOG_WORKER_ADMIN_SECRET", "hirer")
    assert json.loads(run.invoke(app, ["workers", "register", "--json"]).stdout) == made
    assert api.headers[-1]["X-Admin-Secret"] == "hirer"


def test_what_is_no_json_is_not_sent(api: FakeApi) -> None:
    for bad in ("[]", "{", "7", "[" * 100_000):
        with pytest.raises(CliError, match="not a JSON object"):
            run.invoke(app, ["workers", "register", "--metadata", bad], catch_exceptions=False)
    assert api.bodies == []


@pytest.mark.parametrize("said", ["studio", STUDIO, "5f0c9"])
def test_a_worker_is_named_by_name_id_or_its_beginning(api: FakeApi, said: str) -> None:
    known(api, worker(), worker(worker_id=ATTIC, worker_name="attic"))
    api.say("PUT", f"/api/workers/{STUDIO}/disable", detail(status="disabled", standing="disabled"))
    result = run.invoke(app, ["workers", "disable", said])
    assert (result.exit_code, result.output) == (0, "Worker studio is disabled.\n")
    assert api.headers[-1]["X-Actor"].startswith("vlog:")


@pytest.mark.parametrize(
    ("said", "says"), [("5f0c", "2 workers answer"), ("nobody", "There is no worker"), ("5f", "no")]
)
def test_one_that_could_be_several_or_none_is_asked_for_again(api: FakeApi, said: str, says: str) -> None:
    known(api, worker(), worker(worker_id=ATTIC, worker_name="attic"))
    with pytest.raises(CliError, match=says):
        run.invoke(app, ["workers", "delete", said], catch_exceptions=False)


@pytest.mark.parametrize(
    ("words", "method", "path", "says"),
    [
        (["enable"], "PUT", "/enable", "is idle"),
        (["revoke"], "POST", "/revoke", "is idle"),
        (["revoke", "--key", "7"], "DELETE", "/keys/7", "is idle"),
    ],
)
def test_each_command_asks_for_what_it_is_called(
    api: FakeApi, words: list[str], method: str, path: str, says: str
) -> None:
    known(api, worker())
    api.say(method, f"/api/workers/{STUDIO}{path}", detail())
    assert says in run.invoke(app, ["workers", words[0], "studio", *words[1:]]).output
    known(api, worker())
    assert json.loads(run.invoke(app, ["workers", words[0], "studio", *words[1:], "--json"]).stdout) == detail()


def test_another_key_and_a_deletion(api: FakeApi) -> None:
    known(api, worker())
    api.say("POST", f"/api/workers/{STUDIO}/keys", {"worker_id": STUDIO, "api_key": "Zk3vQ0"}, status=201)
    assert "key     Zk3vQ0\n" in run.invoke(app, ["workers", "key", "studio", "--days", "30"]).output
    assert json.loads(api.bodies[-1]) == {"expires_in_days": 30.0}
    api.say("DELETE", f"/api/workers/{STUDIO}", {"worker_id": STUDIO, "deleted": True})
    assert "is deleted" in run.invoke(app, ["workers", "delete", "studio"]).output


def test_show_tells_of_job_keys_and_last_steps_and_steers_no_terminal(api: FakeApi) -> None:
    known(api, worker())
    shown = detail(quarantined_at="2026-11-16T09:30:00Z", pools_aside=["cpu", "io"], worker_name="stu\x1b[2Jdio")
    api.say("GET", f"/api/workers/{STUDIO}", shown)
    result = run.invoke(app, ["workers", "show", "studio"])
    assert result.exit_code == 0 and "\x1b" not in result.output
    for words in (
        "idle, set aside: cpu, io",
        "cpu, io, since 2026-11-16 09:30",
        "9 of video 7: transcode, 42 %",
        "7: Zk3vQ0bX…",
        "never used",
        "ENCODER_CRASHED",
    ):
        assert words in result.output
    known(api, worker())
    assert json.loads(run.invoke(app, ["workers", "show", "studio", "--json"]).stdout) == shown
