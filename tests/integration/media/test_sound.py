"""What is heard: every channel at its level, every track under its name, and nothing where nothing was."""

import math
from pathlib import Path

import pytest

from contracts.plan import Rung
from media.planning import PlanOptions
from media.probe import probe
from media.streams import verify_stream
from media.tools import Toolbox
from tests.integration.media.sounding import H264, beeping, copied, hear, toned
from tests.support.clips import Clips
from tests.support.encoding import prepare, publish
from tests.support.listening import Sound

LADDER = (Rung(name="144p", short_side=144, video_kbps=300, audio_kbps=192),)
OPTIONS = PlanOptions(ladder=LADDER, segment_seconds=1, preset="ultrafast")

MIDDLE = (0.5, 1.5)
TONE = 0.25  # what each channel of a clip has
# Front left and right, centre, bass, then the surrounds: a tone each.
FIVE = (300, 500, 700, 60, 1100, 1300)
SEVEN = (*FIVE, 1700, 1900)


def expect(sound: Sound, frequency: float, left: float, right: float, within: float = 0.03) -> None:
    """Insist that a tone is so loud left and right, against what it was."""
    assert heard_in(sound, frequency) == pytest.approx((left, right), abs=within)


def heard_in(sound: Sound, frequency: float) -> tuple[float, float]:
    """Say how loud a tone is left and right, against what it was."""
    left, right = (sound.level(frequency, *MIDDLE, channel=channel) / TONE for channel in (0, 1))
    return round(left, 2), round(right, 2)


SURROUND: dict[str, tuple[str, tuple[int, ...], str, str, list[str]]] = {
    "5.1 aac": ("surround.mp4", FIVE, "5.1", "aac", ["-b:a", "384k"]),
    "5.1 ac3": ("surround.mkv", FIVE, "5.1", "ac3", ["-b:a", "448k"]),
    "5.1 pcm": ("surround.mov", FIVE, "5.1", "pcm_s16le", []),
    "7.1 flac": ("seven.mkv", SEVEN, "7.1", "flac", []),
    "7.1 pcm": ("seven.mov", SEVEN, "7.1", "pcm_s24le", []),
}


@pytest.mark.parametrize("case", SURROUND)
async def test_surround_is_mixed_down_with_its_centre(tools: Toolbox, clips: Clips, tmp_path: Path, case: str) -> None:
    name, tones, layout, codec, words = SURROUND[case]
    heard = await hear(tools, toned(clips, name, tones, layout, codec, *words), tmp_path, OPTIONS)
    half = math.sqrt(0.5)
    expect(heard.sound, 300, 1, 0)
    expect(heard.sound, 500, 0, 1)
    expect(heard.sound, 700, half, half)  # the centre is in both, at -3 dB: as loud as it was
    expect(heard.sound, 60, 0, 0, within=0.02)
    for left, right in zip(tones[4::2], tones[5::2], strict=True):
        expect(heard.sound, left, half, 0)
        expect(heard.sound, right, 0, half)
    assert any("mixed down to stereo" in note for note in heard.work.plan.notes)


async def test_speech_in_the_centre_is_as_loud_as_before(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    source = toned(clips, "centre.mkv", (0, 0, 700, 0, 0, 0), "5.1", "ac3", "-b:a", "448k")
    heard = await hear(tools, source, tmp_path, OPTIONS)
    # A sine of 0.25 has a power of 0.25²/2 in one speaker; now in two. Within 0.2 dB.
    assert 20 * math.log10(heard.sound.loudness(*MIDDLE) / (TONE / math.sqrt(2))) == pytest.approx(0, abs=0.2)


async def test_all_channels_at_full_scale_do_not_clip(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    """Front, centre and surround of one side at full scale would add up to 2.4 times of what there is room for."""
    loud = tmp_path / "loud.mkv"
    tones = "|".join(["0.99*sin(2*PI*440*t)"] * 6)
    inputs = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=30:d=2", "-f", "lavfi", "-i", f"aevalsrc='{tones}':c=5.1:d=2"]
    clips.ffmpeg(*inputs, *H264, "-c:a", "flac", loud)
    heard = await hear(tools, loud, tmp_path, OPTIONS)
    assert heard.sound.peak(*MIDDLE) <= 1.0
    assert heard.sound.level(440, *MIDDLE) == pytest.approx(0.95, abs=0.03)
    # Held down, not cut off: a clipped sine has a loud third harmonic (here it would be a fifth of the tone).
    assert heard.sound.level(1320, *MIDDLE) < 0.01


async def test_mono_plays_at_full_level_in_both_speakers(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    heard = await hear(tools, toned(clips, "mono.mp4", (700,), "mono", "aac"), tmp_path, OPTIONS)
    expect(heard.sound, 700, 1, 1)


async def test_stereo_is_left_as_it_is(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    heard = await hear(tools, toned(clips, "stereo.mov", (300, 500), "stereo", "pcm_s16le"), tmp_path, OPTIONS)
    expect(heard.sound, 300, 1, 0, within=0.02)
    expect(heard.sound, 500, 0, 1, within=0.02)


CODECS = {
    "aac": "mp4", "alac": "mp4", "libmp3lame": "mkv", "ac3": "mp4", "eac3": "mp4", "libopus": "mkv", "libvorbis": "mkv",
    "flac": "mkv", "pcm_s16le": "avi", "pcm_s24be": "mov", "pcm_mulaw": "mov", "mp2": "ts", "wmav2": "avi",
    "adpcm_ima_wav": "avi",
}  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
async def test_every_codec_is_heard(tools: Toolbox, clips: Clips, tmp_path: Path, codec: str) -> None:
    source = toned(clips, f"codec_{codec}.{CODECS[codec]}", (700, 700), "stereo", codec)
    heard = await hear(tools, source, tmp_path, OPTIONS)
    expect(heard.sound, 700, 1, 1, within=0.1)


async def test_sound_that_ends_early_goes_on_as_silence(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    beep = beeping(clips, "beep.mp4", H264, "aac")
    short = copied(clips, "short_sound.mp4", "-i", beep, "-t", "2", "-i", beep, "-map", "0:v", "-map", "1:a")
    heard = await hear(tools, short, tmp_path, OPTIONS)
    assert len(heard.sound.beeps()) == 2
    assert heard.sound.seconds == pytest.approx(4, abs=0.05)


async def test_sound_that_goes_on_is_cut_after_the_picture(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    beep = beeping(clips, "beep.mp4", H264, "aac")
    long = copied(clips, "long_sound.mkv", "-t", "1", "-i", beep, "-i", beep, "-map", "0:v", "-map", "1:a")
    heard = await hear(tools, long, tmp_path, OPTIONS)
    length_s = heard.work.plan.grid.duration_s
    assert length_s < 1.3
    assert length_s <= heard.sound.seconds <= length_s + 1.05
    assert any("after the picture; it is cut" in note for note in heard.work.plan.notes)


async def test_sound_of_another_programme_is_left_out(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    """A whole multiplex of a broadcaster, as receivers record it."""
    inputs = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=1"]
    for frequency in (400, 800):
        inputs += ["-f", "lavfi", "-i", f"sine=f={frequency}:d=1"]
    maps = ["-map", "0", "-map", "1", "-map", "0", "-map", "2", "-c:v", "mpeg2video", "-c:a", "mp2"]
    clips.ffmpeg(*inputs, *maps, "-program", "st=0:st=1", "-program", "st=2:st=3", tmp_path / "mux.ts")
    heard = await hear(tools, tmp_path / "mux.ts", tmp_path, OPTIONS)
    assert len(heard.work.plan.audio) == 1
    facts = await probe(tools, tmp_path / "mux.ts")
    assert [track.codec for track in facts.audio] == ["mp2"]
    assert facts.warnings == ("The file holds 2 programmes of a broadcast; the one with the first video is taken.",)


async def test_each_track_is_a_rendition_of_its_own(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    source = clips.folder / "tracks.mkv"
    inputs = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=30:d=2"]
    maps = ["-map", "0"]
    tones = (400, 800, 1200, 1600)
    for number, frequency in enumerate(tones, start=1):
        inputs += ["-f", "lavfi", "-i", f"aevalsrc='0.25*sin(2*PI*{frequency}*t)|0':c=stereo:d=2"]
        maps += ["-map", str(number)]
    named = ["eng:", "eng:", "deu:Kommentar", "xx-not a language:English"]
    for place, words in enumerate(named):
        language, _, title = words.partition(":")
        maps += [f"-metadata:s:a:{place}", f"language={language}", f"-metadata:s:a:{place}", f"title={title}"]
    clips.ffmpeg(*inputs, *maps, *H264, "-c:a", "aac", "-disposition:a", "0", "-disposition:a:2", "default", source)

    work = await prepare(tools, source, OPTIONS)
    master = await publish(work, tmp_path / "published")
    report = await verify_stream(tools, master)
    found = [(track.name, track.language) for track in report.audio]
    assert found == [("English", "en"), ("English (2)", "en"), ("Kommentar", "de"), ("English (4)", "und")]
    text, mpd = master.read_text(), (master.parent / "manifest.mpd").read_text()
    assert 'NAME="Kommentar",LANGUAGE="de",DEFAULT=YES' in text and text.count("DEFAULT=YES") == 1
    assert (
        mpd.count('value="main"') == 1 and mpd.count('contentType="audio"') == 4 and "<Label>Kommentar</Label>" in mpd
    )
    for number, frequency in enumerate(tones):
        heard = await hear(tools, source, tmp_path / str(number), OPTIONS, track=number)
        levels = [heard_in(heard.sound, one)[0] for one in tones]
        assert levels == [pytest.approx(1 if one == frequency else 0, abs=0.05) for one in tones]


async def test_channels_beyond_the_usual_are_mixed_too(tools: Toolbox, clips: Clips, tmp_path: Path) -> None:
    made = "".join(f"aevalsrc=0.25*sin(2*PI*{300 + 200 * n}*t):c=mono:d=2:s=48000[m{n}];" for n in range(9))
    merged = made + "".join(f"[m{n}]" for n in range(9)) + "amerge=inputs=9[sound]"
    source = tmp_path / "nine.mov"
    inputs = ["-f", "lavfi", "-i", "testsrc2=s=320x180:r=30:d=2", "-filter_complex", merged]
    clips.ffmpeg(*inputs, "-map", "0:v", "-map", "[sound]", *H264, "-c:a", "pcm_s16le", source)
    heard = await hear(tools, source, tmp_path, OPTIONS)
    assert heard.work.facts.audio[0].channels == 9
    expect(heard.sound, 300, 1, 0, within=0.06)
    expect(heard.sound, 500, 0, 1, within=0.06)
