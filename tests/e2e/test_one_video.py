"""One video through everything: what comes out, and what could be seen while it happened."""

import json
import subprocess
from typing import Any

import httpx
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from contracts.queues import Pool
from media.streams import verify_stream
from media.tools import Toolbox
from runtime.settings import Settings
from tests.e2e.service import ReadyVideo, Service
from tests.support.eventually import eventually
from workers.machine import this_machine
from workers.slots import slots
from workers.version import code_version


def ffprobe(tools: Toolbox, *arguments: str) -> Any:
    tool = tools.pick()
    done = subprocess.run(
        [tool.ffprobe, "-v", "error", "-of", "json", *arguments], capture_output=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


def test_ffprobe_lists_every_rung_of_the_master_playlist(tools: Toolbox, ready_video: ReadyVideo) -> None:
    found = ffprobe(tools, "-show_streams", "-allowed_extensions", "ALL", str(ready_video.master))
    sizes = {(s["width"], s["height"]) for s in found["streams"] if s["codec_type"] == "video"}
    assert sizes == {(1280, 720), (854, 480), (640, 360)}
    assert any(s["codec_name"] == "aac" for s in found["streams"])


def test_every_rung_has_the_sources_frames_on_one_grid(tools: Toolbox, ready_video: ReadyVideo) -> None:
    boundaries = set()
    for rung in ("720p", "480p", "360p"):
        folder = ready_video.master.parent / "r1" / rung
        joined = folder / "init.mp4"
        data = joined.read_bytes() + b"".join(path.read_bytes() for path in sorted(folder.glob("seg_*.m4s")))
        whole = ready_video.source.with_name(f"{rung}.mp4")
        whole.write_bytes(data)
        found = ffprobe(
            tools,
            "-count_frames",
            "-show_entries",
            "stream=nb_read_frames:packet=flags,pts",
            "-show_packets",
            str(whole),
        )
        assert int(found["streams"][0]["nb_read_frames"]) == ready_video.frames
        # Packets come in decoding order: number them by their time.
        ordered = sorted(found["packets"], key=lambda packet: packet["pts"])
        keyframes = tuple(n for n, packet in enumerate(ordered) if "K" in packet["flags"])
        assert keyframes == tuple(range(0, ready_video.frames, 60))
        boundaries.add(keyframes)
    assert len(boundaries) == 1


async def test_the_published_stream_verifies(tools: Toolbox, ready_video: ReadyVideo) -> None:
    report = await verify_stream(tools, ready_video.master)
    assert report.ok, report


async def test_the_documented_sql_shows_it_happen(ready_video: ReadyVideo) -> None:
    statuses = [status for status, _, _ in ready_video.seen]
    # Between two steps nobody holds the video: then it is pending again.
    assert statuses[-1] == "ready" and "processing" in statuses and set(statuses) <= {"pending", "processing", "ready"}
    percents = [percent for _, percent, _ in ready_video.seen]
    assert percents == sorted(percents) and percents[-1] == 100
    assert any(0 < percent < 100 for percent in percents)
    assert "transcode" in {step for _, _, step in ready_video.seen}


async def test_afterwards_the_mirror_is_complete(service: Service, ready_video: ReadyVideo) -> None:
    video_id = ready_video.answer["video_id"]
    [job] = await service.query("SELECT * FROM transcoding_jobs WHERE video_id = $1", video_id)
    assert job["completed_at"] and job["started_at"] and job["processed_by_worker_name"]
    assert job["progress_percent"] == 100 and job["last_error"] is None
    rows = await service.query(
        "SELECT quality, width, height, codec FROM video_qualities WHERE video_id = $1", video_id
    )
    assert {(row["quality"], row["width"], row["height"], row["codec"]) for row in rows} == {
        ("720p", 1280, 720, "h264"),
        ("480p", 854, 480, "h264"),
        ("360p", 640, 360, "h264"),
    }
    progress = await service.query("SELECT * FROM quality_progress WHERE job_id = $1", job["id"])
    done = {row["quality"]: (row["status"], row["segments_completed"], row["segments_total"]) for row in progress}
    assert done["720p"] == done["360p"] == ("completed", 4, 4)
    assert done["1080p"][0] == "skipped"
    [state] = await service.query("SELECT state FROM job_states WHERE job_id = $1", job["id"])
    assert state["state"] == "completed"


async def test_events_and_steps_tell_the_story(service: Service, ready_video: ReadyVideo) -> None:
    job_id = ready_video.answer["job_id"]
    events = await service.get(f"/api/jobs/{job_id}/events")
    names = [event["event"] for event in events]
    assert names[0] == "job.created"
    # The recorder tells of a step's end when it comes to it: those of the last steps may stand after the job's own.
    told_later = names[names.index("job.succeeded") + 1 :]
    assert all(name.startswith("storyboard") or name.endswith(".done") for name in told_later)
    assert {"job.started", "probe.done", "quality.started", "quality.completed"} <= set(names)
    steps = await service.get(f"/api/jobs/{job_id}/steps")
    assert {"probe", "plan", "thumbnail", "audio", "transcode", "verify", "publish"} <= {s["step"] for s in steps}
    assert all(step["outcome"] == "completed" and step["attempt"] == 1 for step in steps)


async def test_a_storyboard_follows_when_the_video_is_ready(service: Service, ready_video: ReadyVideo) -> None:
    async def there() -> bool:
        async with httpx.AsyncClient() as http:
            answer = await http.get(f"{service.url}/videos/{ready_video.answer['slug']}/storyboard.vtt")
        return answer.status_code == 200 and answer.headers["content-type"].startswith("text/vtt")

    await eventually(there, within=20)
    folder = ready_video.master.parent
    assert "storyboard_000.jpg#xywh=" in (folder / "storyboard.vtt").read_text()
    assert (folder / "storyboard_000.jpg").read_bytes()[:2] == b"\xff\xd8"
    video = await service.get(f"/api/videos/{ready_video.answer['video_id']}")
    assert video["status"] == "ready" and video["playable_at"] is not None


async def test_playback_answers_ranges_etags_and_cors(service: Service, ready_video: ReadyVideo) -> None:
    base = f"{service.url}/videos/{ready_video.answer['slug']}"
    async with httpx.AsyncClient(follow_redirects=True) as http:
        master = await http.get(f"{base}/master.m3u8", headers={"Origin": "http://example.test"})
        assert master.headers["content-type"].startswith("application/vnd.apple.mpegurl")
        assert master.headers["access-control-allow-origin"] == "*"
        assert master.text.count("#EXT-X-STREAM-INF") == 3
        again = await http.get(f"{base}/master.m3u8", headers={"If-None-Match": master.headers["etag"]})
        assert again.status_code == 304
        part = await http.get(f"{base}/r1/360p/seg_00000.m4s", headers={"Range": "bytes=4-7"})
        assert (part.status_code, part.content) == (206, b"styp") or part.content in (b"moof", b"sidx")
        picture = await http.get(f"{base}/thumbnail.jpg")
        assert picture.content[:2] == b"\xff\xd8" and picture.headers["content-type"] == "image/jpeg"
        outside = await http.get(f"{base}/%2e%2e/%2e%2e/uploads/{ready_video.answer['video_id']}.mp4")
        assert outside.status_code == 404


async def test_a_worker_tells_what_it_may_spend_and_which_code_it_runs(service: Service) -> None:
    [row] = await service.query("SELECT worker_name, version, capabilities FROM workers WHERE status <> 'offline'")
    told, machine = json.loads(row["capabilities"]), this_machine()
    assert told["pools"] == ["orchestrate", "io", "cpu", "probe"] and set(told["slots"]) == set(told["pools"])
    assert told["slots"]["cpu"] == slots(Pool.CPU, Settings(home=service.home, cpu_slots=None), machine)
    assert (told["cores"], told["memory_bytes"]) == (machine.cores, machine.memory_bytes)
    assert _commit(row["version"]) == _commit(code_version())
    client = await Client.connect(str(service.run["temporal_address"]))

    async def is_seen_by_temporal() -> bool:
        """It asks for steps under its name, and says its version."""
        request = DescribeTaskQueueRequest(
            namespace="default",
            task_queue=TaskQueue(name=Pool.CPU.queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        pollers = (await client.workflow_service.describe_task_queue(request)).pollers
        return {(each.identity, each.deployment_options.build_id) for each in pollers} == {
            (row["worker_name"], row["version"])
        }

    await eventually(is_seen_by_temporal, within=15)


async def test_temporals_page_speaks_of_videos_and_of_what_is_done_to_them(
    service: Service, ready_video: ReadyVideo
) -> None:
    video_id, job_id = ready_video.answer["video_id"], ready_video.answer["job_id"]
    client = await Client.connect(str(service.run["temporal_address"]))
    handle = client.get_workflow_handle(f"video-{video_id}-job-{job_id}")
    told = await handle.describe()
    assert (told.workflow_type, told.task_queue) == ("TranscodeVideo", "vlog-orchestrate")
    assert await told.static_summary() == "A clip"
    found = {pair.key.name: pair.value for pair in told.typed_search_attributes}
    assert found == found | {"VideoId": str(video_id), "VideoStatus": "ready", "Tier": 2}
    steps: dict[str, tuple[str, str]] = {}
    workers = set()
    async for event in handle.fetch_history_events():
        asked = event.activity_task_scheduled_event_attributes
        if asked.activity_id:
            [summary] = await client.data_converter.decode([event.user_metadata.summary], [str])
            steps[asked.activity_id] = (asked.task_queue.name, summary)
        workers.add(event.activity_task_started_event_attributes.identity)
    [row] = await service.query("SELECT worker_name FROM workers WHERE status <> 'offline'")
    assert workers == {"", row["worker_name"]}
    encoded = [step for name, step in steps.items() if name.startswith("transcode:")]
    assert encoded and all(queue == "vlog-cpu" and said.startswith("segments ") for queue, said in encoded)
    assert steps == steps | {
        "probe": ("vlog-probe", "look at the source"),
        "plan": ("vlog-io", "choose qualities and frame grid"),
        "thumbnail": ("vlog-cpu", "thumbnail"),
        "verify": ("vlog-io", "check every rendition as a whole"),
        "master_playlist": ("vlog-io", "write a playlist per rendition"),
        "publish": ("vlog-orchestrate", "put master.m3u8 and manifest.mpd in place"),
        "finalize": ("vlog-orchestrate", "write that the video is ready"),
    }
    for queue in ("vlog-orchestrate", "vlog-io", "vlog-probe", "vlog-cpu"):
        request = DescribeTaskQueueRequest(
            namespace="default",
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        pollers = (await client.workflow_service.describe_task_queue(request)).pollers
        assert {each.identity for each in pollers} == {row["worker_name"]}


def _commit(version: str) -> str:
    return version.removesuffix(".dirty")  # somebody may be at work here while the tests run
