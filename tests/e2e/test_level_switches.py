"""Switching quality loses no picture: each one carries its number, and is read off the screen of a real browser.

A busy machine drops pictures, so nothing here asks that all were seen while it played. What was seen must be right;
and around every switch each picture is then stepped to, shown and read.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from media.tools import Toolbox
from tests.e2e.browsing import chromium, open_page, player_page
from tests.e2e.numbered_stream import FPS, PLAYERS, SEGMENT, check_shown, looked, make_stream, play_to_the_end

FRAMES = 250  # ten segments
AROUND = 3  # pictures before and after a switch that are stepped to


@pytest.fixture(scope="module")
def stream(tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_stream(tools, tmp_path_factory.mktemp("switches"), frames=FRAMES)


@pytest.mark.parametrize("player", PLAYERS)
async def test_switching_quality_loses_no_picture(player: str, stream: Path) -> None:
    chromium()
    function, manifest = PLAYERS[player]
    with player_page("numbered.html", stream) as url:
        async with open_page(url) as page:
            lowest = await page.evaluate(f"{function}('/stream/{manifest}', 'avc1')")
            pictures = await play_to_the_end(page, lowest, switching=True)
            check_shown(pictures)

            # A segment is of one quality, whichever of its pictures were seen: switches are at its borders only.
            heights: dict[int, set[int]] = {}
            for shown in pictures:
                heights.setdefault(shown.number // SEGMENT, set()).add(shown.height)
            assert all(len(of_one) == 1 for of_one in heights.values()), heights
            level = {segment: of_one.pop() for segment, of_one in heights.items()}
            switches = [b for a, b in pairwise(sorted(level)) if level[a] != level[b] and b == a + 1]
            assert len(switches) >= 2, level

            # No gap anywhere, to the very end.
            state = await looked(page)
            assert len(state["buffered"]) == 1
            assert state["buffered"][0][0] == 0
            assert state["buffered"][0][1] == pytest.approx(FRAMES / FPS, abs=0.1)

            # Every picture around a switch is there, in the quality of its segment.
            for segment in switches:
                for number in range(segment * SEGMENT - AROUND, segment * SEGMENT + AROUND):
                    found, time_s, height = await page.evaluate(f"step({number}, {FPS})")
                    assert (found, round(time_s * FPS)) == (number, number)
                    assert height == level[number // SEGMENT]
            await looked(page)
