"""An ffmpeg that says yes and leaves nothing: the step is tried again, and nothing of it is stored for ever."""

from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.audio import AudioSteps
from activities.failures import translate
from activities.transcode import TranscodeSteps
from contracts.errors import OutputIncomplete
from contracts.ids import ObjectKey
from contracts.layout import INIT, segment_name
from media.planning import PlanOptions
from media.tools import Toolbox
from storage.local import LocalStore
from tests.support.clips import Clips
from tests.support.encoding import PREFIX, prepare
from tests.support.wrapping import wrapped

FOLDER = f"{PREFIX}r1/"

# The real one does its work; then every file of this name is emptied. Nothing is said before the end: whoever looks at
# what is finished while it runs would look at whole ones.
EMPTIED = """
"$real" "$@" > said || exit
for word; do case $word in */seg_%05d.m4s) word=${{word#file:}}; : > "${{word%/*}}/{name}" ;; esac; done
cat said
"""


@pytest.mark.parametrize("sound", [False, True], ids=["picture", "sound"])
@pytest.mark.parametrize("script", [EMPTIED.format(name=INIT), EMPTIED.format(name=segment_name(0)), "exit 0"])
async def test_an_empty_output_is_tried_again_and_nothing_of_it_is_stored(
    tools: Toolbox, clips: Clips, tmp_path: Path, options: PlanOptions, script: str, sound: bool
) -> None:
    source = clips.get("land.mp4")
    work = await prepare(tools, source, options)
    store = LocalStore(tmp_path / "store")
    await store.put_file(ObjectKey("uploads/1"), source)
    picture = work.span().model_copy(update={"ffmpeg": ""})
    track = work.audio(0).model_copy(update={"prefix": f"{FOLDER}audio_0/"})

    async def attempt(using: Toolbox) -> object:
        if sound:
            return await ActivityEnvironment().run(AudioSteps(store, using, stall_s=30).encode_audio, track)
        return await ActivityEnvironment().run(TranscodeSteps(store, using, stall_s=30).transcode_span, picture)

    with pytest.raises(OutputIncomplete) as empty:
        await attempt(Toolbox((wrapped(work.tool, tmp_path / "wrapped", f"cd '{tmp_path}'; {script}"),)))
    told = translate(empty.value, attempt=1)
    assert (told.type, told.non_retryable) == ("OUTPUT_INCOMPLETE", False)
    assert [facts.key for facts in await store.list(FOLDER) if facts.key.endswith(".m4s") or not facts.size_bytes] == []
    # The next attempt, by an ffmpeg that works, is not held to what the first one left.
    await attempt(Toolbox((work.tool,)))
    names = {facts.key.rpartition("/")[2] for facts in await store.list(FOLDER) if facts.size_bytes}
    assert {INIT, *map(segment_name, range(work.plan.grid.segments))} <= names
