"""A broadcast recording through the whole service: copied first, made whole, told of, and nothing left behind."""

import subprocess
from pathlib import Path

from media.tools import Toolbox
from tests.e2e.service import Service
from tests.support.eventually import eventually


async def test_a_transport_stream_becomes_ready_and_its_copy_goes(
    service: Service, tools: Toolbox, tmp_path: Path
) -> None:
    path = tmp_path / "recording.ts"
    pictures = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=30000/1001:d=3", "-f", "lavfi", "-i", "sine=d=3:r=48000"]
    codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-pix_fmt", "yuv420p", "-c:a", "aac"]
    offset = ["-output_ts_offset", "12.345"]
    make = [str(tools.pick().ffmpeg), "-v", "error", *pictures, *codecs, *offset, str(path)]
    subprocess.run(make, check=True, timeout=60)

    created = await service.upload(path, title="A recording")
    video = await service.ended(created["video_id"], within=180)
    assert video["status"] == "ready", video
    report = video["report"]
    assert (report["container"], report["remuxed_to"], report["video"]["frames"]) == ("mpegts", "matroska", 90)
    assert report["decided"]["frame_rate"] == "30000/1001" and report["decided"]["frames"] == 90
    assert report["decided"]["renditions"][0]["ffmpeg"]
    steps = await service.query("SELECT step FROM job_steps WHERE job_id = $1", created["job_id"])
    assert "remux" in {row["step"] for row in steps}

    shown = service.vlog("show", str(created["video_id"]))
    assert "mpegts, copied to matroska first" in shown.stdout and "29.97 fps" in shown.stdout

    # The storyboard reads the copy too; afterwards it goes, and the upload stays.
    async def copy_is_gone() -> bool:
        return list((service.storage / "remuxed").iterdir()) == []

    await eventually(copy_is_gone, within=60)
    kept = service.storage / "uploads" / f"{created['video_id']}.ts"
    assert kept.read_bytes() == path.read_bytes()
