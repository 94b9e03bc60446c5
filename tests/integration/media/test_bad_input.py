"""What nobody should send: each is refused with its own code and a sentence, in little time and little memory."""

import math
import os
import resource
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import SENTENCE_LIMIT, SourceError
from media.limits import Limits
from media.planning import PlanOptions
from media.probe import probe
from media.tools import Toolbox
from tests.support import crafted
from tests.support.clips import X264, Clips
from tests.support.encoding import checked, prepare, transcode

MOST_MEMORY_BYTES = 400 << 20  # of the hungriest child; a good clip takes a tenth of it


async def refused(tools: Toolbox, path: Path, limits: Limits | None = None) -> SourceError:
    with pytest.raises(SourceError) as error:
        await probe(tools, path, limits)
    assert 15 < len(error.value.sentence) <= SENTENCE_LIMIT
    assert str(path.parent) not in error.value.sentence + error.value.detail
    return error.value


def _archive(_: Clips, to: Path) -> None:
    with zipfile.ZipFile(to, "w") as archive:
        archive.writestr("holiday.mp4", b"x" * 1000)


def _tar(_: Clips, to: Path) -> None:
    import tarfile

    (to.parent / "inside").write_bytes(bytes(2000))
    with tarfile.open(to, "w") as archive:
        archive.add(to.parent / "inside", "holiday.mp4")


def _picture(*options: str) -> Callable[[Clips, Path], None]:
    def make(clips: Clips, to: Path) -> None:
        clips.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x64", "-frames:v", "1", *options, to)

    return make


def _encrypted(clips: Clips, to: Path) -> None:
    key = ["-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "76a6c65c5ea762046bd749a2e632ccbb"]
    key += ["-encryption_kid", "a7e61c373e219033c21091fa607bf3b8", "-f", "mp4"]
    clips.ffmpeg("-i", clips.get("noaudio.mp4"), "-c", "copy", *key, to)


def _dolby(profile: int, base: int) -> Callable[[Clips, Path], None]:
    def make(clips: Clips, to: Path) -> None:
        to.write_bytes(crafted.with_dolby_vision(clips.get("hdr10.mp4"), profile, base))

    return make


def _bytes(data: bytes) -> Callable[[Clips, Path], None]:
    def make(_: Clips, to: Path) -> None:
        to.write_bytes(data)

    return make


def _noisy(clips: Clips, to: Path) -> None:
    to.write_bytes(crafted.patched(clips.get("faststart.mp4"), crafted.media_of_noise))


def _fast(clips: Clips, to: Path) -> None:
    pictures = ["-f", "lavfi", "-i", "color=s=16x16:r=100000", "-frames:v", "3000", "-f", "mp4"]
    clips.ffmpeg(*pictures, "-video_track_timescale", "100000", *X264, to)


def _vobsub(_: Clips, to: Path) -> None:
    # ffmpeg's reader of such an index opens the .sub file beside it.
    to.write_bytes(b"# VobSub index file, v7 (do not modify this line!)\nsize: 720x576\nid: en, index: 0\n")


CASES: dict[str, tuple[Callable[[Clips, Path], None], str, str]] = {
    "archive.mp4": (_archive, "SOURCE_UNSUPPORTED", "an archive"),
    "tar.mkv": (_tar, "SOURCE_UNSUPPORTED", "an archive"),
    "document.mp4": (_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 9), "SOURCE_UNSUPPORTED", "a document"),
    "photo.mp4": (_picture("-c:v", "mjpeg", "-f", "image2"), "SOURCE_UNSUPPORTED", "a still picture"),
    "bitmap.mov": (_picture("-c:v", "bmp", "-f", "image2"), "SOURCE_UNSUPPORTED", "a still picture"),
    "drawing.svg": (
        _bytes(b'<svg xmlns="x"><image href="file:///etc/passwd"/></svg>'),
        "SOURCE_FORBIDDEN",
        "names other files",
    ),
    "subtitles.idx": (_vobsub, "SOURCE_UNREADABLE", "text"),
    "subtitles.mp4": (_bytes(b"1\n00:00:01,000 --> 00:00:02,000\nHello\n"), "SOURCE_UNREADABLE", "text"),
    "encrypted.mp4": (_encrypted, "SOURCE_ENCRYPTED", "encrypted"),
    "dolby5.mp4": (_dolby(5, 0), "SOURCE_UNSUPPORTED", "Dolby Vision of profile 5"),
    "ycgco.mkv": (
        _picture("-pix_fmt", "yuv444p", "-c:v", "libx264", "-x264-params", "colormatrix=YCgCo"),
        "SOURCE_UNSUPPORTED",
        "ycgco",
    ),
    "noise.mp4": (_noisy, "SOURCE_UNREADABLE", "None of the file's pictures"),
    "bomb.mp4": (_bytes(crafted.movie(samples=80_000_000)), "SOURCE_TOO_COMPLEX", "80000000 pictures"),
    "huge.mp4": (_bytes(crafted.movie(width=16000, height=16000)), "SOURCE_TOO_LARGE", "256.0 million pixels"),
    "absurd.mp4": (_bytes(crafted.movie(width=65000, height=65000)), "SOURCE_UNSUPPORTED", "not known"),
    "wide.mp4": (_bytes(crafted.movie(width=60000, height=2)), "SOURCE_TOO_LARGE", "no side"),
    "widened.mkv": (_picture("-vf", "scale=1800:64,setsar=10", "-c:v", "ffv1"), "SOURCE_TOO_LARGE", "18000x64"),
    "tracks.mp4": (_bytes(crafted.movie(tracks=900)), "SOURCE_TOO_MANY_STREAMS", "900 streams"),
    "many_tracks.mp4": (_bytes(crafted.movie(tracks=4000)), "SOURCE_TOO_", ""),
    "nested.mp4": (_bytes(crafted.nested(3000)), "SOURCE_UNSUPPORTED", "no video"),
    "maze.mp4": (_bytes(crafted.crowded(50_000)), "SOURCE_TOO_COMPLEX", "maze"),
    "fast.mp4": (_fast, "SOURCE_TOO_FAST", "pictures a second"),
}


@pytest.mark.parametrize("name", CASES)
async def test_what_is_no_video_or_too_much_of_one_is_refused_in_words(
    tools: Toolbox, clips: Clips, tmp_path: Path, name: str
) -> None:
    make, code, words = CASES[name]
    path = tmp_path / name
    make(clips, path)
    before = path.read_bytes()
    error = await refused(tools, path)
    assert error.code.startswith(code) and words in error.sentence
    assert path.read_bytes() == before


def test_refusals_are_cheap(tmp_path: Path) -> None:
    """The kernel's own count of what the hungriest child took, in a process that starts no other."""
    bombs = {"samples.mp4": crafted.movie(samples=80_000_000), "tracks.mp4": crafted.movie(tracks=4000)}
    bombs |= {"tables.mp4": crafted.movie(samples=80_000_000) + bytes(100_000_000)}
    for name, data in bombs.items():
        path = tmp_path / name
        path.write_bytes(data)
        script = (
            "import asyncio,resource,sys;from pathlib import Path;from contracts.errors import SourceError;"
            "from media.probe import probe;from media.tools import find_tools\n"
            "async def main():\n"
            "    tools = await find_tools()\n"
            "    try:\n        await probe(tools, Path(sys.argv[1]))\n"
            "    except SourceError as error:\n        print(error.code)\n"
            "asyncio.run(main())\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)\n"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
        probing = [sys.executable, "-c", script, str(path)]
        done = subprocess.run(probing, capture_output=True, text=True, env=environment, timeout=120)
        *_, code, most = done.stdout.split()
        assert code.startswith("SOURCE_"), done
        assert int(most) < MOST_MEMORY_BYTES, name


async def test_dolby_vision_with_a_base_layer_is_taken_for_its_base(
    tools: Toolbox, clips: Clips, tmp_path: Path
) -> None:
    path = tmp_path / "dolby8.mp4"
    path.write_bytes(crafted.with_dolby_vision(clips.get("hdr10.mp4"), 8, 1))
    assert (await probe(tools, path)).video.color_transfer == "smpte2084"


LIMITED: dict[str, tuple[Limits, str]] = {
    "pixels": (Limits(pixels=640 * 360 - 1), "SOURCE_TOO_LARGE"),
    "rate": (Limits(frame_rate=29), "SOURCE_TOO_FAST"),
    "streams": (Limits(streams=1), "SOURCE_TOO_MANY_STREAMS"),
    "length": (Limits(duration_s=2), "SOURCE_TOO_LONG"),
    "time": (Limits(probe_s=0.001), "SOURCE_TOO_COMPLEX"),
}


@pytest.mark.parametrize("what", LIMITED)
async def test_every_limit_has_its_own_code(tools: Toolbox, clips: Clips, what: str) -> None:
    limits, code = LIMITED[what]
    assert (await refused(tools, clips.get("land.mp4"), limits)).code == code
    assert (await probe(tools, clips.get("land.mp4"))).video.packets == 90


async def test_pictures_that_need_too_much_memory_are_refused_though_ffmpeg_would_ask_for_ever(
    tools: Toolbox, clips: Clips, tmp_path: Path
) -> None:
    large = tmp_path / "large.mp4"
    clips.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=3840x2160:r=25", "-frames:v", "2", *X264, large)
    error = await refused(tools, large, Limits(encoder_memory_bytes=32 << 20))
    assert error.code == "SOURCE_TOO_COMPLEX" and "memory" in error.sentence


@pytest.mark.parametrize("name", ["truncated.mp4", "truncated.mkv", "zero_tail.mp4"])
async def test_what_is_there_of_a_cut_file_is_taken_and_the_loss_is_told(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, name: str
) -> None:
    work = await prepare(tools, clips.get(name), options)
    assert 1.5 <= work.facts.video.end_s < 2.6
    assert any("of 3.0 seconds are there" in warning for warning in work.facts.warnings)
    await transcode(work, tmp_path)
    segments = checked(work, tmp_path / work.plan.renditions[-1].quality)
    assert sum(segment.samples for segment in segments) == work.plan.grid.frames
    strict = await refused(tools, clips.get(name), Limits(least_share=1))
    assert strict.code == "SOURCE_UNREADABLE" and "cut short" in strict.sentence


@pytest.mark.parametrize("declared", [math.nan, math.inf, -5000.0, 1e300])
async def test_an_impossible_length_in_the_header_is_not_believed(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, declared: float
) -> None:
    made = clips.get("noaudio.mkv").read_bytes()
    at = made.index(b"\x44\x89\x88") + 3  # Matroska's Duration: a float of eight bytes
    path = tmp_path / "impossible.mkv"
    path.write_bytes(made[:at] + struct.pack(">d", declared) + made[at + 8 :])
    work = await prepare(tools, path, options)
    assert work.facts.video.end_s == pytest.approx(3.0, abs=0.1)
    assert work.plan.grid.frames == 90


@pytest.mark.parametrize("filling", ["zeros", "noise"])
@pytest.mark.parametrize("name", ["faststart.mp4", "clusters.mkv"])
async def test_damage_in_the_middle_costs_pictures_not_the_video(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, name: str, filling: str
) -> None:
    path = tmp_path / name
    path.write_bytes(crafted.patched(clips.get(name), crafted.middle(filling)))
    work = await prepare(tools, path, options)
    assert work.facts.video.end_s == pytest.approx(3.0, abs=0.1)
    await transcode(work, tmp_path / "out")
    segments = checked(work, tmp_path / "out" / work.plan.renditions[-1].quality)
    assert sum(segment.samples for segment in segments) == work.plan.grid.frames


def test_children_of_this_process_stayed_small() -> None:
    """What the probes and encodes above took, all in this process: bombs among them."""
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < 2 << 30
