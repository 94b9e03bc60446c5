"""HEVC and AV1 beside H.264 in one master and one MPD: players choose what their browser can, and skip the rest."""

from pathlib import Path

import pytest

from contracts.states import Codec
from media.playlists import read_master
from media.tools import Toolbox
from tests.e2e.browsing import chromium, open_page, player_page
from tests.e2e.numbered_stream import PLAYERS, check_shown, looked, make_stream, play_to_the_end

FRAMES = 75
WORDS = ("avc1", "hvc1", "av01")


@pytest.fixture(scope="module")
def stream(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_stream(tools, tmp_path_factory.mktemp("codecs"), frames=FRAMES, codecs=tuple(Codec))


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("wish", ["av01", ""])
async def test_players_play_av1_and_skip_what_the_browser_does_not_have(player: str, wish: str, stream: Path) -> None:
    """With a wish for AV1, and without one: then the player chooses by itself."""
    chromium()
    function, manifest = PLAYERS[player]
    videos, _ = read_master(stream / "master.m3u8")
    offered = {one.attributes["CODECS"].split(",")[0] for one in videos}
    assert {codecs.split(".")[0] for codecs in offered} == set(WORDS)
    with player_page("numbered.html", stream) as url:
        async with open_page(url) as page:
            able = {codecs for codecs in offered if await page.evaluate(f"supports('{codecs}')")}
            assert any(codecs.startswith("av01") for codecs in able), "this browser cannot play AV1"
            lowest = await page.evaluate(f"{function}('/stream/{manifest}', '{wish}')")
            listed = {codecs for _, codecs in (await looked(page))["levels"]}
            # Nothing that cannot be played is even offered; Debian's Chromium has no HEVC.
            assert listed and listed <= able
            if wish:
                assert any(codecs.startswith(wish) for codecs in listed)
            if player == "hls.js":
                assert listed == able  # shaka settles for one codec at once
            pictures = await play_to_the_end(page, lowest, switching=False)
            check_shown(pictures)
            assert {shown.height for shown in pictures} == {lowest}
            assert pictures[-1].number >= FRAMES - 10
            assert len((await looked(page))["buffered"]) == 1
