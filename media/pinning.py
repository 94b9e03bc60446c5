"""What is begun with one ffmpeg is ended with it: two builds make two kinds of init segment, and seams between them.

A build that is gone, upgraded between two attempts, takes what was begun with it along: that starts anew elsewhere.
"""

from collections.abc import Collection, Mapping, Sequence

from contracts.errors import SourceUnsupported
from contracts.media import SourceFacts
from contracts.plan import Encoding, Grid, PlannedAudio, PlannedRendition, ToneMap, TranscodePlan
from contracts.states import Codec
from media import choosing
from media.tools import Ffmpeg, Toolbox

# Better a slightly different look than no video.
_NO_BETTER: dict[ToneMap, tuple[ToneMap, ...]] = {
    ToneMap.ZSCALE: (ToneMap.ZSCALE, ToneMap.TABLES, ToneMap.NONE),
    ToneMap.TABLES: (ToneMap.TABLES, ToneMap.NONE),
    ToneMap.NONE: (ToneMap.NONE,),
}


def pin_alternatives(
    wanted: Sequence[PlannedRendition], tools: Toolbox, facts: SourceFacts, grid: Grid, encoding: Encoding
) -> tuple[list[PlannedRendition], list[str]]:
    """Give each alternative the build that makes it; the video does without those that none can make, and says so.

    All are to look alike, so they are encoded as the H.264 ones are, or not at all.
    """
    pinned: list[PlannedRendition] = []
    notes: list[str] = []
    for rendition in wanted:
        try:
            tool, _ = choosing.for_rendition(tools, facts, grid, [encoding], rendition.codec)
        except SourceUnsupported as error:
            notes.append(f"{rendition.quality} is left out. {error.sentence}")
        else:
            encoder = choosing.ENCODERS[rendition.codec]
            pinned.append(rendition.model_copy(update={"encoder": encoder, "ffmpeg": tool.build, "gpu": False}))
    return pinned, notes


def pin_tracks(tracks: Sequence[PlannedAudio], makers: Mapping[int, Ffmpeg | None]) -> tuple[PlannedAudio, ...]:
    """Give each track the build that was chosen for its stream."""
    return tuple(
        track.model_copy(update={"ffmpeg": maker.build}) for track in tracks if (maker := makers[track.stream])
    )


def pin_anew(
    plan: TranscodePlan, facts: SourceFacts, tools: Toolbox, pending: Collection[str], anew: Collection[str] = ()
) -> TranscodePlan:
    """Move pending work whose build is not here to builds that are, under its next generation; raise `anew` likewise.

    What was a GPU's is the CPU's from then on.

    What has a build here keeps it: then it was only some other worker that lacks it. So does an alternative that no
    build here can make. Without any build for H.264 or a track the source cannot be handled any more.
    """
    named = {*pending, *anew}
    gone = [r for r in plan.renditions if r.quality in named and (r.gpu or not tools.has(r.ffmpeg))]
    silent = [track for track in plan.audio if f"audio_{track.track}" in named and not tools.has(track.ffmpeg)]
    moved = {r.quality: r for r in plan.renditions if r.quality in anew and not r.gpu}
    heard: dict[int, PlannedAudio] = {}
    if gone or silent:
        encodings = [plan.encoding.model_copy(update={"tone_map": way}) for way in _NO_BETTER[plan.encoding.tone_map]]
        usual, encoding = choosing.for_rendition(tools, facts, plan.grid, encodings, Codec.H264)
        others, _ = pin_alternatives([r for r in gone if r.is_alternative], tools, facts, plan.grid, encoding)
        pinned = {"ffmpeg": usual.build, "encoder": choosing.ENCODERS[Codec.H264], "gpu": False}
        moved |= {r.quality: r.model_copy(update=pinned) for r in gone if not r.is_alternative}
        moved |= {r.quality: r for r in others}
        heard = {track.track: _heard_anew(track, facts, tools, usual) for track in silent}
        pictures = choosing.for_pictures(tools, facts, plan.grid, encoding, usual).build
        names = [*(r.quality for r in gone if r.quality in moved and not r.gpu), *(track.name for track in silent)]
        plan = plan.model_copy(update={"encoding": encoding, "ffmpeg": pictures, "notes": _noted(plan, names)})
    return plan.model_copy(
        update={
            "renditions": tuple(_raised(moved[r.quality]) if r.quality in moved else r for r in plan.renditions),
            "audio": tuple(heard.get(track.track, track) for track in plan.audio),
        }
    )


def _heard_anew(planned: PlannedAudio, facts: SourceFacts, tools: Toolbox, usual: Ffmpeg) -> PlannedAudio:
    track = next(one for one in facts.audio if one.stream == planned.stream)
    maker = choosing.for_track(tools, facts, track, usual)
    if maker is None:
        raise SourceUnsupported(f"No ffmpeg on this machine can decode the sound any more ({track.codec}).")
    return planned.model_copy(update={"ffmpeg": maker.build, "generation": planned.generation + 1})


def _raised(rendition: PlannedRendition) -> PlannedRendition:
    return rendition.model_copy(update={"generation": rendition.generation + 1})


def _noted(plan: TranscodePlan, names: Sequence[str]) -> tuple[str, ...]:
    note = f"The ffmpeg that began {', '.join(names)} is gone; another begins anew."
    return (*plan.notes, note) if names else plan.notes


def who_makes_what(plan: TranscodePlan, tools: Toolbox) -> list[str]:
    """Say which build makes what, a sentence per build."""
    made = [(rendition.quality, rendition.ffmpeg) for rendition in plan.renditions]
    made += [(f"the sound of stream {track.stream}", track.ffmpeg) for track in plan.audio]
    builds: dict[str, list[str]] = {}
    for what, build in [*made, ("the thumbnail", plan.ffmpeg)]:
        builds.setdefault(build, []).append(what)
    found = {tool.build: f"ffmpeg {tool.version} from {tool.origin}" for tool in tools.tools}
    return [f"{found[build]} makes {', '.join(names)}." for build, names in builds.items()]
