"""Sound and picture together: a beep is heard when its flash is seen, at the start and at the end."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.plan import Rung
from media import commands
from media.planning import PlanOptions
from media.tools import Toolbox
from tests.integration.media.sounding import H264, MPEG4, VP8, beeping, copied, hear, hear_and_see
from tests.support.clips import Clips

LIMIT_MS = 40.0  # what people notice, and what we promise
LADDER = (Rung(name="144p", short_side=144, video_kbps=300, audio_kbps=96),)
OPTIONS = PlanOptions(ladder=LADDER, segment_seconds=1, preset="ultrafast")


def plain(clips: Clips) -> Path:
    return beeping(clips, "beep.mp4", H264, "aac")


Words = list[str | Path]  # of a command line


# Each with the offset it had when it was made: containers that know no encoder delay keep some of it.
CONTAINERS: dict[str, tuple[Callable[[Clips], Path], float]] = {
    "mp4 with aac": (plain, 1),
    "mov with pcm at 44.1 kHz": (lambda c: beeping(c, "beep.mov", H264, "pcm_s16le", 44_100), 1),
    "mkv with ac3": (lambda c: beeping(c, "ac3.mkv", H264, "ac3"), 1),
    "mkv with flac at 96 kHz": (lambda c: beeping(c, "flac.mkv", H264, "flac", 96_000), 1),
    "mkv with vorbis": (lambda c: beeping(c, "vorbis.mkv", H264, "libvorbis"), 1),
    "webm with opus": (lambda c: beeping(c, "opus.webm", VP8, "libopus"), 1),
    "mp4 with mp3 at 22.05 kHz": (lambda c: beeping(c, "mp3.mp4", H264, "libmp3lame", 22_050), 1),
    "avi with mp3": (lambda c: beeping(c, "mp3.avi", MPEG4, "libmp3lame"), 20),
    "avi with pcm at 22.05 kHz": (lambda c: beeping(c, "pcm.avi", MPEG4, "pcm_s16le", 22_050), 1),
    "ts with mp2": (lambda c: beeping(c, "mp2.ts", H264, "mp2"), 1),
    "flv with aac": (lambda c: beeping(c, "aac.flv", H264, "aac"), 2),
    "mkv that starts at 13.7 s": (
        lambda c: copied(c, "late_start.mkv", "-i", plain(c), "-output_ts_offset", "13.7"),
        2,
    ),
    "ts whose clock turns over": (
        lambda c: copied(c, "late_start.ts", "-i", plain(c), "-output_ts_offset", "95443.2"),
        1,
    ),
    "flv that starts at 3.1 s": (
        lambda c: copied(c, "late_start.flv", "-i", plain(c), "-output_ts_offset", "3.1"),
        2,
    ),
    "mp4 with an edit list": (lambda c: copied(c, "edited.mp4", "-ss", "0.7", "-i", plain(c)), 1),
    # Cut between two pictures: the file itself shows the first one half a picture early.
    "mov with an edit list between pictures": (lambda c: copied(c, "edited.mov", "-ss", "0.35", "-i", plain(c)), 20),
    # The start, 0.066667, is told in microseconds: rounded down, every picture came one tick early.
    "mp4 whose ticks are whole pictures": (
        lambda c: copied(c, "coarse.mp4", "-i", plain(c), "-video_track_timescale", "30", "-use_editlist", "0"),
        1,
    ),
    "fragmented mp4": (
        lambda c: copied(c, "fragmented.mp4", "-i", plain(c), "-movflags", "+frag_keyframe+empty_moov"),
        1,
    ),
}


@pytest.mark.parametrize("container", CONTAINERS)
async def test_a_beep_comes_with_its_flash(tools: Toolbox, clips: Clips, tmp_path: Path, container: str) -> None:
    make, within_ms = CONTAINERS[container]
    heard = await hear_and_see(tools, make(clips), tmp_path, OPTIONS)
    assert len(heard.flashes) >= 3
    assert len(heard.offsets_ms) == len(heard.flashes)
    assert within_ms < LIMIT_MS
    assert max(map(abs, heard.offsets_ms)) <= within_ms
    assert abs(heard.offsets_ms[-1] - heard.offsets_ms[0]) <= 1, "no drift over the clip"


@pytest.mark.parametrize("extension", ["mp4", "mkv", "ts"])
async def test_sound_that_starts_later_stays_later(
    tools: Toolbox, clips: Clips, tmp_path: Path, extension: str
) -> None:
    late: Words = ["-i", plain(clips), "-itsoffset", "0.8", "-i", plain(clips), "-map", "0:v", "-map", "1:a"]
    heard = await hear_and_see(tools, copied(clips, f"late_sound.{extension}", *late), tmp_path, OPTIONS)
    assert heard.offsets_ms == pytest.approx([800] * 4, abs=2)
    assert heard.sound.peak(0, 1.25) < 0.01, "silence until then"


@pytest.mark.parametrize("extension", ["mp4", "mkv", "ts"])
async def test_sound_that_starts_earlier_loses_what_nobody_sees(
    tools: Toolbox, clips: Clips, tmp_path: Path, extension: str
) -> None:
    early: Words = ["-itsoffset", "0.8", "-i", plain(clips), "-i", plain(clips), "-map", "0:v", "-map", "1:a"]
    heard = await hear_and_see(tools, copied(clips, f"early_sound.{extension}", *early), tmp_path, OPTIONS)
    # The first beep was over before the picture began; the second, at 1.5 s, is heard 0.8 s earlier.
    assert [flash - heard.flashes[0] for flash in heard.flashes] == pytest.approx([0, 1, 2, 3])
    assert heard.sound.beeps() == pytest.approx([0.7, 1.7, 2.7], abs=0.03)
    assert heard.sound.seconds == pytest.approx(4, abs=0.05), "silence to the picture's end"


@pytest.mark.parametrize("container", ["ts", "vob"])
async def test_sound_that_begins_after_ten_seconds_is_found(
    tools: Toolbox, clips: Clips, tmp_path: Path, container: str
) -> None:
    """Before it begins, nothing in these containers says what it is, or that it is there."""
    inputs: Words = ["-f", "lavfi", "-i", "color=black:s=64x36:r=25:d=13", "-i", plain(clips)]
    inputs += ["-filter_complex", "[1:a]atrim=end=2,asetpts=PTS+11/TB[a]", "-map", "0:v", "-map", "[a]"]
    clips.ffmpeg(
        *inputs, "-c:v", "mpeg2video", "-c:a", "mp2", "-f", container.replace("ts", "mpegts"), tmp_path / "late"
    )
    heard = await hear(tools, tmp_path / "late", tmp_path, OPTIONS)
    assert heard.sound.beeps() == pytest.approx([11.5, 12.5], abs=0.002)


CHANGES = {  # of a broadcast: from the film to the news and back
    "5.1 to stereo": (("ac3", "-ac", "6"), ("ac3", "-ac", "2")),
    "stereo to 5.1": (("ac3", "-ac", "2"), ("ac3", "-ac", "6")),
    "another rate, and mono": (("mp2",), ("mp2", "-ar", "44100", "-ac", "1")),
    "5.1 that began late to stereo": (("ac3", "-ac", "6", "-af", "atrim=start=0.3"), ("ac3", "-ac", "2")),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_sound_that_changes_half_way_goes_on_in_time(
    tools: Toolbox, clips: Clips, tmp_path: Path, change: str
) -> None:
    """ffmpeg lays its filters anew; those filled with silence from the start once more, and all came as much later."""
    parts = []
    for place, sound in enumerate(CHANGES[change]):
        part = tmp_path / f"{place}.ts"
        cut: Words = ["-ss", str(2 * place), "-t", "2", "-i", plain(clips), "-output_ts_offset", str(2 * place)]
        clips.ffmpeg(*cut, *H264, "-bf", "0", "-c:a", *sound, part)
        parts.append(part.read_bytes())
    (tmp_path / "changes.ts").write_bytes(b"".join(parts))
    heard = await hear_and_see(tools, tmp_path / "changes.ts", tmp_path, OPTIONS)
    assert len(heard.flashes) == 4 and len(heard.sound.beeps()) == 4
    assert max(map(abs, heard.offsets_ms)) < LIMIT_MS  # at most a packet of sound, at the seam
    assert heard.sound.seconds == pytest.approx(4.5, abs=0.6)


async def test_a_gap_in_the_sound_is_silence_and_moves_nothing(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    # Packets 42 to 89 are lost: from 0.9 to 1.9 s, and with them the beep at 1.5 s.
    lost: Words = ["-i", plain(clips), "-bsf:a", "noise=drop=between(n\\,42\\,89)"]
    heard = await hear_and_see(tools, copied(clips, "gap.mkv", *lost), tmp_path, OPTIONS)
    assert heard.sound.beeps() == pytest.approx([heard.flashes[0], heard.flashes[2], heard.flashes[3]], abs=0.002)
    assert heard.sound.peak(0.95, 1.85) < 0.01


async def test_minutes_without_sound_are_silence_in_small_pieces(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    """ffmpeg makes a silence whole in memory: an hour of it took 1.6 GB, in pieces of ten seconds 20 MB."""
    still = ["-f", "lavfi", "-i", "color=black:s=64x36:r=1:d=70", "-c:v", "libx264", "-preset", "ultrafast"]
    clips.ffmpeg(*still, "-pix_fmt", "yuv420p", tmp_path / "still.mkv")
    late: Words = ["-i", tmp_path / "still.mkv", "-itsoffset", "60", "-i", plain(clips)]
    clips.ffmpeg(*late, "-map", "0:v", "-map", "1:a", "-c", "copy", tmp_path / "late.mkv")
    heard = await hear(tools, tmp_path / "late.mkv", tmp_path, replace(OPTIONS, segment_seconds=10))
    assert [(round(start), round(end)) for start, end in heard.work.facts.audio[0].gaps] == [(0, 60)]
    assert "ainterleave" in " ".join(commands.audio(heard.work.tool, tmp_path, tmp_path, heard.work.audio(0)))
    assert heard.sound.beeps() == pytest.approx([60.5, 61.5, 62.5, 63.5], abs=0.002)
    assert heard.sound.peak(0, 60.4) < 0.01
    assert heard.sound.seconds == pytest.approx(70, abs=0.05)


async def test_a_gap_of_minutes_in_the_middle_is_one_too(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    still = ["-f", "lavfi", "-i", "color=black:s=64x36:r=1:d=70", "-f", "lavfi", "-i", "sine=f=700:d=65:r=48000"]
    clips.ffmpeg(*still, *H264, "-c:a", "aac", tmp_path / "whole.mkv")
    # Packets of 21.3 ms: all between 10 and 60 s are lost.
    lost: Words = ["-i", tmp_path / "whole.mkv", "-bsf:a", "noise=drop=between(n\\,470\\,2812)"]
    clips.ffmpeg(*lost, "-c", "copy", tmp_path / "gap.mkv")
    heard = await hear(tools, tmp_path / "gap.mkv", tmp_path, replace(OPTIONS, segment_seconds=10))
    assert [(round(start), round(end)) for start, end in heard.work.facts.audio[0].gaps] == [(10, 60)]
    assert heard.sound.beeps(threshold=0.05) == pytest.approx([0.02, 60.0], abs=0.05)
    assert heard.sound.peak(10.1, 59.9) < 0.01


async def test_single_lost_packets_do_not_add_up(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    # 21 ms each, and each less than what ffmpeg fills by itself; three would be seen.
    lost: Words = ["-i", plain(clips), "-bsf:a", "noise=drop=eq(n\\,50)+eq(n\\,96)+eq(n\\,140)"]
    heard = await hear_and_see(tools, copied(clips, "losses.mkv", *lost), tmp_path, OPTIONS)
    assert len(heard.flashes) == 4
    assert heard.offsets_ms == pytest.approx([0] * 4, abs=2)


@pytest.mark.parametrize("speed", ["1.005", "0.995"])
async def test_a_recorder_with_a_wrong_clock_does_not_drift(
    tools: Toolbox, clips: Clips, tmp_path: Path, speed: str
) -> None:
    # A sample clock that is off by half a percent, under time stamps that are right: 40 ms after 8 s.
    beeps = f"if(gte(t*{speed},0.5)*lt(mod(t*{speed}+0.5,1),0.04),0.5*sin(2*PI*1000*t),0)|0"
    made, stamped = tmp_path / "made.mkv", tmp_path / "stamped.mkv"
    flashing = f"color=black:s=320x180:r=30:d={8},drawbox=t=fill:c=white:enable='eq(mod(n,30),15)'"
    inputs = ["-f", "lavfi", "-i", flashing, "-f", "lavfi", "-t", "8", "-i", f"aevalsrc='{beeps}':s=48000:c=stereo"]
    clips.ffmpeg(*inputs, *H264, "-c:a", "aac", made)
    clips.ffmpeg("-i", made, "-c", "copy", "-bsf:a", f"setts=ts=TS*{speed}", stamped)
    heard = await hear_and_see(tools, stamped, tmp_path / "out", OPTIONS)
    assert len(heard.offsets_ms) == 8
    assert max(map(abs, heard.offsets_ms)) < 22
