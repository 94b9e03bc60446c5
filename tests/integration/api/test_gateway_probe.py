"""A look at a source, by a worker that reaches only the API: believed as far as it can be true."""

from typing import Any

from contracts.media import SourceFacts
from tests.integration.api.claiming import SOURCE, claimed, probe
from tests.integration.api.running import Api
from tests.integration.api.workers import refused
from tests.replay.fake_plans import FACTS
from tests.support.eventually import eventually
from tests.support.media_facts import track

FOUND = FACTS.model_copy(update={"size_bytes": len(SOURCE)})


def told(facts: SourceFacts = FOUND, **changes: Any) -> dict[str, Any]:
    return facts.model_dump(mode="json") | changes


async def test_what_a_remote_look_finds_goes_into_history_and_into_the_mirror(api: Api) -> None:
    async with probe(api) as looking:
        remote = await claimed(api, pool="probe")
        asked = remote.claimed
        assert (asked["activity"], asked["queue"], asked["step_key"]) == ("probe", "vlog-probe", "probe")
        assert asked["limits"]["max_streams"] == 200
        key = asked["request"]["source_key"]
        assert (await remote.get(f"source/{key}")).content == SOURCE
        # It reads, and writes nothing.
        before = api.files()
        for outside in (key, "videos/x/thumbnail.jpg", "init.mp4", ""):
            assert refused(await remote.put(outside, b"x"))[0] in (403, 404, 405), outside
        assert refused(await remote.get("output/videos/"))[1] == "KEY_FORBIDDEN"
        assert api.files() == before

        # Two hundred tracks are more than most answers hold, and are taken.
        many = FOUND.model_copy(update={"audio": tuple(track(n, gaps=((0.0, 40.0),) * 50) for n in range(1, 190))})
        done = await remote.tell("complete", result=told(many))
        assert done.status_code == 200, done.text
        assert await looking.result() == many

        async def shown() -> bool:
            [row] = await api.rows(
                "SELECT v.duration, v.source_width, v.source_facts, s.outcome, s.worker_name FROM job_steps s"
                " JOIN transcoding_jobs j ON j.id = s.job_id JOIN videos v ON v.id = j.video_id WHERE s.job_id = :job",
                job=asked["job_id"],
            )
            known = len((row["source_facts"] or {}).get("audio", ()))
            return (row["duration"], row["source_width"], known, row["outcome"], row["worker_name"]) == (
                *(20, 1280, 189),
                *("completed", "studio"),
            )

        await eventually(shown, within=5)


async def test_what_cannot_be_true_of_the_source_is_refused_and_costs_the_claim_nothing(api: Api) -> None:
    async with probe(api) as looking:
        remote = await claimed(api, pool="probe")
        for lie in (
            told(size_bytes=len(SOURCE) - 1),
            told(duration_s=1e9),
            told(video=told()["video"] | {"start_s": "0/TB),movie=/etc/passwd"}),
            told(video=told()["video"] | {"frame_rate": {"num": 1, "den": 0}}),
            {"segments": 4},
            {},
        ):
            assert (await remote.tell("complete", result=lie)).status_code == 422, lie
        assert (await remote.tell("progress")).status_code == 200
        assert (await remote.tell("complete", result=told())).status_code == 200
        assert await looking.result() == FOUND
