"""GET /api/about: what a page must know of this service before it can offer anything."""

from fastapi import APIRouter
from pydantic import Field

from api.openapi import errors
from api.parts import Here
from api.schemas import Answer, example
from api.security import AdminOnly
from contracts.states import Tier

router = APIRouter(prefix="/api/about", tags=["health"], dependencies=[AdminOnly], responses=errors(401, 403, 421, 422))


class About(Answer):
    model_config = example(
        ladder=["1080p", "720p", "480p", "360p"],
        codecs=["h264"],
        tiers=["viral", "creator", "hobby", "trial", "free", "bulk"],
        max_upload_size=107374182400,
        temporal_ui_url="http://127.0.0.1:8233",
        temporal_namespace="default",
    )
    ladder: tuple[str, ...] = Field(description="The rungs, the largest first")
    codecs: tuple[str, ...]
    tiers: tuple[str, ...]
    max_upload_size: int = Field(description="Bytes")
    temporal_ui_url: str | None = Field(
        description="Temporal's own page, where it is known; often of this machine only"
    )
    temporal_namespace: str


@router.get("", summary="What this service is set up to do")
async def about(here: Here) -> About:
    settings = here.settings
    return About(
        ladder=tuple(rung.name for rung in settings.ladder),
        codecs=tuple(settings.codecs),
        tiers=tuple(Tier),
        max_upload_size=settings.max_upload_size,
        temporal_ui_url=here.temporal_ui_url,
        temporal_namespace=here.temporal.namespace,
    )
