"""The JSON of links to videos."""

from datetime import datetime

from pydantic import ConfigDict, Field

from api.schemas import Answer, example

WEEK_S = 7 * 24 * 3600


class NewLink(Answer):
    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [{"expires_in_s": 86400}]})
    expires_in_s: int = Field(default=WEEK_S, ge=1, le=366 * 24 * 3600, description="By default a week")


class Link(Answer):
    model_config = example(
        url="/watch/~6a3f2b10-Zm9yIHRoZSByZWZlcmVuY2UgcGFnZSwgbm8gcmVhbCBvbmU/my-holiday",
        stream_url="/videos/~6a3f2b10-Zm9yIHRoZSByZWZlcmVuY2UgcGFnZSwgbm8gcmVhbCBvbmU/my-holiday/master.m3u8",
        expires_at="2026-11-23T09:30:00Z",
    )
    url: str = Field(description="A page that plays it, relative to this host")
    stream_url: str = Field(description="HLS, for players; what it names lies behind the same link")
    expires_at: datetime
