"""The step that copies a poor seeker: safe to repeat, never the source itself, and gone when it is asked to go."""

from pathlib import Path

from temporalio.testing import ActivityEnvironment

from activities.remuxing import RemuxSteps
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.remux_steps import DropRemux, Remux
from contracts.steps import RemuxedSource
from media.limits import Limits
from media.probe import probe
from media.tools import Toolbox
from storage.local import LocalStore
from tests.support import numbered

KEY, COPY = ObjectKey("uploads/7.ts"), ObjectKey("remuxed/7-9.mkv")


async def prepared(tools: Toolbox, folder: Path) -> tuple[LocalStore, RemuxSteps, Remux]:
    store = LocalStore(folder / "storage")
    made = folder / "a.ts"
    numbered.make(tools, made, "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", frames=50)
    await store.put_file(KEY, made)
    request = Remux(job_id=JobId(9), video_id=VideoId(7), source_key=KEY, facts=await probe(tools, made))
    return store, RemuxSteps(store, tools, Limits(), stall_s=60), request


async def test_a_second_attempt_finds_the_copy_and_the_source_stays_as_it_is(tools: Toolbox, tmp_path: Path) -> None:
    store, steps, request = await prepared(tools, tmp_path)
    sent = store.path(KEY).read_bytes()
    first: RemuxedSource = await ActivityEnvironment().run(steps.remux, request)
    made = store.path(COPY).stat()
    again: RemuxedSource = await ActivityEnvironment().run(steps.remux, request)
    assert first == again and first.source_key == COPY
    assert (store.path(COPY).stat().st_ino, store.path(COPY).stat().st_mtime_ns) == (made.st_ino, made.st_mtime_ns)
    # People are told of what they sent; later steps read the copy.
    assert (first.facts.format_name, first.facts.remuxed, first.facts.video.seekable) == ("mpegts", "matroska", True)
    assert first.facts.size_bytes == len(sent) and store.path(KEY).read_bytes() == sent
    await ActivityEnvironment().run(steps.drop_remux, DropRemux(source_key=COPY))
    await ActivityEnvironment().run(steps.drop_remux, DropRemux(source_key=COPY))
    assert not store.path(COPY).exists() and store.path(KEY).read_bytes() == sent


async def test_a_copy_that_is_no_good_is_removed_and_the_source_is_read_itself(tools: Toolbox, tmp_path: Path) -> None:
    store, steps, request = await prepared(tools, tmp_path)
    await store.put_bytes(COPY, b"\x1a\x45\xdf\xa3 what a broken disk left")
    answer: RemuxedSource = await ActivityEnvironment().run(steps.remux, request)
    assert answer.source_key == KEY and not answer.facts.video.seekable
    assert any("in one piece" in warning for warning in answer.facts.warnings)
    assert not store.path(COPY).exists()
