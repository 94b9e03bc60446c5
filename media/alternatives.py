"""Renditions beside the H.264 ones: the same rungs in codecs that need fewer bits, for players that have them.

A player stays with the codec it began with, so each codec gets every rung: on a bad line it must have one to go down
to.
"""

from collections.abc import Sequence

from contracts.plan import PlannedRendition, quality_name
from contracts.states import Codec

# What a codec needs for the picture that H.264 makes of its cap. Papers claim half for HEVC and less for AV1; at the
# speeds that people encode with it is less of a gain, and a cap that is too low is seen, one too high only paid for.
SHARE_OF_CAP: dict[Codec, float] = {Codec.HEVC: 0.6, Codec.AV1: 0.5}
LEAST_SIDE = 64  # SVT-AV1 refuses smaller pictures, and nobody saves anything on them


def choose_alternatives(
    made: Sequence[PlannedRendition], codecs: Sequence[Codec], wanted: Sequence[str]
) -> list[PlannedRendition]:
    """Plan what accompanies the H.264 renditions `made`; `wanted` names qualities instead of the codecs."""
    if not wanted:
        return [_like(one, codec) for codec in SHARE_OF_CAP if codec in codecs for one in made if _is_worth_it(one)]
    found = []
    for codec in SHARE_OF_CAP:
        names = {name for name in wanted if name.endswith(f"-{codec}")}
        fitting = [one for one in made if quality_name(one.quality, codec) in names]
        # As with H.264: of larger ones than the source has, the largest that it does have is nearest to the wish.
        found += [_like(one, codec) for one in fitting or (made[:1] if names else ()) if _is_worth_it(one)]
    return found


def rungs_of(wanted: Sequence[str]) -> tuple[str, ...]:
    """Name the rungs that some qualities stand on: what is made in another codec is made in H.264 too."""
    return tuple(dict.fromkeys(name.split("-")[0] for name in wanted))


def _like(rendition: PlannedRendition, codec: Codec) -> PlannedRendition:
    return rendition.model_copy(
        update={
            "quality": quality_name(rendition.quality, codec),
            "codec": codec,
            "video_kbps": max(1, round(rendition.video_kbps * SHARE_OF_CAP[codec])),
        }
    )


def _is_worth_it(rendition: PlannedRendition) -> bool:
    return min(rendition.width, rendition.height) >= LEAST_SIDE
