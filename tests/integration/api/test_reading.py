"""Lists, single videos and jobs, and what strange questions are answered."""

from pathlib import Path

import pytest

from contracts.ids import JobId, VideoId
from contracts.states import StepName
from mirror import writes
from tests.integration.api.running import Api, serving
from tests.integration.mirror.story import PLAN, claim, encoded, planned, tell
from tests.support.media_facts import source, track, video


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As before set-up has installed what the page is made with."""
    monkeypatch.setattr("api.assets.WEB", tmp_path / "web")


async def uploaded(api: Api, title: str, **fields: str) -> dict[str, int]:
    answer = await api.http.put("/api/videos", params={"title": title} | fields, content=b"bytes")
    assert answer.status_code == 201, answer.text
    created: dict[str, int] = answer.json()
    return created


async def test_pages_follow_one_another_newest_first_while_new_videos_arrive(lonely_api: Api) -> None:
    ids = [(await uploaded(lonely_api, f"video {n}"))["video_id"] for n in range(5)]
    seen: list[int] = []
    cursor = None
    while True:
        answer = await lonely_api.http.get("/api/videos", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text
        seen += [video["video_id"] for video in answer.json()["items"]]
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            break
        await uploaded(lonely_api, "a newcomer")
    assert seen == ids[::-1]


async def test_the_list_can_be_filtered(lonely_api: Api) -> None:
    ana = await uploaded(lonely_api, "Ana's 100% film", owner="ana")
    bob = await uploaded(lonely_api, "Bob's", owner="bob")
    await lonely_api.change("UPDATE videos SET status = 'ready' WHERE id = :id", id=bob["video_id"])

    async def ids(**filters: str) -> list[int]:
        answer = await lonely_api.http.get("/api/videos", params=filters)
        assert answer.status_code == 200, answer.text
        return [video["video_id"] for video in answer.json()["items"]]

    assert await ids(owner="ana") == await ids(search="100%") == await ids(status="pending") == [ana["video_id"]]
    assert await ids(status="ready") == await ids(search="bob") == [bob["video_id"]]
    assert await ids(search="%_") == await ids(owner="eve") == []


async def test_one_video_says_what_a_player_and_a_page_need(lonely_api: Api) -> None:
    created = await uploaded(lonely_api, "Film", owner="ana", tier="hobby")
    answer = await lonely_api.http.get(f"/api/videos/{created['video_id']}")
    video = answer.json()
    assert (video["slug"], video["title"], video["status"], video["owner"], video["tier"]) == (
        "film",
        "Film",
        "pending",
        "ana",
        "hobby",
    )
    assert video["job_id"] == created["job_id"]
    assert video["stream_url"] is None and video["qualities"] == []
    assert "source_key" not in video and "idempotency_key" not in video
    await lonely_api.change("UPDATE videos SET status = 'ready'")
    folder = lonely_api.root / "videos/film"
    folder.mkdir(parents=True)
    assert (await lonely_api.http.get(f"/api/videos/{created['video_id']}")).json()["thumbnail_url"] is None
    (folder / "thumbnail.jpg").write_bytes(b"picture")
    video = (await lonely_api.http.get(f"/api/videos/{created['video_id']}")).json()
    assert video.pop("report") is None  # nobody has looked at the source yet
    assert (await lonely_api.http.get("/api/videos")).json()["items"] == [video]
    assert video["stream_url"] == "/videos/film/master.m3u8"
    assert video["dash_url"] == "/videos/film/manifest.mpd"
    assert video["thumbnail_url"] == "/videos/film/thumbnail.jpg"
    await lonely_api.change("UPDATE videos SET status = 'processing', playable_at = now()")
    growing = (await lonely_api.http.get("/api/videos")).json()["items"][0]
    assert (growing["dash_url"], growing["thumbnail_url"]) == (None, "/videos/film/thumbnail.jpg")


async def test_one_video_tells_what_was_found_in_it_and_decided(lonely_api: Api) -> None:
    created = await uploaded(lonely_api, "Film")
    job_id, video_id = JobId(created["job_id"]), VideoId(created["video_id"])
    async with lonely_api.database.write() as session:
        await writes.record_facts(session, job_id, video_id, source(video(rotation=90), track(title="\x1b[1mMain\x00")))
        await writes.record_plan(session, job_id, video_id, PLAN)
    report = (await lonely_api.http.get(f"/api/videos/{video_id}")).json()["report"]
    assert report["video"]["rotation"] == 90 and report["video"]["frame_rate"] == "30/1"
    assert report["audio"][0]["title"] == "[1mMain"
    assert [one["quality"] for one in report["decided"]["renditions"]] == ["720p", "360p"]
    assert report["decided"]["notes"] == ["1080p is larger than the source."]


async def test_progress_job_steps_and_events_of_a_fresh_video(lonely_api: Api) -> None:
    created = await uploaded(lonely_api, "Film")
    progress = (await lonely_api.http.get(f"/api/videos/{created['video_id']}/progress")).json()
    assert (progress["status"], progress["percent"], progress["job_id"]) == ("pending", 0, created["job_id"])
    assert (progress["attempt"], progress["max_attempts"], progress["qualities"]) == (1, 3, [])
    assert progress.keys() >= {"step", "eta_seconds"}
    job = (await lonely_api.http.get(f"/api/jobs/{created['job_id']}")).json()
    assert (job["state"], job["video_id"], job["progress_current"]) == ("unclaimed", created["video_id"], 0)
    assert (await lonely_api.http.get(f"/api/jobs/{created['job_id']}/steps")).json() == []
    [event] = (await lonely_api.http.get(f"/api/jobs/{created['job_id']}/events")).json()
    assert (event["event"], event["level"]) == ("job.created", "info")
    after = {"after": event["event_id"]}
    assert (await lonely_api.http.get(f"/api/jobs/{created['job_id']}/events", params=after)).json() == []
    listed = (await lonely_api.http.get("/api/jobs", params={"state": "unclaimed"})).json()
    assert [one["job_id"] for one in listed["items"]] == [created["job_id"]]
    assert (await lonely_api.http.get("/api/jobs", params={"state": "failed"})).json()["items"] == []


async def test_a_job_counts_the_segments_of_all_its_qualities_and_its_events_come_in_pieces(lonely_api: Api) -> None:
    made = await planned(lonely_api.database)
    await tell(lonely_api.database, claim(made, StepName.TRANSCODE), encoded(1, 3))
    path = f"/api/jobs/{made.job_id}"
    job = (await lonely_api.http.get(path)).json()
    # Two rungs of four segments each; the one that is skipped counts for nothing.
    assert (job["progress_current"], job["progress_total"]) == (4, 8)
    counted = {each["quality"]: (each["segments_completed"], each["segments_total"]) for each in job["qualities"]}
    assert (counted["720p"], counted["360p"]) == ((1, 4), (3, 4))
    every = (await lonely_api.http.get(f"{path}/events")).json()
    assert len(every) >= 3
    some = (await lonely_api.http.get(f"{path}/events", params={"limit": 2})).json()
    rest = (await lonely_api.http.get(f"{path}/events", params={"after": some[-1]["event_id"]})).json()
    assert some == every[:2] and rest == every[2:]


STRANGE = [
    ("/api/videos/1", 404, "VIDEO_NOT_FOUND"),
    ("/api/videos/1/progress", 404, "VIDEO_NOT_FOUND"),
    ("/api/jobs/1", 404, "JOB_NOT_FOUND"),
    ("/api/jobs/1/events", 404, "JOB_NOT_FOUND"),
    ("/api/jobs/1/steps", 404, "JOB_NOT_FOUND"),
    ("/api/nothing", 404, "NOT_FOUND"),
    ("/nothing", 404, "NOT_FOUND"),
    ("/api/videos/x", 422, "INVALID_REQUEST"),
    ("/api/videos/0", 422, "INVALID_REQUEST"),
    ("/api/videos/9223372036854775807", 404, "VIDEO_NOT_FOUND"),
    ("/api/videos/9223372036854775808", 422, "INVALID_REQUEST"),
    ("/api/jobs/99999999999999999999999999", 422, "INVALID_REQUEST"),
    ("/api/videos?limit=0", 422, "INVALID_REQUEST"),
    ("/api/videos?limit=100000", 422, "INVALID_REQUEST"),
    ("/api/videos?status=gone", 422, "INVALID_REQUEST"),
    ("/api/videos?cursor=nonsense", 400, "CURSOR_INVALID"),
    ("/api/videos?cursor=%00%ff", 400, "CURSOR_INVALID"),
    ("/api/videos?cursor=99999999999999999999", 400, "CURSOR_INVALID"),
    ("/api/jobs?cursor=-", 400, "CURSOR_INVALID"),
    ("/api/jobs?state=asleep", 422, "INVALID_REQUEST"),
    ("/api/videos?owner=%00", 400, "OWNER_INVALID"),
]


async def test_strange_questions_get_a_code_and_a_sentence(lonely_api: Api) -> None:
    for path, status, code in STRANGE:
        answer = await lonely_api.http.get(path)
        assert (answer.status_code, answer.json()["error"]) == (status, code), (path, answer.text)
        assert answer.json().keys() == {"error", "detail"}
        assert answer.json()["detail"]


async def test_strange_words_in_a_search_find_nothing_and_break_nothing(lonely_api: Api) -> None:
    for words in ("%00", "%ff", "'; DROP TABLE videos;--", "\\", "%25%25", "_"):
        assert (await lonely_api.http.get(f"/api/videos?search={words}")).status_code == 200


async def test_a_deleted_video_is_not_found(lonely_api: Api) -> None:
    created = await uploaded(lonely_api, "Film")
    await lonely_api.change("UPDATE videos SET deleted_at = now()")
    assert (await lonely_api.http.get(f"/api/videos/{created['video_id']}")).status_code == 404
    assert (await lonely_api.http.get("/api/videos")).json()["items"] == []


async def test_a_wrong_method_is_refused_in_the_same_shape(lonely_api: Api) -> None:
    answer = await lonely_api.http.delete("/api/videos")
    assert (answer.status_code, answer.json()["error"]) == (405, "METHOD_NOT_ALLOWED")


async def test_the_pages_stand_alone_and_name_every_route(lonely_api: Api, no_packages: None) -> None:
    home = await lonely_api.http.get("/")
    assert home.status_code == 200 and home.headers["content-type"].startswith("text/html")
    assert f"curl -T my.mp4 &#x27;{lonely_api.url}/api/videos?filename=my.mp4&#x27;" in home.text
    assert 'href="/docs"' in home.text and 'href="/api/health"' in home.text
    docs = await lonely_api.http.get("/docs")
    assert docs.status_code == 200
    for path, methods in (await lonely_api.http.get("/openapi.json")).json()["paths"].items():
        for method in methods.keys() - {"head"}:
            assert f"{method.upper()} {path}</code>" in docs.text
    assert "&quot;slug&quot;: &quot;my-holiday&quot;" in docs.text  # an example, also inside a page of videos
    assert "<code>make setup</code>" in home.text  # the page itself is not there without its packages
    for page in (home, docs):  # blank offline otherwise
        assert "<script" not in page.text and '="http' not in page.text


async def test_the_first_page_links_to_temporals_own_when_it_is_known(
    database_url: str, tmp_path: Path, no_packages: None
) -> None:
    ui = "http://127.0.0.1:8233"
    async with serving(database_url, tmp_path / "a", temporal_ui_url=ui) as api:
        assert f'href="{ui}"' in (await api.http.get("/")).text
    async with serving(database_url, tmp_path / "b", temporal_ui_url=ui, admin_secret="hush") as api:
        page = (await api.http.get("/", headers={"Host": "<b>.example"})).text
        assert ui not in page and "X-Admin-Secret" in page and "<b>.example" not in page and "hush" not in page
