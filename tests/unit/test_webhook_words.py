"""Which words the outside hears for which line of the event log, and which addresses we call."""

import re
from pathlib import Path

import pytest

from activities.webhooks import BODY_LIMIT, _seconds, headers_of, signature
from contracts.errors import RETRIES_EXHAUSTED
from contracts.states import JobKind, VideoStatus
from contracts.webhooks import EVENTS, Alert, known_events, receiver, told_as, wants
from mirror.writes_hooks import Envelope
from runtime.names import SettingsError
from runtime.settings import load_settings

PAGE = Path(__file__).parents[2] / "docs" / "webhooks.md"


@pytest.mark.parametrize(
    ("event", "about", "told"),
    [
        ("job.created", {"kind": JobKind.UPLOAD}, ("video.uploaded",)),
        ("job.created", {"kind": JobKind.RETRY}, ()),
        ("job.succeeded", {"status": VideoStatus.READY}, ("video.ready",)),
        ("job.failed", {"status": VideoStatus.READY}, ("job.failed", "job_failed")),  # a retranscode
        (
            "job.failed",
            {"status": VideoStatus.FAILED, "code": RETRIES_EXHAUSTED, "failed_jobs": 1},
            ("job.failed", "video.failed", "job_max_retries_exceeded"),
        ),
        (
            "job.failed",
            {"status": VideoStatus.FAILED, "code": "X", "failed_jobs": 2},
            ("job.failed", "video.failed", "job_failed", "job_failed_pattern"),
        ),
        ("job.cancelled", {"status": VideoStatus.FAILED}, ("job.cancelled", "video.failed")),
        ("requeued:stale", {"status": VideoStatus.PENDING}, ("stale_job_recovered",)),
        ("step.lost", {"status": VideoStatus.PROCESSING}, ("stale_job_recovered",)),
        ("job.stuck", {"status": VideoStatus.PROCESSING}, ("job_stuck",)),
        ("worker.offline", {}, ("worker.offline", "worker_offline")),
        ("worker.quarantined", {}, ("worker.quarantined", "worker_quarantined")),
        ("video.purged", {}, ("video.purged",)),
        ("quality.started", {"status": VideoStatus.PROCESSING}, ()),
    ],
)
def test_a_line_is_told_in_documented_words(event: str, about: dict[str, object], told: tuple[str, ...]) -> None:
    assert told_as(event, **about) == told  # type: ignore[arg-type]


def test_the_page_explains_every_word_and_no_other() -> None:
    tables = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    explained = [name for line in tables for name in re.findall(r"`([\w.]+)`", line.split("|")[1])]
    assert sorted(explained) == sorted([*EVENTS, *Alert])


def test_a_star_is_every_event_and_no_alert() -> None:
    assert all(wants(["*"], name) for name in EVENTS)
    assert not any(wants(["*"], alert) for alert in Alert)
    assert wants(["*", "job_failed"], "job_failed") and not wants(["video.ready"], "video.failed")


@pytest.mark.parametrize(
    "url", ["http://10.0.0.7:8080/hook", "https://hooks.slack.com/services/T/B/x", "HTTP://[::1]/"]
)
def test_any_host_may_be_called_by_http(url: str) -> None:
    assert receiver(url) == url


@pytest.mark.parametrize(
    "url", ["", "gopher://x/", "//x/", "https:///x", "https://u@x/", "https://x y/", "https://x:0/"]
)
def test_other_addresses_are_refused_at_start(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError):
        receiver(url)
    if url:
        monkeypatch.setenv("VLOG_ALERT_WEBHOOK_URL", url)
        with pytest.raises(SettingsError, match="VLOG_ALERT_WEBHOOK_URL"):
            load_settings()


def test_alerts_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(load_settings().alert_events) == set(Alert) - {"worker_startup", "worker_shutdown"}
    monkeypatch.setenv("VLOG_ALERT_EVENTS", "worker_startup, job_failed,job_failed")
    assert load_settings().alert_events == ("worker_startup", "job_failed")
    assert load_settings().environment()["VLOG_ALERT_EVENTS"] == "worker_startup,job_failed"
    monkeypatch.setenv("VLOG_ALERT_EVENTS", "lunch")
    with pytest.raises(SettingsError, match="lunch"):
        load_settings()
    with pytest.raises(ValueError, match="sold"):
        known_events(["video.sold"])


def test_the_signature_depends_on_moment_body_and_secret() -> None:
    made = {signature(*each) for each in (("a", "1", b"x"), ("b", "1", b"x"), ("a", "2", b"x"), ("a", "1", b"y"))}
    assert len(made) == 4 and all(re.fullmatch(r"sha256=[0-9a-f]{64}", one) for one in made)


def test_a_webhooks_own_headers_do_not_replace_ours() -> None:
    what = Envelope("uid", "ping", "https://x/", {"X-Vlog-Event": "forged", "X-Mine": "1"}, None, "{}", 10)
    headers = headers_of(what, b"{}", 1000.5)
    assert (headers["x-vlog-event"], headers["x-mine"], headers["x-vlog-timestamp"]) == ("ping", "1", "1000")
    assert "x-vlog-signature" not in headers and BODY_LIMIT == 4096


@pytest.mark.parametrize(
    ("said", "wait_s"),
    [(None, None), ("120", 120), ("-5", None), ("nan", None), ("inf", None), ("soon", None), ("1e9", 86400)],
)
def test_a_receivers_wish_to_wait_is_read_with_care(said: str | None, wait_s: float | None) -> None:
    assert _seconds(said) == wait_s
