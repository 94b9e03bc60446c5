"""Every command in every state: what it answers, and what it leaves behind."""

import pytest

from tests.integration.api.running import Api
from tests.integration.commands.story import ENDED, STATES, Made, in_state, job_row
from tests.support.eventually import eventually

OK, DONE = (200, None), (201, None)
LATE, BUSY = (409, "JOB_ENDED"), (409, "JOB_UNFINISHED")

RUNNING = {
    "cancel": OK,
    "pause": OK,
    "resume": OK,
    "priority": OK,
    "retry": BUSY,
    "retranscode": BUSY,
    "delete": OK,
    "restore": OK,
}
OVER = {
    "cancel": OK,
    "pause": LATE,
    "resume": LATE,
    "priority": LATE,
    "retry": DONE,
    "retranscode": DONE,
    "delete": OK,
    "restore": OK,
}
ANSWERS = {state: OVER if state in ENDED else RUNNING for state in STATES}
ANSWERS["completed"] = OVER | {"retry": (409, "NOTHING_TO_RETRY")}

# What the job reads afterwards, where it is not what it was.
BECOMES = {"cancel": "cancelled", "delete": "cancelled", "pause": "paused", "resume": "unpaused"}


async def command(api: Api, made: Made, name: str) -> tuple[int, str | None]:
    video, job = f"/api/videos/{made.video_id}", f"/api/jobs/{made.job_id}"
    match name:
        case "delete":
            answer = await api.http.delete(video)
        case "retry" | "retranscode" | "restore":
            answer = await api.http.post(f"{video}/{name}")
        case "priority":
            answer = await api.http.post(f"{job}/priority", json={"tier": "viral"})
        case _:
            answer = await api.http.post(f"{job}/{name}")
    return answer.status_code, answer.json().get("error")


@pytest.mark.parametrize("state", STATES)
async def test_every_command_in_every_state(api: Api, state: str) -> None:
    for name, expected in ANSWERS[state].items():
        made = await in_state(api, state)
        before = (await job_row(api, made.job_id))["state"]
        # Said twice it is the same, but for what makes a new job: the second finds the first one's.
        assert await command(api, made, name) == expected, (state, name)
        assert await command(api, made, name) == (BUSY if expected == DONE else expected), (state, name)
        wanted = BECOMES.get(name, before) if state not in ENDED else before
        wanted = {"unpaused": "unclaimed" if state == "paused" else before}.get(wanted, wanted)

        async def is_so(made: Made = made, wanted: str = wanted) -> bool:
            return bool((await job_row(api, made.job_id))["state"] == wanted)

        await eventually(is_so, within=60, every=0.1)
        row = await job_row(api, made.job_id)
        assert (row["deleted_at"] is not None) == (name == "delete"), (state, name)
        if name == "priority" and state not in ENDED:
            assert row["tier"] == "viral"


async def test_what_is_not_there_is_not_found(quiet_api: Api) -> None:
    nobody = Made(987_654_321, 987_654_321, "nobody")
    for name in RUNNING:
        kind = "JOB" if name in ("cancel", "pause", "resume", "priority") else "VIDEO"
        assert await command(quiet_api, nobody, name) == (404, f"{kind}_NOT_FOUND"), name


async def test_a_deleted_video_takes_no_command_but_to_be_restored(api: Api) -> None:
    made = await in_state(api, "completed")
    assert await command(api, made, "delete") == OK
    for name in ("retry", "retranscode"):
        assert await command(api, made, name) == (404, "VIDEO_NOT_FOUND")
    assert (await api.http.post(f"/api/videos/{made.video_id}/cancel")).status_code == 404
    assert await command(api, made, "restore") == OK
    assert await command(api, made, "retranscode") == DONE


async def test_jobs_are_listed_by_the_state_they_are_in(api: Api) -> None:
    made = {state: await in_state(api, state) for state in STATES if state != "unstarted"}
    for state, one in made.items():
        page = (await api.http.get("/api/jobs", params={"state": state})).json()
        assert [job["job_id"] for job in page["items"]] == [one.job_id], state
        assert {job["state"] for job in page["items"]} == {state}
