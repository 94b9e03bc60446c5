"""The JSON of webhooks: what one registers, and what became of each delivery."""

import re
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field

from api.schemas import WHEN, Answer, example
from contracts.webhooks import LONGEST_TIMEOUT_S, URL_LIMIT, known_events, receiver
from mirror.reads_hooks import DeliveryView, WebhookView
from mirror.words import DeliveryStatus
from runtime.shown import MASK, masked

HEADERS_LIMIT = 20
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]{0,1000}")
# What the connection, or the signature, depends on.
_OURS = frozenset(
    "accept-encoding connection content-encoding content-length content-type expect host keep-alive te trailer "
    "transfer-encoding upgrade user-agent".split()
)


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    if len(headers) > HEADERS_LIMIT:
        raise ValueError(f"at most {HEADERS_LIMIT} headers")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError("a header has a name of letters and dashes and a value of printable ASCII characters")
        if name.lower() in _OURS or name.lower().startswith("x-vlog-"):
            raise ValueError(f"the header {name} is set by VLog itself")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("a header is named twice")
    return headers


Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
Url = Annotated[str, AfterValidator(receiver), Field(max_length=URL_LIMIT, description="http or https; any host")]
Events = Annotated[
    tuple[str, ...],
    AfterValidator(known_events),
    Field(min_length=1, max_length=50, description="Names of docs/webhooks.md; `*` is every event, without alerts"),
]
Headers = Annotated[dict[str, str], AfterValidator(_checked_headers), Field(description="Sent with every attempt")]
Secret = Annotated[
    str, Field(min_length=16, max_length=64, pattern=r"^[\x21-\x7e]+$", description="Signs what is sent")
]
RateLimit = Annotated[float, Field(ge=0, le=86_400, description="Of one event one is sent in so many seconds; 0: all")]
Timeout = Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT_S, description="Seconds for one attempt")]


def _asked(**fields: Any) -> ConfigDict:
    return ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [fields]})


class NewWebhook(Answer):
    model_config = _asked(name="site", url="https://site.example/hooks/vlog", events=["video.ready", "video.failed"])
    name: Name
    url: Url
    events: Events
    secret: Secret | None = Field(default=None, description="By default one is made, and shown in this answer only")
    headers: Headers = Field(default_factory=dict)
    active: bool = True
    rate_limit_seconds: RateLimit = 0
    timeout_seconds: Timeout = 10


class ChangedWebhook(Answer):
    """What is given is changed, all else stays."""

    model_config = _asked(active=False)
    name: Name | None = None
    url: Url | None = None
    events: Events | None = None
    secret: Secret | None = None
    headers: Headers | None = None
    active: bool | None = None
    rate_limit_seconds: RateLimit | None = None
    timeout_seconds: Timeout | None = None


_HOOK: dict[str, Any] = {
    "webhook_id": 3,
    "name": "site",
    "url": "https://site.example/hooks/vlog",
    "events": ["video.ready", "video.failed"],
    "active": True,
    "builtin": False,
    "headers": {"Authorization": MASK},
    "has_secret": True,
    "rate_limit_seconds": 0,
    "timeout_seconds": 10,
    "created_at": WHEN,
    "updated_at": WHEN,
    "last_triggered_at": WHEN,
    "total_deliveries": 12,
    "successful_deliveries": 11,
    "failed_deliveries": 0,
}


class Webhook(Answer):
    model_config = example(**_HOOK)
    webhook_id: int
    name: str
    url: str = Field(description="Of the alert hook only the host is shown")
    events: tuple[str, ...]
    active: bool
    builtin: bool = Field(description="The alert hook of the settings; it cannot be changed here")
    headers: dict[str, str] = Field(description="Values are masked")
    has_secret: bool
    rate_limit_seconds: float
    timeout_seconds: float
    created_at: datetime
    updated_at: datetime
    last_triggered_at: datetime | None
    total_deliveries: int
    successful_deliveries: int
    failed_deliveries: int = Field(description="Given up")

    @classmethod
    def of(cls, view: WebhookView, **more: Any) -> Self:
        url = masked("alert_webhook_url", view.url) if view.builtin else view.url
        headers = dict.fromkeys(view.headers, MASK)
        return cls(**{**view.model_dump(), "url": url, "headers": headers, **more})


class RegisteredWebhook(Webhook):
    model_config = example(**_HOOK, secret="6e7c…")
    secret: str = Field(description="Keep it: it is shown this once")


_DELIVERY: dict[str, Any] = {
    "delivery_id": "0b7ad7a6-6dd7-4a52-8f5e-3d6b0f8a8b2e",
    "webhook_id": 3,
    "event": "video.ready",
    "status": "delivered",
    "created_at": WHEN,
    "next_retry_at": None,
    "delivered_at": WHEN,
    "attempt_number": 2,
    "response_status": 200,
    "response_body": "ok",
    "error_message": None,
    "duration_ms": 41,
    "attempts": [
        {"round": 1, "attempt": 1, "at": WHEN, "status": 500, "error": "The receiver answered 500.", "duration_ms": 38},
        {"round": 1, "attempt": 2, "at": WHEN, "status": 200, "error": None, "duration_ms": 41},
    ],
}


class Delivery(Answer):
    model_config = example(**_DELIVERY)
    delivery_id: UUID = Field(description="The receiver gets it in the header `X-VLog-Delivery-Id`")
    webhook_id: int
    event: str
    status: DeliveryStatus
    created_at: datetime
    next_retry_at: datetime | None
    delivered_at: datetime | None
    attempt_number: int
    response_status: int | None
    response_body: str | None = Field(description="How the last answer begins")
    error_message: str | None
    duration_ms: int | None
    attempts: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, view: DeliveryView) -> Self:
        return cls.model_validate(view)


class DeliveryDetail(Delivery):
    model_config = example(**_DELIVERY, request_body='{"delivery_id": "…", "event": "video.ready", "data": {}}')
    request_body: str | None = Field(description="What was sent; null until it is")
