"""A published stream: whole, checked, and every kind of damage noticed."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import OutputIncomplete
from media.planning import PlanOptions
from media.sample import make_sample
from media.tools import Toolbox
from media.verify import verify_stream
from tests.support.clips import Clips
from tests.support.encoding import prepare, publish


@pytest.fixture(scope="module")
def published(tools: Toolbox, clips: Clips, options: PlanOptions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    async def make() -> Path:
        work = await prepare(tools, clips.get("land.mp4"), options)
        return await publish(work, tmp_path_factory.mktemp("published"))

    return asyncio.run(make())


async def test_a_whole_stream_passes(tools: Toolbox, published: Path) -> None:
    report = await verify_stream(tools, published)
    assert report.ok
    assert [(rung.name, rung.width, rung.height) for rung in report.rungs] == [
        ("360p", 640, 360),
        ("240p", 426, 240),
        ("144p", 256, 144),
    ]
    assert {rung.frames for rung in report.rungs} == {90}
    assert {rung.boundaries_s for rung in report.rungs} == {(0.0, 1.0, 2.0)}
    assert all(rung.codecs.startswith("avc1.64") for rung in report.rungs)
    assert [(track.codecs, track.channels) for track in report.audio] == [("mp4a.40.2", 2)]
    # Sound begins with the picture and ends at most one AAC frame after it.
    assert 0 <= report.audio[0].duration_s - report.duration_s < 0.0214


async def test_several_tracks_and_no_track_pass(
    tools: Toolbox, clips: Clips, options: PlanOptions, tmp_path: Path
) -> None:
    two = await publish(await prepare(tools, clips.get("multiaudio.mp4"), options), tmp_path / "two")
    report = await verify_stream(tools, two)
    assert [(track.name, track.language) for track in report.audio] == [("English", "en"), ("Deutsch", "de")]
    assert 'NAME="Deutsch",LANGUAGE="de",DEFAULT=YES' in two.read_text()
    none = await publish(await prepare(tools, clips.get("noaudio.mkv"), options), tmp_path / "none")
    assert (await verify_stream(tools, none)).audio == ()
    assert "AUDIO" not in none.read_text()


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    for offset in range(at, at + 400):
        data[offset] ^= 0xFF
    path.write_bytes(data)


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a missing segment": (lambda base: (base / "r1/240p/seg_00001.m4s").unlink(), "missing"),
    "an empty segment": (lambda base: (base / "r1/240p/seg_00001.m4s").write_bytes(b""), "it is empty"),
    "a cut segment": (
        lambda base: (base / "r1/360p/seg_00002.m4s").write_bytes((base / "r1/360p/seg_00002.m4s").read_bytes()[:-50]),
        "cut off",
    ),
    "a segment twice": (
        lambda base: shutil.copy(base / "r1/360p/seg_00000.m4s", base / "r1/360p/seg_00001.m4s"),
        "begins at 0 instead of",
    ),
    "garbage in a picture": (lambda base: _flip(base / "r1/360p/seg_00001.m4s", 3000), "decode"),
    "another rung's init": (
        lambda base: shutil.copy(base / "r1/144p/init.mp4", base / "r1/360p/init.mp4"),
        "RESOLUTION",
    ),
    "a wrong bandwidth": (lambda base: _replace(base / "master.m3u8", "BANDWIDTH=", "BANDWIDTH=9"), "BANDWIDTH"),
    "a wrong codec": (lambda base: _replace(base / "master.m3u8", "avc1.64", "avc1.42"), "CODECS"),
    "a wrong length": (lambda base: _replace(base / "r1/144p/playlist.m3u8", ":1.000000", ":1.100000"), "as long as"),
    "an open end": (lambda base: _replace(base / "r1/144p/playlist.m3u8", "#EXT-X-ENDLIST", ""), "no end"),
    "a manifest of less": (lambda base: _replace(base / "manifest.mpd", 'r="2"', 'r="1"'), "different segments"),
    "no manifest": (lambda base: (base / "manifest.mpd").unlink(), "DASH"),
}


@pytest.mark.parametrize("what", DAMAGE)
async def test_damage_is_noticed(tools: Toolbox, published: Path, tmp_path: Path, what: str) -> None:
    base = tmp_path / "clip"
    shutil.copytree(published.parent, base)
    damage, words = DAMAGE[what]
    damage(base)
    with pytest.raises(OutputIncomplete, match=words):
        await verify_stream(tools, base / "master.m3u8")


async def test_the_sample_has_picture_and_sound(tools: Toolbox, tmp_path: Path, options: PlanOptions) -> None:
    path = tmp_path / "sample.mp4"
    await make_sample(tools, path, seconds=1, size=(320, 180))
    work = await prepare(tools, path, options)
    assert (work.facts.video.packets, len(work.facts.audio)) == (30, 1)
