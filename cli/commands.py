"""Commands that change something: cancel, pause, resume, priority, retry, retranscode, delete, restore. All are HTTP.

Several videos may be named; each is tried, and the exit code is 1 if any of them was refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import typer

from cli.client import ApiClient, Away, Json
from cli.finding import called, client_settings
from cli.terminal import CliError, complain, say
from cli.videos import ApiOption, JsonOption, print_json
from contracts.states import Tier

Ids = Annotated[list[int], typer.Argument(metavar="ID…", min=1, help="Numbers of videos.")]

Act = Callable[[ApiClient, int], Awaitable[Json]]
Tell = Callable[[int, Json], str]


def cancel(video_ids: Ids, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Cancel a video's job: encoders stop, what it made is removed. One that has ended stays as it is."""

    async def act(client: ApiClient, video_id: int) -> Json:
        return await client.command("POST", f"/api/videos/{video_id}/cancel")

    _each(video_ids, act, _cancelled, as_json=as_json, api=api)


def pause(video_ids: Ids, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Pause a video's job: its workers are free for others, what is stored stays."""
    _each(video_ids, _on_job("pause"), _state, as_json=as_json, api=api)


def resume(video_ids: Ids, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Go on with a paused job where it was."""
    _each(video_ids, _on_job("resume"), _state, as_json=as_json, api=api)


def priority(
    video_ids: Ids,
    tier: Annotated[Tier, typer.Option(help="Who waits for whom.")],
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """Give a video's job another tier; what of it waits already is moved too."""
    _each(video_ids, _on_job("priority", {"tier": tier.value}), _tier, as_json=as_json, api=api)


def retry(video_ids: Ids, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Make what is missing of a video: go on with a failed or cancelled job, or add the qualities it lacks."""

    async def act(client: ApiClient, video_id: int) -> Json:
        return await client.command("POST", f"/api/videos/{video_id}/retry")

    _each(video_ids, act, _begun, as_json=as_json, api=api)


def retranscode(
    video_ids: Ids,
    quality: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated. By default all.")] = None,
    tier: Annotated[
        Tier | None, typer.Option(help="Who waits for whom; of several videos at once `bulk`, else the video's own.")
    ] = None,
    delete_transcription: Annotated[bool, typer.Option(help="Remove the transcription with the old stream.")] = False,
    as_json: JsonOption = False,
    api: ApiOption = None,
) -> None:
    """Encode a video anew; what it has is served until the new stream is whole."""
    chosen = tier or (Tier.BULK if len(video_ids) > 1 else None)
    body = {
        "qualities": quality or [],
        "tier": chosen.value if chosen else None,
        "delete_transcription": delete_transcription,
    }

    async def act(client: ApiClient, video_id: int) -> Json:
        return await client.command("POST", f"/api/videos/{video_id}/retranscode", body)

    _each(video_ids, act, _begun, as_json=as_json, api=api)


def delete(video_ids: Ids, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Take a video off the site and cancel its job; it can be restored until it is purged."""

    async def act(client: ApiClient, video_id: int) -> Json:
        return await client.command("DELETE", f"/api/videos/{video_id}")

    _each(video_ids, act, _deleted, as_json=as_json, api=api)


def restore(video_ids: Ids, as_json: JsonOption = False, api: ApiOption = None) -> None:
    """Bring a deleted video back, under the address it had."""

    async def act(client: ApiClient, video_id: int) -> Json:
        return await client.command("POST", f"/api/videos/{video_id}/restore")

    _each(video_ids, act, _restored, as_json=as_json, api=api)


def _on_job(verb: str, body: Json | None = None) -> Act:
    """Command the newest job of a video: people know videos, not jobs."""

    async def act(client: ApiClient, video_id: int) -> Json:
        job_id = (await client.read_video(video_id)).job_id
        if job_id is None:
            raise CliError(f"Video {video_id} has no job.")
        return await client.command("POST", f"/api/jobs/{job_id}/{verb}", body)

    return act


def _each(video_ids: Sequence[int], act: Act, tell: Tell, *, as_json: bool, api: str | None) -> None:
    async def all_of_them() -> int:
        refused = 0
        async with ApiClient.of(client_settings(), api) as client:
            for video_id in dict.fromkeys(video_ids):
                try:
                    answer = await act(client, video_id)
                except CliError as error:
                    if len(video_ids) == 1 or isinstance(error, Away):
                        raise
                    complain(CliError(f"Video {video_id}: {error.sentence}", mend=error.mend))
                    refused += 1
                    continue
                if as_json:
                    print_json(answer)
                else:
                    say(tell(video_id, answer))
        return refused

    if asyncio.run(all_of_them()):
        raise typer.Exit(1)


def _cancelled(video_id: int, job: Json) -> str:
    if job["state"] in ("completed", "failed", "cancelled"):
        return f"Video {video_id}: job {job['job_id']} is {job['state']}."
    return f"Video {video_id}: job {job['job_id']} is being cancelled."


def _state(video_id: int, job: Json) -> str:
    return f"Video {video_id}: job {job['job_id']} is {job['state']}."


def _tier(video_id: int, job: Json) -> str:
    return f"Video {video_id}: job {job['job_id']} waits as {job['tier']}."


def _begun(video_id: int, created: Json) -> str:
    return f"Video {video_id}: job {created['job_id']}; follow it: {called()} watch {video_id}"


def _deleted(video_id: int, video: Json) -> str:
    return f"Video {video_id} is deleted; bring it back: {called()} restore {video_id}"


def _restored(video_id: int, video: Json) -> str:
    return f"Video {video_id} is back ({video['status']})."
