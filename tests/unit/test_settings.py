"""Settings: defaults, typos, superseded names, secrets, and the rule about strangers."""

import warnings
from pathlib import Path

import pytest

from contracts.plan import LADDER
from runtime.joining import asyncpg_url
from runtime.names import SettingsError, SupersededSetting
from runtime.settings import Settings, child_environment, load_settings


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.upper().startswith("VLOG_")]:
        monkeypatch.delenv(name)


def test_documented_defaults_are_kept() -> None:
    settings = load_settings()
    assert settings.worker_heartbeat_interval == 30
    assert settings.worker_offline_threshold_minutes == 5
    assert settings.stale_job_check_interval == 60
    assert settings.max_retry_attempts == 3
    assert settings.keep_completed_qualities and settings.cleanup_partial_on_failure
    assert settings.alert_rate_limit_seconds == 300 and settings.alert_webhook_timeout == 10
    assert settings.ladder == LADDER
    assert settings.home == Path.home() / ".local/share/vlog"
    assert settings.max_upload_size == 100 * 1024**3


def test_a_typo_is_an_error_that_names_the_right_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_PRESETT", "fast")
    with pytest.raises(SettingsError, match=r"VLOG_PRESETT is not a setting\. Did you mean VLOG_PRESET\?"):
        load_settings()


@pytest.mark.parametrize("name", ["a\x1b[31mb", "two\nlines", "\u202etfel", 101 * "x"])
def test_a_worker_s_name_steers_no_terminal_and_is_not_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_WORKER_NAME", name)
    with pytest.raises(SettingsError, match=r"VLOG_WORKER_NAME.*100 plain characters"):
        load_settings()
    monkeypatch.setenv("VLOG_WORKER_NAME", " Größe 工作室 👩‍💻 ")
    assert load_settings().worker_name == "Größe 工作室 👩‍💻"


def test_a_typo_in_lower_case_is_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("vlog_prot", "9001")
    with pytest.raises(SettingsError, match="VLOG_PORT"):
        load_settings()


@pytest.mark.parametrize(
    "name", ["VLOG_REDIS_URL", "VLOG_REDIS_POOL_SIZE", "VLOG_JOB_QUEUE_MODE", "VLOG_JOB_STALE_TIMEOUT"]
)
def test_a_superseded_setting_is_accepted_with_a_warning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.warns(SupersededSetting, match=name):
        load_settings()


def test_a_clean_environment_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_settings()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "video.example"])
def test_strangers_are_let_in_only_with_a_secret(host: str) -> None:
    with pytest.raises(SettingsError, match="VLOG_ADMIN_SECRET"):
        load_settings(host=host)
    assert load_settings(host=host, admin_secret="long enough").host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_loopback_needs_no_secret(host: str) -> None:
    assert load_settings(host=host).admin_secret is None


def test_an_empty_secret_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_ADMIN_SECRET", "")
    with pytest.raises(SettingsError):
        load_settings(host="0.0.0.0")


def test_secrets_are_never_shown() -> None:
    settings = load_settings(
        admin_secret="hush-1",
        worker_admin_secret="hush-2",
        database_url="postgresql://me:hush-3@db.example/vlog?password=hush-4",
        alert_webhook_url="https://hooks.example/services/hush-5",
    )
    assert "hush" not in str(settings.shown()) and "hush" not in repr(settings.admin_secret)
    assert "db.example" in str(settings.shown()["VLOG_DATABASE_URL"])


def test_a_wrong_value_is_named_without_being_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_PORT", "hush")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value).startswith("VLOG_PORT: ") and "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 0},
        {"crf": 60},
        {"cpu_slots": 0},
        {"max_retry_attempts": 0},
        {"stall_seconds": 0},
        {"log_level": "loud"},
        {"preset": "fastest"},
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        load_settings(**wrong)


@pytest.mark.parametrize(
    "url", ["s3://", "s3://key:secret@bucket", "s3://bucket/../x", "/srv/vlog", "file://nas/vlog", "file:vlog", "vlog"]
)
def test_storage_that_we_cannot_open_is_said_at_once(url: str) -> None:
    with pytest.raises(SettingsError, match=r"VLOG_STORAGE_URL: .*file:///"):
        load_settings(storage_url=url)
    for good in ("file:///srv/vlog", "s3://bucket", "s3://my.bucket-1/some/prefix"):
        assert load_settings(storage_url=good, preset="veryslow").storage_url == good


@pytest.mark.parametrize("seconds", [-1, 60, 700_000])
def test_links_hold_for_longer_than_a_browser_keeps_the_redirect(seconds: float) -> None:
    with pytest.raises(SettingsError, match="VLOG_S3_LINK_SECONDS"):
        load_settings(s3_link_seconds=seconds)
    # As the environment says it: in words.
    assert [load_settings(s3_link_seconds=good).s3_link_seconds for good in ("0", "120")] == [0, 120]


def test_minutes_may_be_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_WORKER_OFFLINE_THRESHOLD_MINUTES", "0.5")
    assert load_settings().worker_offline_threshold_minutes == 0.5


def test_a_ladder_is_read_and_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_LADDER", "360p=600/96, 720p=2500/128")
    ladder = load_settings().ladder
    assert [(rung.name, rung.short_side, rung.video_kbps, rung.audio_kbps) for rung in ladder] == [
        ("720p", 720, 2500, 128),
        ("360p", 360, 600, 96),
    ]


@pytest.mark.parametrize("wrong", ["", "720p", "720p=x/1", "big=1/1", "720p=0/1", "720p=1/1,720p=2/2"])
def test_a_ladder_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(SettingsError):
        load_settings(ladder=wrong or ",")


@pytest.mark.parametrize(
    ("text", "codecs"),
    [("h264", ("h264",)), ("av1", ("h264", "av1")), ("AV1, hevc", ("h264", "hevc", "av1")), ("", ("h264",))],
)
def test_h264_is_among_the_codecs_whatever_is_asked(
    monkeypatch: pytest.MonkeyPatch, text: str, codecs: tuple[str, ...]
) -> None:
    monkeypatch.setenv("VLOG_CODECS", text)
    assert load_settings().codecs == codecs
    assert load_settings().shown()["VLOG_CODECS"] == ",".join(codecs)


def test_an_unknown_codec_and_a_codec_in_a_rungs_name_are_refused() -> None:
    with pytest.raises(SettingsError, match="vp9: the codecs are h264, hevc, av1"):
        load_settings(codecs="h264,vp9")
    with pytest.raises(SettingsError, match="720p-hevc"):
        load_settings(ladder="720p-hevc=2500/128")


def test_a_child_loads_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_CRF", "30")
    settings = load_settings(
        home="elsewhere", ladder="720p=2500/128", codecs="h264,av1", max_upload_size="2GiB", admin_secret="s"
    )
    environment = child_environment(settings, VLOG_PORT="1234")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    child = load_settings()
    assert child.port == 1234 and child.crf == 30 and child.home.is_absolute()
    assert child.model_copy(update={"port": None}) == settings


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().port = 1  # type: ignore[misc]


def test_an_unknown_override_is_an_error() -> None:
    with pytest.raises(SettingsError):
        load_settings(prot=9000)


def test_every_setting_can_be_named_in_the_environment() -> None:
    assert all(name == name.lower() and not name.startswith("vlog") for name in Settings.model_fields)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql://h/d?sslmode=require", "postgresql+asyncpg://h/d?ssl=require"),
        ("postgresql+asyncpg://h:5/d", "postgresql+asyncpg://h:5/d"),
        ("postgresql:///d?host=/run/postgresql", "postgresql+asyncpg:///d?host=%2Frun%2Fpostgresql"),
    ],
)
def test_a_database_address_is_taken_as_people_write_it(given: str, made: str) -> None:
    assert asyncpg_url(given) == made


def test_another_database_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="Postgres"):
        asyncpg_url("mysql://h/d")


def test_critical_qualities_are_names_with_commas_and_a_wrong_one_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLOG_CRITICAL_QUALITIES", "360p, audio,360p")
    settings = load_settings()
    assert settings.critical_qualities == ("360p", "audio")
    assert settings.environment()["VLOG_CRITICAL_QUALITIES"] == "360p,audio"
    monkeypatch.setenv("VLOG_CRITICAL_QUALITIES", "small")
    with pytest.raises(SettingsError, match="small"):
        load_settings()
