"""Settings. The only file that reads VLOG_ variables; built once in an entry point and passed by hand."""

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from contracts.plan import LADDER, Rung
from contracts.states import Codec
from contracts.texts import is_unwanted
from contracts.webhooks import LONGEST_TIMEOUT_S, USUAL_ALERTS, known_events, receiver
from runtime.ladder import parse_codecs, parse_critical, parse_ladder, parse_names, show_ladder
from runtime.names import SettingsError, check_names
from runtime.shown import masked

PREFIX = "VLOG_"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


def _absolute(path: Path) -> Path:
    # Children may be started from another directory: a relative home would split in two.
    return path.expanduser().absolute()


def _known_storage(url: str) -> str:
    parts = urlsplit(url)
    is_folder = parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/")
    # No password in it, which would be shown: keys have variables of their own.
    is_bucket = parts.scheme == "s3" and _BUCKET.fullmatch(parts.netloc) and not parts.query and ".." not in parts.path
    if not is_folder and not is_bucket:
        raise ValueError("storage is a folder or a bucket, written like file:///srv/vlog or s3://bucket/prefix.")
    return url


def _server(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/") or "@" in parts.netloc:
        raise ValueError("a server is written like https://s3.example.org, without a path.")
    return url


def _long_enough(seconds: float) -> float:
    # A browser may keep the redirect to a link for a minute; S3 signs for a week at most.
    if seconds != 0 and not 120 <= seconds <= 604_800:
        raise ValueError("a link holds for 120 to 604800 seconds; 0 means that there are none.")
    return seconds


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("an API is written like https://vlog.example.org.")
    return url.rstrip("/")


def _plain(name: str) -> str:
    # It is printed in terminals, and cut to this length in rows: two that begin alike would look like one.
    if len(name.strip()) > 100 or any(map(is_unwanted, name)):
        raise ValueError("a name is at most 100 plain characters.")
    return name.strip()


Home = Annotated[Path, AfterValidator(_absolute)]
Port = Annotated[int, Field(ge=1, le=65535)]
Slots = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]
Minutes = Annotated[float, Field(gt=0)]
Memory = Annotated[ByteSize, Field(ge=64 * 1024**2)]  # less would not even start ffmpeg
ApiUrl = Annotated[str, AfterValidator(_address)]
SealingKey = Annotated[SecretStr, Field(min_length=16)]
# Temporal joins name and version with a dot.
DeploymentName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
StorageUrl = Annotated[str, AfterValidator(_known_storage)]
LinkSeconds = Annotated[float, AfterValidator(_long_enough)]
Server = Annotated[str, AfterValidator(_server)]
Preset = Literal[
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow", "placebo"
]
Receiver = Annotated[str, AfterValidator(receiver)]
Alerts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(parse_names), AfterValidator(known_events)]
Critical = Annotated[tuple[str, ...], NoDecode, BeforeValidator(parse_critical)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(parse_names)]
WebUrl = Annotated[str, Field(pattern=r"^https?://\S+$")]
Codecs = Annotated[tuple[Codec, ...], NoDecode, BeforeValidator(parse_codecs)]
Ladder = Annotated[tuple[Rung, ...], NoDecode, BeforeValidator(parse_ladder)]


class Settings(BaseSettings):
    """Every setting, as `docs/configuration.md` lists them; each is `VLOG_` and the name in capitals."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="forbid",
        # The documented way to switch an address off is to leave it empty.
        env_ignore_empty=True,
        validate_default=True,
    )

    # Where things are. Unset means embedded, under `home`.
    home: Home = Path("~/.local/share/vlog")
    host: str = "127.0.0.1"
    port: Port | None = None  # 9000 when that is free
    database_url: str | None = None
    temporal_address: str | None = None
    temporal_namespace: str | None = None  # unset: what Temporal's own configuration says, else `default`
    temporal_ui_url: WebUrl | None = None  # where people look at workflows; the embedded one is known
    storage_url: StorageUrl | None = None
    s3_public_endpoint: Server | None = None  # unset: viewers reach the S3 server where we do
    s3_link_seconds: LinkSeconds = 900.0  # 0: no links
    ffmpeg: str | None = None
    api_url: str | None = None  # for commands on another machine; unset, the service of this home is asked

    # Who may command.
    admin_secret: SecretStr | None = None
    worker_admin_secret: SecretStr | None = None  # registration; falls back to admin_secret
    sealing_key: SealingKey | None = None  # of remote workers' claims; unset: `up`'s, else the database's

    # How videos are made.
    preset: Preset = "medium"
    crf: float = Field(default=22.0, ge=0, le=51)
    segment_seconds: float = Field(default=6.0, ge=1, le=30)
    span_seconds: float = Field(default=120.0, ge=4, le=3600)
    share_decode: Literal["auto", "never"] = "auto"
    ladder: Ladder = LADDER
    critical_qualities: Critical = ()  # empty: the lowest rung and the default sound
    codecs: Codecs = (Codec.H264,)
    max_upload_size: ByteSize = ByteSize(100 * 1024**3)
    upload_expiry_hours: float = Field(default=24.0, gt=0, le=24 * 366)

    # What a source may cost before it is refused.
    max_pixels: int = Field(default=8192 * 4320, ge=1)
    max_frame_rate: float = Field(default=1000.0, gt=0)
    max_streams: int = Field(default=200, ge=1)
    max_duration_seconds: Seconds = 90_000.0
    least_complete: float = Field(default=0.5, ge=0, le=1)
    probe_seconds: Seconds = 60.0
    probe_memory: Memory = ByteSize(1024**3)
    encoder_memory: Memory | None = None  # unset: by the size of the pictures

    # What a worker may spend.
    worker_name: Annotated[str, AfterValidator(_plain)] | None = None
    machine_workers: Slots = 1  # that share what the machine has
    worker_api_url: ApiUrl | None = None  # of a worker that reaches nothing else
    worker_api_key: SecretStr | None = None
    cpu_slots: Slots | None = None
    gpu_slots: Slots | None = None
    io_slots: Slots = 4
    probe_slots: Slots = 2
    analysis_slots: Slots = 1
    orchestrate_slots: Slots = 20
    gpu_encoder: Names = ()  # empty: whatever works
    gpu_device: str | None = None
    worker_memory: Memory | None = None  # unset: four fifths of what the process may use
    scratch_reserve: ByteSize = ByteSize(1024**3)
    scratch_folder: Home | None = None  # where storage is no folder; unset: VLOG_HOME/work
    cache_bytes: ByteSize | None = None  # unset: half of what would be free without the cache
    drain_seconds: float = Field(default=50.0, ge=0)
    worker_deployment: DeploymentName | None = None  # unset: workers of all versions share the work
    worker_versioning: Literal["pinned", "auto"] = "pinned"

    # When to worry.
    stall_seconds: Seconds = 60.0
    step_heartbeat_timeout_seconds: Seconds = 30.0
    worker_claim_duration_minutes: Minutes | None = None  # unset: a claim lasts as long as its heartbeat timeout
    worker_heartbeat_interval: Seconds = 30.0
    quarantine_seconds: Seconds = 30.0  # before a worker that set itself aside tests itself; doubles to 20 times that
    worker_offline_threshold_minutes: Minutes = 5.0
    stale_job_check_interval: Seconds = 60.0
    max_retry_attempts: int = Field(default=3, ge=1)
    keep_completed_qualities: bool = True
    cleanup_partial_on_failure: bool = True
    archive_retention_days: float = Field(default=30.0, ge=0)
    old_rendition_grace_seconds: float = Field(default=3600.0, ge=0)

    # Whom to tell.
    alert_webhook_url: Receiver | None = None
    alert_events: Alerts = tuple(USUAL_ALERTS)
    alert_rate_limit_seconds: float = Field(default=300.0, ge=0)
    alert_webhook_timeout: float = Field(default=10.0, gt=0, le=LONGEST_TIMEOUT_S)

    # What pages that stay open are told.
    sse_heartbeat_interval: Seconds = 30.0
    sse_reconnect_timeout_ms: int = Field(default=3000, ge=0)

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "console", "json"] = "auto"
    log_files: bool = True  # off for a process whose output somebody else keeps: `up`, systemd, Docker

    @model_validator(mode="after")
    def _listens_to_strangers_only_with_a_secret(self) -> Self:
        if self.admin_secret is None and not is_loopback(self.host):
            raise ValueError(
                f"VLOG_HOST={self.host} lets other machines in, and no VLOG_ADMIN_SECRET is set. "
                "Set a secret, or leave VLOG_HOST at 127.0.0.1."
            )
        return self

    @property
    def heartbeat_timeout_s(self) -> float:
        """Say how long a silent worker keeps a step: the documented claim duration where it is set."""
        if self.worker_claim_duration_minutes is not None:
            return self.worker_claim_duration_minutes * 60
        return self.step_heartbeat_timeout_seconds

    def shown(self) -> dict[str, str | int | float | bool | None]:
        """Give every effective setting for people to read, secrets masked."""
        return {f"{PREFIX}{name.upper()}": masked(name, _text(getattr(self, name))) for name in type(self).model_fields}

    def environment(self) -> dict[str, str]:
        """Give the variables that make a child process load these same settings, secrets included."""
        chosen = {name: _text(getattr(self, name)) for name in self.model_fields_set | {"home"}}
        return {f"{PREFIX}{name.upper()}": str(value) for name, value in chosen.items() if value is not None}


def load_settings(**overrides: Any) -> Settings:
    """Read the environment once; an override that is None was not given.

    Raises SettingsError with a sentence per mistake: a typo in a name is an error, not a default.
    """
    check_names(os.environ, PREFIX, tuple(Settings.model_fields))
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        raise SettingsError("\n".join(_sentences(error))) from None  # the cause would print secrets


def child_environment(settings: Settings, **explicit: str) -> dict[str, str]:
    """Give a child our environment with these settings in it; what is named explicitly wins."""
    ours = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
    return ours | settings.environment() | explicit


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address; a name other than localhost is not trusted to."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _text(value: Any) -> str | int | float | bool | None:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case Path():
            return str(value)
        case tuple():
            return show_ladder(value) if value and isinstance(value[0], Rung) else ",".join(value)
        case _:
            return value  # type: ignore[no-any-return]  # what is left is a plain scalar


def _sentences(error: ValidationError) -> list[str]:
    found = []
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        name = "".join(f"{PREFIX}{part}".upper() for part in each["loc"][:1])
        sentence = each["msg"].removeprefix("Value error, ")
        found.append(f"{name}: {sentence}" if name else sentence)
    return found
