"""Decide what to make of a source: sizes, grid, sound, tool. Pure but for the list of tools it is given."""

from dataclasses import dataclass
from fractions import Fraction

from contracts.errors import SourceUnsupported
from contracts.media import SourceFacts, VideoFacts
from contracts.plan import LADDER, Capacity, Encoding, Grid, PlannedRendition, Rung, Span, ToneMap, TranscodePlan
from contracts.states import Codec
from media import choosing, colour, rates, tone
from media.alternatives import choose_alternatives, rungs_of
from media.pinning import pin_alternatives, pin_tracks, who_makes_what
from media.spans import choose_lists, choose_spans, choose_window
from media.tools import Toolbox
from media.tracks import audio_notes, keep_sounds, plan_audio, plan_subtitles
from media.weights import at_once, slots_taken

INTERLACED = frozenset({"tt", "bb", "tb", "bt"})


@dataclass(frozen=True)
class PlanOptions:
    ladder: tuple[Rung, ...] = LADDER
    segment_seconds: float = 6.0
    preset: str = "medium"
    crf: float = 22.0
    span_seconds: float = 120.0
    share_decode: bool = True
    codecs: tuple[Codec, ...] = (Codec.H264,)
    gpu_start_s: float = 60.0


def make_plan(
    facts: SourceFacts,
    options: PlanOptions,
    tools: Toolbox,
    wanted: tuple[str, ...] = (),
    capacity: Capacity | None = None,
) -> TranscodePlan:
    """Plan every rendition of a video; `wanted` names some qualities instead of the whole ladder."""
    capacity = capacity or Capacity()
    rungs, skipped = choose_rungs(facts.video, options.ladder, rungs_of(wanted))
    grid, notes = make_grid(facts.video, options.segment_seconds)
    # A source that cannot seek is decoded from its start for every span: cutting would cost more than it gives.
    whole = (Span(first_segment=0, segments=grid.segments),)
    tool, encoding = choosing.for_rendition(tools, facts, grid, _encodings(facts.video, options), Codec.H264)
    notes += _colour_notes(facts.video, encoding)
    made = tuple(
        PlannedRendition(quality=rung.name, width=width, height=height, video_kbps=rung.video_kbps, ffmpeg=tool.build)
        for rung, (width, height) in rungs
    )
    # Large pictures take several slots: fewer of them run side by side.
    capacity = capacity.model_copy(update={"slots": at_once(capacity, slots_taken(facts.video, made))})
    gap_s = facts.video.keyframe_gap_s
    spans = choose_spans(grid, capacity, options.span_seconds, gap_s) if facts.video.seekable else whole
    others, left_out = pin_alternatives(choose_alternatives(made, options.codecs, wanted), tools, facts, grid, encoding)
    makers = {track.stream: choosing.for_track(tools, facts, track, tool) for track in facts.audio}
    audible = tuple(track for track in facts.audio if makers[track.stream])
    heard, over = keep_sounds(audible, grid)
    subtitles, cut = plan_subtitles(facts.subtitles)
    notes += [*left_out, *audio_notes(facts.audio, audible, grid), *over, *cut]
    if facts.remuxed:
        notes.append(f"It seeks badly as {facts.format_name}: its packets were copied to {facts.remuxed} first.")
    plan = TranscodePlan(
        grid=grid,
        renditions=(*made, *others),
        skipped=skipped,
        audio=pin_tracks(plan_audio(heard, max(rung.audio_kbps for rung, _ in rungs)), makers),
        subtitles=subtitles,
        spans=spans,
        lists=choose_lists((*made, *others), spans, grid, capacity, share=options.share_decode),
        window=choose_window(capacity),
        gpu_start_s=options.gpu_start_s,
        encoding=encoding,
        ffmpeg=choosing.for_pictures(tools, facts, grid, encoding, tool).build,
    )
    return plan.model_copy(update={"notes": (*notes, *who_makes_what(plan, tools))})


def _encodings(video: VideoFacts, options: PlanOptions) -> list[Encoding]:
    """Give the ways to encode this picture, the best first; which of them is possible depends on the ffmpegs here."""
    base = Encoding(
        preset=options.preset,
        crf=options.crf,
        deinterlace=video.field_order in INTERLACED,
        field_rate=shows_fields(video),
    )
    if video.color_transfer in tone.TRANSFERS:
        ways = (ToneMap.ZSCALE, ToneMap.TABLES, ToneMap.NONE)
        return [base.model_copy(update={"tone_map": way}) for way in ways]
    if video.color_primaries in colour.WIDE_PRIMARIES:
        return [base.model_copy(update={"narrow_gamut": True}), base]
    return [base]


def _colour_notes(video: VideoFacts, encoding: Encoding) -> list[str]:
    """Say what became of colours that SDR does not have."""
    if video.color_transfer in tone.TRANSFERS:
        how = {ToneMap.ZSCALE: "with zscale", ToneMap.TABLES: "by tables, without zscale", ToneMap.NONE: "not at all"}
        return [f"HDR ({video.color_transfer}) is mapped to SDR {how[encoding.tone_map]}."]
    if encoding.narrow_gamut:
        return [f"Colours of {video.color_primaries} are brought to those of BT.709."]
    return []


def choose_rungs(
    video: VideoFacts, ladder: tuple[Rung, ...], wanted: tuple[str, ...] = ()
) -> tuple[list[tuple[Rung, tuple[int, int]]], tuple[str, ...]]:
    """Choose rungs by the short side, never larger than the source; name those left out for their size."""
    short_side = min(video.display_width, video.display_height)
    ladder = tuple(sorted(ladder, key=lambda rung: rung.short_side, reverse=True))
    skipped = tuple(rung.name for rung in ladder if rung.short_side > short_side)
    fitting = [rung for rung in ladder if rung.short_side <= short_side]
    if not fitting:
        # Smaller than the whole ladder: one rung at its own size, at the lowest rung's rates.
        # Rounded down: 359 must not become the 360p that it is too small for.
        width, height = (max(2, side // 2 * 2) for side in (video.display_width, video.display_height))
        own_side = min(width, height)
        own = ladder[-1].model_copy(update={"name": f"{own_side}p", "short_side": own_side})
        return [(own, (width, height))], skipped
    if wanted:
        known = {rung.name for rung in ladder}
        if unknown := [name for name in wanted if name not in known]:
            raise SourceUnsupported(f"There is no quality called {', '.join(unknown)}.")
        # Of larger qualities than the source has, the largest that it does have is the nearest to the wish.
        fitting = [rung for rung in fitting if rung.name in wanted] or fitting[:1]
        skipped = tuple(name for name in skipped if name in wanted)
    return [(rung, rung_size(video, rung.short_side)) for rung in fitting], skipped


def rung_size(video: VideoFacts, short_side: int) -> tuple[int, int]:
    """Scale the upright picture to a short side; even numbers, for 4:2:0 halves them."""
    width, height = video.display_width, video.display_height
    scale = Fraction(short_side, min(width, height))
    return (_even(width * scale), _even(short_side)) if width >= height else (_even(short_side), _even(height * scale))


def _even(length: int | Fraction) -> int:
    return max(2, round(Fraction(length) / 2) * 2)


def shows_fields(video: VideoFacts) -> bool:
    """Say whether each field becomes a picture of its own: 25 interlaced frames are 50 moments a second.

    On a television each was seen; at the frame rate half of them are lost and sports stutter. Beyond 60 a second
    frames must do.
    """
    return video.field_order in INTERLACED and 2 * video.frame_rate.fraction <= rates.FASTEST


def make_grid(video: VideoFacts, segment_seconds: float) -> tuple[Grid, list[str]]:
    """Lay the frame grid that all renditions share."""
    found = video.frame_rate.fraction
    fields = 2 if shows_fields(video) else 1
    rate = rates.bounded(found * fields)
    # Pictures of a constant rate are counted; else the length decides.
    counted = not video.variable_rate and rate == found * fields
    frames = video.packets * fields if counted else max(1, round(video.end_s * float(rate)))
    segment_frames = max(1, round(Fraction(segment_seconds).limit_denominator(1000) * rate))
    grid = Grid(frame_rate=rates.message(rate), frames=frames, segment_frames=segment_frames)
    return grid, _rate_notes(video, rate)


def _rate_notes(video: VideoFacts, rate: Fraction) -> list[str]:
    """Say what became of the source's rate, and why."""
    found = video.frame_rate.fraction
    notes = []
    if video.field_order in INTERLACED:
        each = "field" if shows_fields(video) else "frame"
        notes.append(f"Interlaced pictures are deinterlaced, one picture of each {each}.")
    if video.variable_rate:
        average = float(video.average_rate.fraction)
        notes.append(f"A variable frame rate (average {average:.3f}) becomes a constant {_said(rate)} fps.")
        if video.crowded:
            notes.append(f"{video.crowded} pictures that are shown too shortly to be seen are left out.")
    elif rate != found and video.field_order not in INTERLACED:
        why = "pictures are left out evenly" if rate < found else "pictures are repeated evenly"
        notes.append(f"{_said(found)} fps become {_said(rate)}: {why}.")
    return notes


def _said(rate: Fraction) -> str:
    return str(rate.numerator) if rate.denominator == 1 else f"{float(rate):.3f}"
