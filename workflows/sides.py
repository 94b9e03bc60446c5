"""What is made beside the picture: sound, subtitles, thumbnail, storyboard."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.audio import AudioSteps
    from activities.pictures import PictureSteps
    from activities.subtitles import SubtitleSteps
    from contracts.errors import BuildMissing
    from contracts.layout import audio_prefix
    from contracts.media import SourceFacts
    from contracts.plan import TranscodePlan
    from contracts.queues import Turn
    from contracts.renditions import SubtitleRendition
    from contracts.states import JobKind
    from contracts.steps import EncodeAudio, EncodedAudio, MakeStoryboard, MakeThumbnail, TranscodeRequest
    from contracts.subtitle_steps import MakeSubtitles
    from workflows import options
    from workflows.planned import Planned
    from workflows.reasons import reason
    from workflows.stepping import Outgrown, Steps


async def audio(steps: Steps, job: TranscodeRequest, number: int, facts: SourceFacts, planned: Planned) -> EncodedAudio:
    """Encode a track; with another ffmpeg, and anew, when the one it was begun with is gone."""
    moves = 0
    while True:
        plan = planned.plan
        track = next(track for track in plan.audio if track.track == number)
        # One sound is enough to begin to watch; the others, each a whole film, would keep the picture waiting.
        turn = Turn.SOUND if track.default and job.kind is not JobKind.RETRANSCODE else Turn.REST
        request = EncodeAudio(
            job_id=job.job_id,
            video_id=job.video_id,
            source_key=job.source_key,
            prefix=audio_prefix(job.slug, job.output, number, track.generation),
            audio=track,
            grid=plan.grid,
            video_start_s=facts.video.start_s,
            ffmpeg=track.ffmpeg,
        )
        summary = f"sound: {track.name} ({track.language})"
        promise = options.audio(plan, job.source_size_bytes, turn)
        try:
            return await steps.run(AudioSteps.encode_audio, request, promise, summary)
        except ActivityError as error:
            if reason(error).code != BuildMissing.code or moves >= options.MOVES:
                raise
        moves += 1
        await planned.find_builds((f"audio_{number}",))


async def subtitles(
    steps: Steps, job: TranscodeRequest, facts: SourceFacts, plan: TranscodePlan, notes: list[str]
) -> tuple[SubtitleRendition, ...]:
    """Make every subtitle rendition, or none: a video without them is still a video."""
    if not plan.subtitles:
        return ()
    request = MakeSubtitles(
        job_id=job.job_id,
        video_id=job.video_id,
        source_key=job.source_key,
        slug=job.slug,
        output=job.output,
        subtitles=plan.subtitles,
        video_start_s=facts.video.start_s,
        duration_s=plan.grid.duration_s,
        ffmpeg=plan.ffmpeg,
    )
    promise = options.subtitles(job.source_size_bytes)
    try:
        made = await steps.run(SubtitleSteps.make_subtitles, request, promise, "subtitles")
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        notes.append(f"The subtitles could not be made: {reason(error).sentence}")
        return ()
    notes.extend(made.notes)
    return made.tracks


async def thumbnail(steps: Steps, job: TranscodeRequest, facts: SourceFacts, plan: TranscodePlan) -> None:
    request = MakeThumbnail(
        job_id=job.job_id,
        video_id=job.video_id,
        source_key=job.source_key,
        slug=job.slug,
        video=facts.video,
        encoding=plan.encoding,
        ffmpeg=plan.ffmpeg,
    )
    try:
        await steps.run(PictureSteps.thumbnail, request, options.THUMBNAIL, "thumbnail")
    except ActivityError as error:
        # A video without a picture is still a video; the step's row says what went wrong.
        if is_cancelled_exception(error):
            raise
        workflow.logger.warning("no thumbnail: %s", reason(error).sentence)


async def storyboard(steps: Steps, job: TranscodeRequest, facts: SourceFacts, plan: TranscodePlan) -> None:
    """Make the small pictures for the time bar; the video is ready already, and nothing here can change that."""
    request = MakeStoryboard(
        job_id=job.job_id,
        video_id=job.video_id,
        source_key=job.source_key,
        slug=job.slug,
        video=facts.video,
        encoding=plan.encoding,
        duration_s=plan.grid.duration_s,
        ffmpeg=plan.ffmpeg,
    )
    try:
        await steps.run(PictureSteps.storyboard, request, options.storyboard(plan), "storyboard")
    except ActivityError as error:
        workflow.logger.warning("no storyboard: %s", reason(error).sentence)
    except Outgrown:
        workflow.logger.warning("no storyboard: there was no room for it")
    except asyncio.CancelledError:
        workflow.logger.info("cancelled after the end: no storyboard")
