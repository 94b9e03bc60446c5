"""What people see of a job follows from its steps alone."""

from datetime import UTC, datetime, timedelta

from contracts.states import QualityStatus, StepName, StepOutcome
from contracts.steps import generation_in
from mirror.deriving import latest_attempts, picture_job, picture_quality
from mirror.slugs import free_slug, slug_of
from mirror.tables import Job, JobStep, QualityProgressRow

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def job(**given: object) -> Job:
    return Job(**{"max_attempts": 3, "attempt_number": 1, "progress_percent": 0, "plan": {"audio": [{}]}, **given})


def step(name: StepName, outcome: StepOutcome = StepOutcome.RUNNING, **given: object) -> JobStep:
    ended = outcome is not StepOutcome.RUNNING
    plain: dict[str, object] = {
        "step_key": name.value,
        "generation": 0,
        "attempt": 1,
        "tries": 1,
        "started_at": NOW,
        "claim_expires_at": NOW + timedelta(seconds=30),
        "finished_at": NOW if ended else None,
        "percent": 100.0 if outcome is StepOutcome.COMPLETED else 0.0,
        "progress": {},
        "qualities": [],
        "will_retry": False,
    }
    return JobStep(step=name, outcome=outcome, **{**plain, **given})


def quality(name: str, percent: int = 0, **given: object) -> QualityProgressRow:
    size = {"1080p": (1920, 1080), "360p": (640, 360)}[name]
    plain: dict[str, object] = {"status": QualityStatus.PENDING, "segments_total": 4, "segments_completed": 0}
    return QualityProgressRow(
        quality=name, width=size[0], height=size[1], progress_percent=percent, **{**plain, **given}
    )


def span(first: int, segments: int, done: int, outcome: StepOutcome = StepOutcome.RUNNING, **given: object) -> JobStep:
    told = {"qualities": [{"quality": "360p", "segments_completed": done, "percent": 100 * done / segments}]}
    key = {"step_key": f"transcode:{first}+{segments}:360p", "first_segment": first, "segments": segments}
    return step(StepName.TRANSCODE, outcome, **{**key, "qualities": ["360p"], "progress": told, **given})


def test_a_large_rung_weighs_more_than_a_small_one() -> None:
    done_small = picture_job(job(), [], [quality("1080p"), quality("360p", 100)]).percent
    done_large = picture_job(job(), [], [quality("1080p", 100), quality("360p")]).percent
    assert done_small == 9
    assert done_large == 81


def test_only_the_end_itself_is_a_hundred_percent() -> None:
    steps = [step(name, StepOutcome.COMPLETED) for name in StepName if name is not StepName.TRANSCODE]
    assert picture_job(job(), steps, [quality("360p", 100)]).percent == 99


def test_a_silent_video_does_not_wait_for_sound() -> None:
    silent, loud = job(plan={"audio": []}), job(plan={"audio": [{}, {}]})
    assert picture_job(silent, [], []).percent == 3
    assert picture_job(loud, [step(StepName.AUDIO, StepOutcome.COMPLETED)], []).percent == 1


def test_progress_never_goes_back() -> None:
    assert picture_job(job(progress_percent=50), [], [quality("360p", 10)]).percent == 50


def test_transcode_is_shown_while_sound_and_picture_run_beside_it() -> None:
    beside = [step(StepName.AUDIO), step(StepName.TRANSCODE), step(StepName.THUMBNAIL)]
    assert picture_job(job(), beside, []).current_step is StepName.TRANSCODE
    assert picture_job(job(), [beside[0], beside[2]], []).current_step is StepName.AUDIO


def test_the_claim_is_the_one_that_lasts_longest() -> None:
    short = step(StepName.AUDIO)
    long = step(StepName.TRANSCODE, claim_expires_at=NOW + timedelta(seconds=60))
    assert picture_job(job(), [long, short], []).held is long


def test_a_failure_is_the_jobs_error_only_when_nothing_is_held() -> None:
    failed = step(StepName.AUDIO, StepOutcome.FAILED, will_retry=True, error_message="crashed")
    assert picture_job(job(), [failed, step(StepName.TRANSCODE)], []).last_error is None
    assert picture_job(job(), [failed], []).last_error == "crashed"


def test_the_last_try_is_never_called_retrying() -> None:
    failed = step(StepName.AUDIO, StepOutcome.FAILED, will_retry=True, error_message="crashed", tries=3)
    picture = picture_job(job(), [failed], [])
    assert (picture.attempt_number, picture.last_error) == (3, None)


def test_a_publish_that_is_tried_for_ever_uses_no_attempt_and_shows_why_it_fails() -> None:
    failed = step(StepName.PUBLISH, StepOutcome.FAILED, will_retry=True, error_message="no table", tries=40)
    picture = picture_job(job(), [failed], [])
    assert (picture.attempt_number, picture.last_error) == (1, "no table")


def test_tries_of_a_finished_step_do_not_count() -> None:
    probed = step(StepName.PROBE, StepOutcome.COMPLETED, tries=3)
    assert picture_job(job(), [probed, step(StepName.PLAN, tries=2)], []).attempt_number == 2


def test_spans_of_one_quality_add_up_to_the_whole() -> None:
    half = picture_quality(quality("360p"), [span(0, 2, 2, StepOutcome.COMPLETED), span(2, 2, 1)])
    assert (half.status, half.segments_completed, half.percent) == (QualityStatus.IN_PROGRESS, 3, 75)
    whole = picture_quality(quality("360p"), [span(0, 2, 2, StepOutcome.COMPLETED), span(2, 2, 2)])
    assert (whole.status, whole.segments_completed, whole.percent) == (QualityStatus.COMPLETED, 4, 100)


def test_a_new_attempt_does_not_take_back_what_was_done() -> None:
    before = quality("360p", 50, segments_completed=2)
    picture = picture_quality(before, latest_attempts([span(0, 4, 2), span(0, 4, 0, attempt=2)]))
    assert (picture.segments_completed, picture.percent) == (2, 50)


def test_each_quality_has_its_own_fate() -> None:
    failed = span(0, 4, 1, StepOutcome.FAILED, error_message="bad")
    assert picture_quality(quality("360p"), [failed]).status is QualityStatus.FAILED
    again = span(0, 4, 1, StepOutcome.FAILED, error_message="bad", will_retry=True)
    picture = picture_quality(quality("360p"), [again])
    assert (picture.status, picture.error_message) == (QualityStatus.PENDING, "bad")
    assert picture_quality(quality("1080p"), [failed]).status is QualityStatus.PENDING


def test_slugs_need_no_escaping_anywhere() -> None:
    assert slug_of("Ünïcode — & „Quotes“!") == "unicode-quotes"
    assert slug_of("../../etc/passwd") == "etc-passwd"
    assert slug_of("日本語") == "video"
    assert len(slug_of("x" * 10_000)) <= 80
    assert free_slug("a", {"a", "a-2"}) == "a-3"


def test_what_was_made_before_a_quality_started_anew_does_not_count() -> None:
    old = span(0, 4, 4, StepOutcome.COMPLETED)
    assert picture_quality(quality("360p"), [old]).status is QualityStatus.COMPLETED
    waiting = picture_quality(quality("360p"), [old], generation=1)
    assert (waiting.status, waiting.segments_completed) == (QualityStatus.PENDING, 0)
    anew = span(0, 4, 1, step_key="transcode:0+4:1080p,360p.1")
    begun = picture_quality(quality("360p"), [old, anew], generation=1)
    assert (begun.status, begun.segments_completed, begun.percent) == (QualityStatus.IN_PROGRESS, 1, 25)


def test_spans_that_were_cut_anew_count_each_segment_once() -> None:
    """A job that Temporal had forgotten starts again, perhaps for more workers than it was cut for before."""
    before = span(1, 2, 2, StepOutcome.COMPLETED)
    after = [span(0, 2, 1), span(2, 2, 1)]
    picture = picture_quality(quality("360p"), [before, *after])
    assert (picture.status, picture.segments_completed, picture.percent) == (QualityStatus.IN_PROGRESS, 3, 75)


def test_the_generation_of_a_quality_is_read_out_of_its_step() -> None:
    for key, name, generation in [
        ("transcode:0+4:720p.2,360p", "720p", 2),
        ("transcode:0+4:720p.2,360p", "360p", 0),
        ("transcode:0+4:1720p.3,720p.1,360p-av1.12", "720p", 1),
        ("transcode:0+4:1720p.3,720p.1,360p-av1.12", "360p-av1", 12),
        ("transcode:0+4:1720p.3,720p.1,360p-av1.12", "360p", 0),
    ]:
        assert generation_in(key, name) == generation
