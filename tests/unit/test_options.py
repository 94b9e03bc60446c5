"""What a step is promised: how long it may take, and whose turn it is."""

import pytest

from contracts.end_steps import FailJob, Finalize, Publish
from contracts.media import FrameRate
from contracts.plan import Grid, PlannedRendition, Span, TranscodePlan
from contracts.queues import Turn
from contracts.states import UNTIL_DONE, Tier
from tests.support.media_facts import video
from workflows import options

LOW = PlannedRendition(quality="360p", width=640, height=360, video_kbps=600)
SPAN = Span(first_segment=0, segments=10)
HIGH = PlannedRendition(quality="2160p", width=3840, height=2160, video_kbps=15000)


def grid(hours: float) -> Grid:
    return Grid(frame_rate=FrameRate(num=30), frames=round(hours * 3600 * 30), segment_frames=180)


def plan(hours: float, *lists: tuple[str, ...]) -> TranscodePlan:
    whole = Span(first_segment=0, segments=grid(hours).segments)
    return TranscodePlan(grid=grid(hours), renditions=(HIGH, LOW), spans=(whole,), lists=lists)


def limit_s(hours: float, *renditions: PlannedRendition) -> float:
    whole = Span(first_segment=0, segments=grid(hours).segments)
    return options.transcode(video(), grid(hours), renditions, whole).limit_s


def test_a_transcode_may_take_longer_the_longer_and_the_larger_it_is() -> None:
    fixed = limit_s(0, LOW)
    assert limit_s(2, LOW) - fixed == pytest.approx(2 * (limit_s(1, LOW) - fixed))
    assert limit_s(1, HIGH) > 10 * limit_s(1, LOW)
    assert limit_s(1, HIGH, LOW) > limit_s(1, HIGH)


def test_no_film_is_too_long() -> None:
    # At a picture a second, thirty times slower than it plays, a day of 2160p still ends in time.
    assert limit_s(24, HIGH) > 30 * 24 * 3600
    for promise in (options.audio(plan(24), 0), options.storyboard(plan(24))):
        assert promise.limit_s > 24 * 3600


def test_the_last_span_of_a_long_film_has_time_to_be_decoded_from_the_films_start() -> None:
    """Where keyframes are rare or broken. A slow core decodes 2160p at ten pictures a second, of 30."""
    first, last = Span(first_segment=0, segments=20), Span(first_segment=1780, segments=20)
    for picture, slower in ((video(3840, 2160), 3), (video(1280, 720), 0.3)):
        limits = [options.transcode(picture, grid(3), (LOW,), span).limit_s for span in (first, last)]
        assert limits[1] - limits[0] > slower * 1780 * 6


def test_sound_has_time_to_be_read_out_of_a_huge_file() -> None:
    """An hour of 8K from a studio has half a terabyte; a slow disk gives 5 MB a second."""
    half_a_terabyte = 500 * 10**9
    assert options.audio(plan(1), half_a_terabyte).limit_s > half_a_terabyte / 5e6


def test_whoever_reads_the_source_has_time_to_fetch_it_over_a_slow_line() -> None:
    size = 20 * 10**9
    reading = (options.probe(size), options.remux(size), options.subtitles(size), options.audio(plan(1), size))
    making = (options.transcode(video(), grid(1), (LOW,), SPAN), options.storyboard(plan(1)), options.THUMBNAIL)
    gpu = options.transcode_on_gpu(video(), grid(1), LOW, SPAN, start_within_s=60)
    for promise in (*reading, *making, gpu):
        assert promise.limit(size).total_seconds() - promise.limit().total_seconds() == size / 1e6
    for promise in (options.PLAN, options.VERIFY, options.MANIFESTS, options.PUBLISH, options.ENDING):
        assert promise.limit(size) == promise.limit(), "nothing is fetched for it"


def test_only_what_lets_people_begin_to_watch_has_a_turn_of_its_own() -> None:
    first = options.transcode(video(), grid(1), (LOW,), SPAN, Turn.OPENING)
    rest = options.transcode(video(), grid(1), (HIGH,), SPAN)
    ahead = options.turn(first, "ana", Tier.HOBBY)
    assert (ahead.priority_key, ahead.fairness_key) == (Tier.HOBBY.priority, "ana/opening")
    assert ahead.fairness_weight == 1000  # Temporal takes no more
    behind = options.turn(rest, "ana", Tier.HOBBY)
    assert (behind.priority_key, behind.fairness_key, behind.fairness_weight) == (Tier.HOBBY.priority, "ana", 1)


def test_the_mirror_knows_which_steps_are_tried_until_they_succeed() -> None:
    """So that their tries are not taken for the job's attempts."""
    assert options.PUBLISH.until_done and options.ENDING.until_done
    assert {Publish.step, Finalize.step, FailJob.step} == UNTIL_DONE


def test_sound_has_a_turn_beside_the_picture_so_that_neither_owners_nor_videos_lose_theirs_to_it() -> None:
    sound = options.turn(options.audio(plan(1), 0, Turn.SOUND), "ana", Tier.HOBBY)
    assert (sound.fairness_key, sound.fairness_weight) == ("ana/sound", 1000)
