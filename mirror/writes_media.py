"""What the steps found out: facts of the source, the plan, whole renditions. Nothing is written on an ended job."""

from typing import Any

from sqlalchemy import delete, func, update
from sqlalchemy.dialects.postgresql import insert

from contracts.end_steps import VerifiedRenditions
from contracts.ids import JobId, VideoId
from contracts.media import SourceFacts
from contracts.plan import TranscodePlan
from contracts.renditions import AudioRendition, SubtitleRendition, VideoRendition
from contracts.states import QualityStatus
from mirror.cleaning import clean, jsonable
from mirror.deriving import generations
from mirror.descents import tell_descents
from mirror.locking import lock_job
from mirror.sessions import WriteSession
from mirror.states import has_ended
from mirror.tables import AudioRenditionRow, Job, QualityProgressRow, SubtitleRenditionRow, Video, VideoQuality


async def record_facts(s: WriteSession, job_id: JobId, video_id: VideoId, facts: SourceFacts) -> None:
    """Keep what the probe saw; sizes as a viewer sees them, upright."""
    job = await lock_job(s, job_id)
    if job is not None and not has_ended(job):
        await put_facts(s, job, facts)


async def record_plan(s: WriteSession, job_id: JobId, video_id: VideoId, plan: TranscodePlan) -> None:
    """Keep the plan, and a row for each quality it makes or skips."""
    job = await lock_job(s, job_id)
    if job is not None and not has_ended(job):
        await put_plan(s, job, plan)


async def put_facts(s: WriteSession, job: Job, facts: SourceFacts) -> None:
    """Write the facts; the job is locked."""
    await s.execute(
        update(Video)
        .where(Video.id == job.video_id)
        .values(
            duration=facts.duration_s,
            source_width=facts.video.display_width,
            source_height=facts.video.display_height,
            source_facts=jsonable(facts),
            updated_at=func.now(),
        )
    )


async def put_late_facts(s: WriteSession, job: Job, facts: SourceFacts) -> None:
    """Write the facts of a job that has ended, where nobody has told them yet; how long it plays the end has said."""
    await s.execute(
        update(Video)
        .where(Video.id == job.video_id, Video.source_facts.is_(None))
        .values(
            duration=func.coalesce(func.nullif(Video.duration, 0), facts.duration_s),
            source_width=facts.video.display_width,
            source_height=facts.video.display_height,
            source_facts=jsonable(facts),
            updated_at=func.now(),
        )
    )


async def put_plan(s: WriteSession, job: Job, plan: TranscodePlan) -> None:
    """Write the plan; the job is locked.

    A quality of a newer generation than before starts anew, and its row with it: nothing made before is used. The
    job's own percent does not go back. Of a job that has ended only the plan itself is mended: by this one its
    renditions were made, and a retry goes on with it.
    """
    written = jsonable(plan)
    before, now = generations(job.plan), generations(written)
    if any(before.get(name, 0) > generation for name, generation in now.items()):
        return  # told late: a newer plan is there
    anew = [name for name, generation in now.items() if generation > before.get(name, generation)]
    if has_ended(job):
        if anew or job.plan is None:
            await tell_descents(s, job, plan)
            at_the_end = (job.plan or {}).get("notes", ())  # what the end had to say stays said
            written["notes"] += [note for note in at_the_end if note not in written["notes"]]
            job.plan = written
        return
    await tell_descents(s, job, plan)
    job.plan = written
    rows: list[dict[str, Any]] = [
        {
            "job_id": job.id,
            "quality": rendition.quality,
            "status": QualityStatus.PENDING,
            "segments_total": plan.grid.segments,
            "width": rendition.width,
            "height": rendition.height,
        }
        for rendition in plan.renditions
    ]
    skipped = {"status": QualityStatus.SKIPPED, "segments_total": 0, "width": 0, "height": 0}
    rows += [{"job_id": job.id, "quality": quality, **skipped} for quality in plan.skipped]
    for row in rows:
        put = insert(QualityProgressRow).values(row)
        # A repeated plan is the same plan; what has been encoded since is not taken back.
        plan_only = {name: put.excluded[name] for name in ("segments_total", "width", "height")}
        await s.execute(put.on_conflict_do_update(constraint="uq_job_quality", set_=plan_only))
    await s.execute(
        update(QualityProgressRow)
        .where(QualityProgressRow.job_id == job.id, QualityProgressRow.quality.in_(anew))
        .values(
            status=QualityStatus.PENDING,
            segments_completed=0,
            progress_percent=0,
            completed_at=None,
            error_message=None,
        )
    )


async def record_renditions(
    s: WriteSession, job_id: JobId, video_id: VideoId, whole: VerifiedRenditions, keep: tuple[str, ...] = ()
) -> bool:
    """Name the renditions that manifests are built from: those of this job, and those that it keeps.

    False when the job had ended before, and then nothing changes. Whatever else was there is no longer listed:
    another frame grid, or sound of another length, would not match.
    """
    job = await lock_job(s, job_id)
    if job is None or has_ended(job):
        return False
    for video in whole.video:
        values = _video_row(job_id, video_id, video)
        put = insert(VideoQuality).values(values)
        await s.execute(put.on_conflict_do_update(index_elements=["video_id", "quality"], set_=_but(values, "quality")))
    for audio in whole.audio:
        values = _audio_row(job_id, video_id, audio)
        sound = insert(AudioRenditionRow).values(values)
        await s.execute(sound.on_conflict_do_update(index_elements=["video_id", "track"], set_=_but(values, "track")))
    for text in whole.subtitles:
        values = _subtitle_row(job_id, video_id, text)
        words = insert(SubtitleRenditionRow).values(values)
        await s.execute(words.on_conflict_do_update(index_elements=["video_id", "track"], set_=_but(values, "track")))
    current = {*keep, *(video.quality for video in whole.video), *(f"audio_{audio.track}" for audio in whole.audio)}
    pictures = delete(VideoQuality).where(VideoQuality.video_id == video_id, VideoQuality.quality.not_in(current))
    await s.execute(pictures)
    track = func.concat("audio_", AudioRenditionRow.track)
    await s.execute(delete(AudioRenditionRow).where(AudioRenditionRow.video_id == video_id, track.not_in(current)))
    if not keep:  # who keeps something is on the same grid: subtitles that it failed to make anew still fit
        texts = delete(SubtitleRenditionRow).where(SubtitleRenditionRow.video_id == video_id)
        await s.execute(texts.where(SubtitleRenditionRow.track.not_in([text.track for text in whole.subtitles])))
    return True


SIZES = "size_bytes peak_bandwidth average_bandwidth"


def _but(values: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in ("video_id", key)}


def _video_row(job_id: int, video_id: int, rendition: VideoRendition) -> dict[str, Any]:
    same = "quality prefix width height codec codecs timescale frame_duration segment_frames frames"
    return {
        "video_id": video_id,
        "job_id": job_id,
        "bitrate": rendition.bitrate_kbps,
        "frame_rate_num": rendition.frame_rate.num,
        "frame_rate_den": rendition.frame_rate.den,
        **{name: getattr(rendition, name) for name in f"{same} {SIZES}".split()},
    }


def _audio_row(job_id: int, video_id: int, rendition: AudioRendition) -> dict[str, Any]:
    same = "track prefix codecs channels timescale"
    return {
        "video_id": video_id,
        "job_id": job_id,
        "language": clean(rendition.language),
        "name": clean(rendition.name),
        "is_default": rendition.default,
        "segment_durations": [list(run) for run in rendition.segment_durations],
        **{name: getattr(rendition, name) for name in f"{same} {SIZES}".split()},
    }


def _subtitle_row(job_id: int, video_id: int, rendition: SubtitleRendition) -> dict[str, Any]:
    return {
        "video_id": video_id,
        "job_id": job_id,
        "language": clean(rendition.language),
        "name": clean(rendition.name),
        "is_default": rendition.default,
        **{name: getattr(rendition, name) for name in "track prefix forced cues size_bytes".split()},
    }
