"""The filters of a sound track: two channels at the level they had, in time with the picture.

Named as plain (name, options) pairs, as in `filters.py`; `commands.py` turns them into a command line.
"""

from collections.abc import Iterable, Iterator

from contracts.plan import PlannedAudio
from media.filters import SOUND_MARGIN_S, Filter

RATE = 48_000
_TICK_S = 10
PRIMING = 1024  # samples that the AAC encoder puts before the first
# Broadcasts change from 5.1 to stereo and back. ffmpeg then lays its filters anew, which fill with silence from the
# start up to there: what has been heard already is dropped behind the encoder. The first may lie before 0, by which
# `verify.has_sound` knows mere padding; so all are compared a second later.
ONWARD = rf"noise=drop='if(lt(pts+{RATE}\,ld(0))\,1\,st(0\,pts+{RATE + 1})*0)'"
_LEAD_S = 10  # sound before the picture is cut away anyway; so long before, its time stamp is wrong
_MOST_KNOWN = 8  # channels that have a usual layout, when the file names none
_HALF_POWER = "0.7071"
_PEAK = 0.95  # of full scale, -0.45 dBFS: a lossy encoder overshoots a little


def to_stereo(audio: PlannedAudio) -> Iterator[Filter]:
    """Mix to two channels; every browser plays stereo."""
    # As floats nothing clips before the limiter.
    yield "aformat", {"sample_fmts": "fltp"}
    if audio.source_channels == 1 or audio.source_layout.startswith("ambisonic"):
        # Both speakers at full level, as everybody plays a mono file; ffmpeg's own mix would be 3 dB lower.
        # Of ambisonics the first channel is what comes from all around.
        yield "pan", {"args": "stereo|c0=c0|c1=c0"}
    elif audio.source_channels > 2 and not _is_known(audio):
        yield "pan", {"args": "stereo|c0=c0|c1=c1"}  # nobody says what they are; the first two are a pair
    elif audio.source_channels > 2:
        # By name, so that it is the same in every build: ffmpeg's own mix follows the file's wishes in some, and is
        # turned down by up to 7.7 dB for sources of whole numbers. A channel that is not there counts as silence.
        sides = ("+".join([f"F{side}", *(f"{share}*{name}" for name, share in _mix(side))]) for side in "LR")
        yield "pan", {"args": "stereo|" + "|".join(f"F{side}={mix}" for side, mix in zip("LR", sides, strict=True))}
        # All channels loud at once go over the top: hold only those peaks. Its look-ahead is taken out again.
        yield "alimiter", {"limit": str(_PEAK), "level": "disabled", "latency": 1}


def _mix(side: str) -> Iterator[tuple[str, str]]:
    """Name what one side gets beside its own front channel, as ITU-R BS.775 has it; the bass channel is left out.

    The centre is in both sides at -3 dB: as loud as it was, and speech with it.
    """
    yield "FC", _HALF_POWER
    yield "BC", "0.5"
    for name in ("B", "S", "TF", "TB"):
        yield f"{name}{side}", _HALF_POWER
    yield f"F{side}C", _HALF_POWER


def _is_known(audio: PlannedAudio) -> bool:
    """Tell whether the channels have names; without a layout ffmpeg takes the usual one, up to eight of them."""
    if " channels" in audio.source_layout:
        return "FL" in audio.source_layout and "FR" in audio.source_layout
    return bool(audio.source_layout) or audio.source_channels <= _MOST_KNOWN


def on_clock(video_start_s: str, duration_s: float) -> Iterator[Filter]:
    """Lay the sound on the picture's clock, at our rate."""
    # Sound is measured from the picture's start, so that both begin together.
    yield "asetpts", {"expr": f"PTS-({video_start_s}/TB)"}
    # One wrong time stamp must not become days of silence: such pieces are left out, wherever they come …
    end_s = f"{duration_s + SOUND_MARGIN_S:.6f}"
    yield "aselect", {"expr": f"not(lt(t,-{_LEAD_S})+gte(t,{end_s}))"}
    # … and the piece that crosses the end is cut at it.
    yield "atrim", {"end": end_s}
    # First to our rate alone, for `first_pts` counts samples of what comes in.
    yield "aresample", {"sample_rate": RATE}


def ticks(gaps: Iterable[tuple[float, float]], duration_s: float) -> str:
    """Describe a source of one silent sample every ten seconds, within the gaps of a track.

    They cut a long silence into pieces: ffmpeg makes each piece whole in memory, and an hour of it is 1.6 GB.
    """
    within = "+".join(f"between(t,{start + 1:.3f},{end - 1:.3f})" for start, end in gaps)
    ticking = f"anullsrc=r={RATE}:cl=stereo:n=1,asetpts=N*{_TICK_S}*{RATE},atrim=end={duration_s:.6f}"
    return f"{ticking},aselect='{within}',aformat=fltp"


def after_ticks() -> Iterator[Filter]:
    # ainterleave counts in microseconds and says that it does not.
    yield "asetpts", {"expr": "PTS/1000000/TB"}


def filled(duration_s: float) -> Iterator[Filter]:
    """Let the sound last from the picture's start to its end: silence where there is none."""
    # Fills gaps with silence. The encoder puts 1024 samples before the first: starting at 1024 lets them begin at 0.
    # Hears of a gap from 20 ms on (one lost AAC frame): the 100 ms that ffmpeg lets pass by itself can be seen.
    yield (
        "aresample",
        {"sample_rate": RATE, "async": 1, "first_pts": PRIMING, "min_hard_comp": "0.020"},
    )
    # Sound that ends early goes on as silence: players wait for a track that is shorter than its picture.
    yield "apad", {"whole_dur": f"{max(0.0, duration_s - PRIMING / RATE):.6f}"}
