"""Text tracks of real files as WebVTT: their words at the picture's times, and never a reason to lose a video."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.subtitles import SubtitleSteps
from activities.verifying import VerifySteps
from contracts.end_steps import VerifyRenditions
from contracts.errors import ObjectMissing
from contracts.ids import ObjectKey
from contracts.plan import Rung
from contracts.subtitle_steps import MadeSubtitles
from media import commands
from media.planning import PlanOptions
from media.streams import verify_stream
from media.tools import Toolbox
from storage.local import LocalStore
from tests.integration.media.sounding import H264, VP8
from tests.support.clips import Clips
from tests.support.encoding import IDS, Work, prepare, publish

LADDER = (Rung(name="144p", short_side=144, video_kbps=300, audio_kbps=64),)
OPTIONS = PlanOptions(ladder=LADDER, segment_seconds=1, preset="ultrafast")

SRT = """1
00:00:00,500 --> 00:00:01,250
Hello <i>you</i> & me

2
00:00:02,000 --> 00:00:03,000
two
lines

"""
CUES = [
    ("00:00:00.500 --> 00:00:01.250", "Hello <i>you</i> &amp; me"),
    ("00:00:02.000 --> 00:00:03.000", "two\nlines"),
]


def captioned(clips: Clips, name: str, codecs: list[str], *words: str, text: str = SRT) -> Path:
    """Make a clip of four seconds with text tracks, one per codec, all saying the same."""
    path = clips.folder / name
    if not path.exists():
        written = clips.folder / f"{name}.srt"
        written.write_text(text)
        picture, sound = (VP8, "libopus") if name.endswith("webm") else (H264, "aac")
        inputs: list[str | Path] = [
            "-f",
            "lavfi",
            "-i",
            "testsrc2=s=320x180:r=30:d=4",
            "-f",
            "lavfi",
            "-i",
            "sine=d=4",
            "-i",
            written,
        ]
        maps = ["-map", "0", "-map", "1"]
        for place, codec in enumerate(codecs):
            maps += ["-map", "2", f"-c:s:{place}", codec]
        clips.ffmpeg(*inputs, *maps, *picture, "-c:a", sound, *words, path)
    return path


def read_cues(vtt: Path) -> list[tuple[str, str]]:
    head, *blocks = vtt.read_text().strip().split("\n\n")
    assert head.startswith("WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000")
    return [(block.split("\n", 1)[0], block.split("\n", 1)[1]) for block in blocks]


async def made(tools: Toolbox, work: Work, folder: Path) -> MadeSubtitles:
    store = LocalStore(folder)
    await store.put_file(work.subtitles().source_key, work.source)
    done = await ActivityEnvironment().run(SubtitleSteps(store, tools).make_subtitles, work.subtitles())
    assert isinstance(done, MadeSubtitles)
    return done


SOURCES = {
    "subrip, ass and webvtt in mkv": ("text.mkv", ["srt", "ass", "webvtt"]),
    "mov_text in mp4": ("worded.mp4", ["mov_text"]),
    "mov_text in mov": ("text.mov", ["mov_text"]),
    "webvtt in webm": ("text.webm", ["webvtt"]),
}


@pytest.mark.parametrize("what", SOURCES)
async def test_every_kind_of_text_becomes_webvtt(tools: Toolbox, clips: Clips, tmp_path: Path, what: str) -> None:
    name, codecs = SOURCES[what]
    work = await prepare(tools, captioned(clips, name, codecs), OPTIONS)
    done = await made(tools, work, tmp_path)
    assert [track.cues for track in done.tracks] == [2] * len(codecs) and done.notes == ()
    plain = [(times, words.replace("<i>", "").replace("</i>", "")) for times, words in CUES]
    for track in done.tracks:
        # Of mov_text the words alone are read: its styles are tables behind them.
        assert read_cues(tmp_path / track.key) == (plain if "mov_text" in codecs else CUES)
        playlist = (tmp_path / track.prefix / "playlist.m3u8").read_text()
        assert "#EXTINF:4.000000,\nsubtitles.vtt\n#EXT-X-ENDLIST" in playlist


STARTS = {
    "mkv that starts at 13.7 s": ("start.mkv", ["srt"], "-output_ts_offset", "13.7"),
    "mp4 that starts at 2.5 s": ("start.mp4", ["mov_text"], "-output_ts_offset", "2.5"),
}


@pytest.mark.parametrize("what", STARTS)
async def test_times_are_the_pictures(tools: Toolbox, clips: Clips, tmp_path: Path, what: str) -> None:
    name, codecs, *words = STARTS[what]
    work = await prepare(tools, captioned(clips, name, codecs, *words), OPTIONS)
    assert float(work.facts.video.start_s) > 2
    done = await made(tools, work, tmp_path)
    times = [time for time, _ in read_cues(tmp_path / done.tracks[0].key)]
    assert times == [time for time, _ in CUES]


async def test_a_picture_that_begins_late_is_what_cues_are_counted_from(
    tools: Toolbox, clips: Clips, tmp_path: Path
) -> None:
    """The whole file begins at 0, its picture at 0.5 s: so does what people see."""
    text = captioned(clips, "text.mkv", ["srt", "ass", "webvtt"])
    late = tmp_path / "late.mkv"
    clips.ffmpeg(
        "-itsoffset", "0.5", "-i", text, "-i", text, "-map", "0:v", "-map", "1:a", "-map", "1:s:0", "-c", "copy", late
    )
    work = await prepare(tools, late, OPTIONS)
    done = await made(tools, work, tmp_path / "store")
    start_s = float(work.facts.video.start_s)
    assert start_s == pytest.approx(0.5, abs=0.03)
    first, _ = read_cues(tmp_path / "store" / done.tracks[0].key)[0]
    assert first == f"00:00:{0.5 - start_s if start_s < 0.5 else 0:06.3f} --> 00:00:{1.25 - start_s:06.3f}"


async def test_they_are_in_both_manifests_with_their_flags(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    words = ["-metadata:s:s:0", "language=eng", "-metadata:s:s:1", "language=ger", "-metadata:s:s:2", "language=ger"]
    words += [
        "-metadata:s:s:2",
        'title=Für "Gehörlose" <1>',
        "-disposition:s:1",
        "forced",
        "-disposition:s:0",
        "default",
    ]
    work = await prepare(tools, captioned(clips, "flags.mkv", ["srt", "ass", "srt"], *words), OPTIONS)
    master = await publish(work, tmp_path)
    report = await verify_stream(tools, master)
    names = [("English", "en"), ("Deutsch (forced)", "de"), ("Für 'Gehörlose' <1>", "de")]
    assert [(text.name, text.language) for text in report.subtitles] == names
    assert [text.cues for text in report.subtitles] == [2, 2, 2]
    text = master.read_text()
    line = '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subs",NAME='
    assert f'{line}"English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO' in text
    assert f'{line}"Deutsch (forced)",LANGUAGE="de",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES' in text
    assert text.count(',SUBTITLES="subs"') == len(report.rungs)
    mpd = (master.parent / "manifest.mpd").read_text()
    assert mpd.count('mimeType="text/vtt"') == 3 and mpd.count('value="forced-subtitle"') == 1
    assert "<BaseURL>r1/subtitles_0/subtitles.vtt</BaseURL>" in mpd
    assert "<Label>Für 'Gehörlose' &lt;1&gt;</Label>" in mpd


async def test_hostile_text_is_only_text(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    lines = ["<script>alert(1)</script> --> <img src=x onerror=y>", "{\\1img(file:///etc/passwd)}#include <a>"]
    lines += ["long " * 5000]
    hostile = "".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{line}\n\n" for n, line in enumerate(lines))
    for codec in ("srt", "ass"):
        work = await prepare(tools, captioned(clips, f"hostile_{codec}.mkv", [codec], text=hostile), OPTIONS)
        done = await made(tools, work, tmp_path / codec)
        found = read_cues(tmp_path / codec / done.tracks[0].key)
        assert len(found) == 3
        words = "\n".join(text for _, text in found)
        assert "<" not in words and ">" not in words and "passwd" not in words
        assert max(len(text) for _, text in found) <= 1000


async def test_pictures_of_text_are_told_of_and_empty_tracks_left_out(
    tools: Toolbox, clips: Clips, tmp_path: Path
) -> None:
    text = captioned(clips, "text.mkv", ["srt", "ass", "webvtt"])
    blank = captioned(clips, "blank.mkv", ["srt"], text="1\n00:00:01,000 --> 00:00:02,000\n{\\an8}\n\n")
    mixed = tmp_path / "mixed.mkv"
    bitmap = clips.folder / "bitmap.mkv"
    # An empty sup track: a header is all that the probe looks at.
    maps = ["-map", "0:v", "-map", "0:a", "-map", "1:s:0", "-map", "0:s:0"]
    clips.ffmpeg("-i", text, "-i", blank, *maps, "-c", "copy", mixed)
    clips.ffmpeg("-i", mixed, "-map", "0:v", "-map", "0:a", "-map", "0:s", "-c", "copy", bitmap)
    renamed = tmp_path / "renamed.mkv"
    data = bitmap.read_bytes()
    # S_TEXT/UTF8 of the third track becomes S_HDMV/PGS (the same length): a track of pictures.
    at = data.rindex(b"S_TEXT/UTF8", 0, data.index(b"\x1f\x43\xb6\x75"))
    renamed.write_bytes(data[:at] + b"S_HDMV/PGS\0" + data[at + 11 :])
    work = await prepare(tools, renamed, OPTIONS)
    assert any("hdmv_pgs_subtitle" in warning for warning in work.facts.warnings)
    assert len(work.plan.subtitles) == 1
    done = await made(tools, work, tmp_path / "store")
    assert done.tracks == ()
    assert done.notes == ("The subtitles “Subtitles 1” hold no text that could be shown, and are left out.",)
    assert not (tmp_path / "store" / "videos/clip/r1/subtitles_0").exists()


async def test_subtitles_that_are_gone_are_not_listed(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    work = await prepare(tools, captioned(clips, "worded.mp4", ["mov_text"]), OPTIONS)
    master = await publish(work, tmp_path)
    store = LocalStore(tmp_path)
    done = await made(tools, work, tmp_path)
    ids = {name: IDS[name] for name in ("job_id", "video_id")}
    request = VerifyRenditions(**ids, slug="clip", output="r1", plan=work.plan, subtitles=done.tracks)
    found = await ActivityEnvironment().run(VerifySteps(store).verify, request)
    assert found.subtitles == done.tracks
    shutil.rmtree(master.parent / "r1" / "subtitles_0")
    found = await ActivityEnvironment().run(VerifySteps(store).verify, request)
    assert found.subtitles == () and len(found.video) == 1


async def test_a_source_that_is_gone_fails_the_step_with_a_code(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    work = await prepare(tools, captioned(clips, "worded.mp4", ["mov_text"]), OPTIONS)
    request = work.subtitles().model_copy(update={"source_key": ObjectKey("uploads/9")})
    with pytest.raises(ObjectMissing):
        await ActivityEnvironment().run(SubtitleSteps(LocalStore(tmp_path), tools).make_subtitles, request)


async def test_nothing_but_the_source_is_opened(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    """Watch ffmpeg's own hands, where strace is there to do it."""
    strace = shutil.which("strace")
    if strace is None:
        if os.environ.get("CI"):
            pytest.fail("strace is missing")
        pytest.skip("strace is missing")
    text = "1\n00:00:00,000 --> 00:00:01,000\n{\\1img(file:///etc/hostname)}file:///etc/hostname\n\n"
    source = captioned(clips, "including.mkv", ["ass"], text=text)
    work = await prepare(tools, source, OPTIONS)
    argv = commands.subtitles(work.tool, source, tmp_path, work.plan.subtitles)
    log = tmp_path / "log"
    subprocess.run([strace, "-f", "-e", "trace=open,openat", "-o", str(log), *argv], check=True, timeout=60)
    opened = [line.split('"')[1] for line in log.read_text().splitlines() if '"' in line and " = -1 " not in line]
    # What a build's own libraries read at their start (/etc/ld.so.cache, a list of ciphers) is not the file's doing.
    assert "/etc/hostname" not in opened
    ours = {path for path in opened if not path.startswith(("/etc/", "/usr/", "/lib", "/proc/", "/sys/", "/dev/"))}
    assert ours == {str(source), str(tmp_path / "0.words"), str(tmp_path / "0.times")}
