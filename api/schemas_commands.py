"""The JSON that commands take."""

from typing import Any

from pydantic import ConfigDict, Field

from api.schemas import Answer
from contracts.states import Tier


def _asked(**fields: Any) -> ConfigDict:
    return ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [fields]})


class Retranscode(Answer):
    model_config = _asked(qualities=["720p"], tier="bulk", delete_transcription=False)
    qualities: tuple[str, ...] = Field(default=(), max_length=50, description="Some rungs; none means all")
    tier: Tier | None = Field(default=None, description="By default the video's; `bulk` for many at once")
    delete_transcription: bool = Field(
        default=False, description="Remove its transcription when the new stream is there"
    )


class NewPriority(Answer):
    model_config = _asked(tier="creator", is_paid=True)
    tier: Tier = Field(description="viral goes first, then creator, hobby, trial and free together, then bulk")
    is_paid: bool = Field(default=True, description="What is not paid for waits with the free ones")
