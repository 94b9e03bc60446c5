"""Probing real files of every kind: what is found, and what is refused."""

import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from contracts.errors import SourceEmpty, SourceError, SourceForbidden, SourceUnreadable, SourceUnsupported
from contracts.media import FrameRate
from media.probe import probe
from media.tools import Toolbox
from tests.support.clips import Clips, packets


@pytest.mark.parametrize(
    ("name", "rate", "count"),
    [
        ("film24.mp4", "24/1", 72),
        ("pal25.mp4", "25/1", 75),
        ("ntsc.mp4", "30000/1001", None),
        ("ntsc60.mp4", "60000/1001", None),
        ("ntsc.mkv", "30000/1001", None),
        ("ntsc_start.mkv", "30000/1001", None),
        ("ntsc.ts", "30000/1001", None),
        ("vp9.webm", "30/1", 60),
        ("anim.gif", "15/1", 30),
        ("oneframe.mp4", "30/1", 1),
    ],
)
async def test_a_constant_rate_is_found_exactly(
    tools: Toolbox, clips: Clips, name: str, rate: str, count: int | None
) -> None:
    video = (await probe(tools, clips.get(name))).video
    assert str(video.frame_rate) == rate
    assert not video.variable_rate
    assert video.packets == (count or packets(tools, clips.get(name)))
    assert video.end_s == pytest.approx(video.packets / float(video.frame_rate.fraction), abs=0.002)


async def test_a_variable_rate_is_seen_as_one(tools: Toolbox, clips: Clips) -> None:
    video = (await probe(tools, clips.get("vfr.mp4"))).video
    assert video.variable_rate
    assert video.frame_rate == FrameRate(num=60)
    assert video.packets == packets(tools, clips.get("vfr.mp4"))


async def test_pictures_that_an_edit_list_cuts_away_are_not_counted(tools: Toolbox, clips: Clips) -> None:
    whole = (await probe(tools, clips.get("ntsc.mp4"))).video
    cut = (await probe(tools, clips.get("ntsc_edited.mp4"))).video
    assert whole.packets - 22 <= cut.packets <= whole.packets - 20
    assert packets(tools, clips.get("ntsc_edited.mp4")) > cut.packets


async def test_times_start_where_the_stream_starts(tools: Toolbox, clips: Clips) -> None:
    assert (await probe(tools, clips.get("ntsc_start.mkv"))).video.start_s == "13.724000"
    assert (await probe(tools, clips.get("ntsc.mp4"))).video.start_s == "0"


async def test_a_transport_stream_is_known_to_seek_badly(tools: Toolbox, clips: Clips) -> None:
    assert not (await probe(tools, clips.get("ntsc.ts"))).video.seekable
    assert (await probe(tools, clips.get("ntsc.mkv"))).video.seekable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("portrait.mp4", (360, 640)),
        ("rot90.mp4", (360, 640)),
        ("odd444.mp4", (641, 361)),
        ("anamorphic.mp4", (1047, 576)),
    ],
)
async def test_the_size_is_what_a_viewer_sees(tools: Toolbox, clips: Clips, name: str, shown: tuple[int, int]) -> None:
    video = (await probe(tools, clips.get(name))).video
    assert (video.display_width, video.display_height) == shown


async def test_depth_fields_and_colours_are_read(tools: Toolbox, clips: Clips) -> None:
    assert (await probe(tools, clips.get("ten_bit.mp4"))).video.bit_depth == 10
    assert (await probe(tools, clips.get("interlaced.mp4"))).video.field_order == "tt"
    hdr = (await probe(tools, clips.get("hdr10.mp4"))).video
    assert (hdr.codec, hdr.bit_depth, hdr.color_transfer) == ("hevc", 10, "smpte2084")


async def test_every_audio_track_is_found_with_its_language(tools: Toolbox, clips: Clips) -> None:
    tracks = (await probe(tools, clips.get("multiaudio.mp4"))).audio
    assert [(track.language, track.sample_rate, track.default) for track in tracks] == [
        ("eng", 48000, False),
        ("deu", 44100, True),
    ]


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("empty.mp4", SourceEmpty, "empty"),
        ("text.mp4", SourceUnreadable, "text"),
        ("random.mp4", SourceUnreadable, "no"),
        ("nomoov.mp4", SourceUnreadable, "cut short"),
        ("short_cut.mp4", SourceUnreadable, "only 0.. of 3.0 seconds are there"),
        ("short_cut.mkv", SourceUnreadable, "only 0.. of 3.0 seconds are there"),
        ("audioonly.m4a", SourceUnsupported, "sound only"),
        ("cover.mp3", SourceUnsupported, "sound only"),
        ("referring.mp4", SourceForbidden, "other files"),
    ],
)
async def test_what_cannot_be_used_is_refused_in_words(
    tools: Toolbox, clips: Clips, name: str, error: type[SourceError], words: str
) -> None:
    with pytest.raises(error, match=words) as refused:
        await probe(tools, clips.get(name))
    assert str(clips.folder) not in refused.value.sentence + refused.value.detail


PLAIN = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-fps_mode", "passthrough")


@pytest.mark.parametrize(
    "when", ["if(eq(N,9),864000,N/25)/TB", "if(eq(N,4),864000,N/25)/TB", "if(gte(N,5),3000+N/25,N/25)/TB"]
)
async def test_timestamps_that_jump_are_refused(tools: Toolbox, clips: Clips, tmp_path: Path, when: str) -> None:
    jumping = tmp_path / "jumping.mkv"
    pictures = ["-f", "lavfi", "-i", "testsrc2=s=160x90:r=25:d=0.4", "-vf", f"setpts='{when}'"]
    clips.ffmpeg(*pictures, *PLAIN, "-bf", "0", jumping)
    with pytest.raises(SourceUnreadable, match="its timestamps jump"):
        await probe(tools, jumping)


@pytest.mark.parametrize("extension", ["mkv", "mp4"])
async def test_a_slideshow_of_an_hour_is_a_video(tools: Toolbox, clips: Clips, tmp_path: Path, extension: str) -> None:
    show = tmp_path / f"show.{extension}"
    clips.ffmpeg("-f", "lavfi", "-i", "testsrc2=s=160x90:r=1/10:d=3600", *PLAIN, show)
    video = (await probe(tools, show)).video
    assert video.packets == 360
    assert video.end_s == pytest.approx(3600, abs=11)


async def test_two_pictures_and_twenty_minutes_of_sound_are_a_video(
    tools: Toolbox, clips: Clips, tmp_path: Path
) -> None:
    concert = tmp_path / "concert.mkv"
    still = ["-f", "lavfi", "-i", "testsrc2=s=160x90:r=1/1199:d=2398"]
    sound = ["-f", "lavfi", "-i", "anullsrc=r=8000:cl=mono", "-t", "1200", "-c:a", "pcm_u8"]
    clips.ffmpeg(*still, *sound, *PLAIN, concert)
    facts = await probe(tools, concert)
    assert facts.video.end_s >= 1199 and facts.audio[0].end_s == pytest.approx(1200, abs=1)


@pytest.mark.parametrize("codec", ["pcm_s16le", "aac"])
async def test_an_audio_track_without_packets_is_left_out_with_a_warning(
    tools: Toolbox, clips: Clips, tmp_path: Path, codec: str
) -> None:
    full, empty = tmp_path / "full.mkv", tmp_path / "empty.mkv"
    clips.ffmpeg("-i", clips.get("multiaudio.mp4"), "-map", "0", "-c:v", "copy", "-c:a", codec, full)
    clips.ffmpeg("-i", full, "-map", "0", "-c", "copy", "-bsf:a:0", "noise=drop=1", empty)
    facts = await probe(tools, empty)
    assert [(track.stream, track.language) for track in facts.audio] == [(2, "deu")]
    assert facts.audio[0].packets > 100
    assert facts.warnings == (f"Audio track 1 ({codec}) is empty and is left out.",)


def _scripts(bait: Path) -> dict[str, bytes]:
    return {
        "hls": f"#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n{bait.name}\n#EXT-X-ENDLIST\n".encode(),
        "hls behind a tag": b"ID3\x03\0\0\0\0\0\0" + f"#EXTM3U\n#EXTINF:3,\n{bait}\n#EXT-X-ENDLIST\n".encode(),
        "concat": f"ffconcat version 1.0\nfile {bait.name}\n".encode(),
        "sdp": b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
        "dash": f'<?xml version="1.0"?>\n<MPD><BaseURL>{bait}</BaseURL></MPD>\n'.encode(),
        "hls and binary": f"#EXTM3U\n#EXTINF:3,\n{bait.name}\n#EXT-X-ENDLIST\n".encode() + bytes(range(256)),
    }


@pytest.mark.parametrize("extension", ["mp4", "m3u8", "mkv"])
@pytest.mark.parametrize("kind", ["hls", "hls behind a tag", "concat", "sdp", "dash", "hls and binary"])
async def test_a_script_under_any_name_is_refused(
    tools: Toolbox, clips: Clips, tmp_path: Path, kind: str, extension: str
) -> None:
    bait = tmp_path / "bait.mp4"
    shutil.copy(clips.get("noaudio.mp4"), bait)
    script = tmp_path / f"upload.{extension}"
    script.write_bytes(_scripts(bait)[kind])
    with pytest.raises(SourceForbidden, match="not a video"):
        await probe(tools, script)


HOSTILE = ("hls", "hls behind a tag", "concat", "sdp", "dash")
# Probes the way we do, but without the look at the first bytes: ffmpeg's own guard alone.
_WITHOUT_SNIFFING = """
import asyncio, sys
from pathlib import Path
from contracts.errors import VlogError
from media import sniff
from media.probe import probe
from media.tools import find_tools
sniff.check_head = lambda path: None
async def main():
    tools = await find_tools()
    for path in sys.argv[1:]:
        try:
            await probe(tools, Path(path))
        except VlogError as error:
            print(error.code)
asyncio.run(main())
"""


def test_ffprobe_itself_opens_nothing_but_the_file(clips: Clips, tmp_path: Path) -> None:
    """The kernel tells every file that was opened: the bait is never one of them, though it is a good video."""
    strace = shutil.which("strace")
    if strace is None:
        if os.environ.get("CI"):
            pytest.fail("strace is missing")
        pytest.skip("strace is missing")
    bait = tmp_path / "bait.mp4"
    shutil.copy(clips.get("noaudio.mp4"), bait)
    texts = _scripts(bait)
    scripts = []
    for place, (kind, extension) in enumerate(product(HOSTILE, ("mp4", "m3u8"))):
        scripts.append(tmp_path / f"upload{place}.{extension}")
        scripts[-1].write_bytes(texts[kind])
    log = tmp_path / "opened"
    watching = [strace, "-f", "--seccomp-bpf", "-qq", "-e", "trace=open,openat,openat2,connect", "-o", str(log)]
    done = subprocess.run(
        [*watching, sys.executable, "-c", _WITHOUT_SNIFFING, *scripts],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    opened = log.read_text()
    if "Operation not permitted" in done.stderr and not opened:
        pytest.skip("strace may not trace here")
    codes = done.stdout.split()
    assert len(codes) == len(scripts) and {*codes} <= {"SOURCE_FORBIDDEN", "SOURCE_UNREADABLE"}, done
    assert all(script.name in opened for script in scripts), "the watch itself must work"
    assert bait.name not in opened
