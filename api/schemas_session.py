"""The JSON of signing in and out."""

from datetime import datetime

from pydantic import ConfigDict, Field, SecretStr

from api.schemas import Answer, example


class SignIn(Answer):
    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"secret": "correct horse battery staple"}]}
    )
    secret: SecretStr = Field(max_length=4096, description="VLOG_ADMIN_SECRET")


class Session(Answer):
    model_config = example(signed_in=True, secret_required=True, expires_at="2026-11-23T09:30:00Z")
    signed_in: bool = Field(description="Whether this browser may command; always, where no secret is set")
    secret_required: bool = Field(description="Whether VLOG_ADMIN_SECRET is set")
    expires_at: datetime | None = Field(default=None, description="When the cookie ends")
