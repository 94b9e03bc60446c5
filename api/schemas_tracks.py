"""What a viewer can choose from beside the qualities: sounds and subtitles."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SOUND: dict[str, Any] = {
    "track": 0,
    "language": "eng",
    "name": "English",
    "default": True,
    "channels": 2,
    "codecs": "mp4a.40.2",
    "size_bytes": 323456,
}
SUBTITLES: dict[str, Any] = {
    "track": 0,
    "language": "deu",
    "name": "Deutsch",
    "default": False,
    "forced": False,
    "cues": 812,
    "size_bytes": 61234,
    "url": "/videos/my-holiday/r1/subtitles_0/subtitles.vtt",
}


class _Track(BaseModel):
    track: int = Field(description="Counted from 0, as in the folder's name")
    language: str = Field(description="As the source says it; `und` when it does not")
    name: str = Field(description="What players list it by; unique within the video")
    default: bool = Field(description="Chosen when the viewer does not choose")


class Sound(_Track):
    model_config = ConfigDict(frozen=True, from_attributes=True, json_schema_extra={"examples": [SOUND]})
    channels: int
    codecs: str
    size_bytes: int


class Subtitles(_Track):
    model_config = ConfigDict(
        frozen=True, from_attributes=True, populate_by_name=True, json_schema_extra={"examples": [SUBTITLES]}
    )
    forced: bool = Field(description="Only for what is spoken in another language than the sound's")
    cues: int
    size_bytes: int
    # The storage key is the address: everything of a video lies below /videos/.
    url: Annotated[str, AfterValidator(lambda key: "/" + key.lstrip("/"))] = Field(
        validation_alias="key", description="WebVTT, relative to this host"
    )
