"""What is S3's own: parts, links, an unfinished upload that somebody must find, a server that says no or nothing."""

import asyncio
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import storage.s3
import storage.s3_partial
import storage.s3_writer
from contracts.errors import ObjectMissing, StorageUnavailable
from storage.s3 import S3Store
from storage.s3_multipart import Multipart, Unfinished
from storage.s3_place import s3_place
from tests.support.s3 import S3Server

PART = 5 << 20  # the smallest that S3 takes
LARGE = random.Random(1).randbytes(2 * PART + 12345)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(storage.s3_writer, "PART_BYTES", PART)
    monkeypatch.setattr(storage.s3, "PART_BYTES", PART)
    monkeypatch.setattr(storage.s3, "DELETE_BATCH", 3)
    yield


async def unfinished(bucket: S3Store) -> list[Unfinished]:
    async with Multipart.opened(bucket.place, 5) as calls:
        return await calls.unfinished(bucket.place.full("uploads/"))


async def test_a_large_object_goes_and_comes_in_parts(bucket: S3Store, tmp_path: Path) -> None:
    async with bucket.writer("uploads/1.mp4") as writer:
        for at in range(0, len(LARGE), 1 << 20):
            await writer.write(LARGE[at : at + (1 << 20)])
        assert writer.size_bytes == len(LARGE)
        assert len(await unfinished(bucket)) == 1 and await bucket.stat("uploads/1.mp4") is None
        await writer.commit()
    assert await unfinished(bucket) == []
    chunks = [chunk async for chunk in bucket.read("uploads/1.mp4", start=100)]
    assert len(chunks) > 1 and b"".join(chunks) == LARGE[100:]
    async with bucket.local_file("uploads/1.mp4") as path:
        assert path.read_bytes() == LARGE


async def test_the_first_of_two_large_files_wins(bucket: S3Store, tmp_path: Path) -> None:
    files = [tmp_path / "0", tmp_path / "1"]
    for n, file in enumerate(files):
        file.write_bytes(bytes([n]) + LARGE)
    first = await asyncio.gather(*(bucket.put_file("uploads/1.mkv", file, create_only=True) for file in files))
    assert sorted(first) == [False, True]
    assert await bucket.read_bytes("uploads/1.mkv") == bytes([first.index(True)]) + LARGE
    assert await unfinished(bucket) == []
    assert await bucket.put_file("uploads/1.mkv", files[0])


async def test_a_large_upload_that_is_cut_off_is_taken_back(bucket: S3Store) -> None:
    async def send() -> None:
        async with bucket.writer("uploads/1.mp4") as writer:
            await writer.write(LARGE)
            sent.set()
            await asyncio.sleep(60)

    sent = asyncio.Event()
    sending = asyncio.create_task(send())
    await sent.wait()
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    assert await unfinished(bucket) == []
    assert await bucket.list("uploads/") == []


async def test_what_a_killed_writer_left_goes_when_nobody_has_written_for_long(bucket: S3Store) -> None:
    key = bucket.place.full("uploads/1.mp4")
    async with Multipart.opened(bucket.place, 5) as calls:
        upload_id = await calls.begin(key, "video/mp4")
        await calls.put_part(key, upload_id, 1, LARGE[:PART])
        other = await calls.begin(bucket.place.full("uploads2/1.mp4"), "video/mp4")
    assert await bucket.remove_unfinished("uploads/", older_than_s=3600) == 0
    assert await bucket.remove_unfinished("uploads/", older_than_s=-5) == 1  # clocks agree to a few seconds
    assert await unfinished(bucket) == []
    assert await bucket.remove_unfinished("uploads2/", older_than_s=-5) == 1, other


async def test_many_objects_go_in_batches(bucket: S3Store) -> None:
    await asyncio.gather(*(bucket.put_bytes(f"videos/a/seg_{n:05d}.m4s", b"x") for n in range(8)))
    await bucket.delete_prefix("videos/a/")
    assert await bucket.list("videos/") == []


async def test_a_link_lets_anybody_read_one_object(bucket: S3Store, s3_server: S3Server) -> None:
    await bucket.put_bytes("videos/a/r1/360p/seg_00000.m4s", b"abcdef")
    await bucket.put_bytes("videos/a/r1/360p/seg_00001.m4s", b"other")
    link = await bucket.link("videos/a/r1/360p/seg_00000.m4s")
    assert link is not None and link.startswith(s3_server.endpoint) and "X-Amz-Expires=900&" in link
    async with httpx.AsyncClient(trust_env=False) as http:
        part = await http.get(link, headers={"Range": "bytes=1-2", "Origin": "https://elsewhere.example"})
        assert (part.status_code, part.content) == (206, b"bc")
        assert part.headers["content-type"] == "video/iso.segment"
        assert part.headers["access-control-allow-origin"] in ("*", "https://elsewhere.example")
        assert (await http.get(link.partition("?")[0])).status_code == 403
        assert (await http.get(link.replace("seg_00000", "seg_00001"))).status_code == 403
        assert (await http.delete(link)).status_code == 403


async def test_links_are_signed_for_the_host_that_viewers_use(bucket: S3Store, tmp_path: Path) -> None:
    public = S3Store(bucket.place, tmp_path, public_endpoint="https://media.example.org", link_s=600)
    assert (await public.link("videos/a/init.mp4") or "").startswith("https://media.example.org/media/")
    assert await S3Store(bucket.place, tmp_path, link_s=0).link("videos/a/init.mp4") is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "refuses our key"),
        ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}, "did not answer"),
        ({"bucket": "nobody-made-it"}, "bucket does not exist"),
    ],
)
async def test_a_server_that_says_no_or_nothing_is_unavailable_soon(
    s3_server: S3Server, tmp_path: Path, change: dict[str, str], sentence: str
) -> None:
    url = f"s3://{change.get('bucket', 'media')}/x"
    store = S3Store(s3_place(url, s3_server.environment | change), tmp_path, patience_s=1)
    large = tmp_path / "large"
    large.write_bytes(LARGE)
    began = time.monotonic()
    for deed in (
        store.check(),
        store.put_file("uploads/1.mp4", large),
        store.list("uploads/"),
        store.remove_unfinished("uploads/", older_than_s=60),
    ):
        with pytest.raises(StorageUnavailable, match=sentence):
            await deed
    assert time.monotonic() - began < 30


async def test_machines_that_come_and_go_leave_no_trace_of_their_checks(
    bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host in ("api-7d9f-a", "api-7d9f-b"):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        await bucket.check()
    assert len(await bucket.list("scratch")) == 1


def elsewhere(bucket: S3Store, folder: Path) -> S3Store:
    """The same bucket, as a process of another machine sees it."""
    return S3Store(bucket.place, folder, patience_s=5)


async def pieces(bucket: S3Store, *keeps: bytes, at: int = 0) -> list[int]:
    """Send pieces as one request does, and say what each could be counted as."""
    async with bucket.resume("uploads/1.mp4") as writer:
        await writer.go_on(at)
        kept = []
        for data in keeps:
            await writer.write(data)
            kept.append(await writer.keep())
        return kept


async def test_any_machine_goes_on_with_pieces_that_another_took(bucket: S3Store, tmp_path: Path) -> None:
    cut = PART + 1000
    assert await pieces(bucket, LARGE[:300], LARGE[300:cut]) == [300, cut]
    other = elsewhere(bucket, tmp_path / "other")
    assert await other.remove_unfinished("uploads/", older_than_s=-5) == 0, "it is not unfinished, it comes in pieces"
    async with other.resume("uploads/1.mp4") as writer:
        await writer.go_on(cut)
        assert {facts.key for facts in await bucket.list("partial")} == {
            "partial/uploads/1.mp4/upload",
            f"partial/uploads/1.mp4/{PART}-1000",
        }
        await writer.write(LARGE[cut:])
        await writer.commit()
    assert await bucket.read_bytes("uploads/1.mp4") == LARGE
    assert await bucket.list("partial") == [] and await unfinished(bucket) == []
    async with bucket.resume("uploads/1.mp4") as writer:
        with pytest.raises(ObjectMissing):
            await writer.go_on(cut)


async def test_parts_that_nobody_counted_are_sent_again(bucket: S3Store, tmp_path: Path) -> None:
    cut, wrong = PART + 1000, bytes(PART)
    assert (await pieces(bucket, LARGE[:cut], wrong))[0] == cut  # its process is killed before it counts the second
    # Sent again in a smaller piece, which ends inside what was wrong, and then to the end.
    assert await pieces(elsewhere(bucket, tmp_path / "b"), LARGE[cut : cut + 500], at=cut) == [cut + 500]
    async with elsewhere(bucket, tmp_path / "c").resume("uploads/1.mp4") as writer:
        await writer.go_on(cut + 500)
        await writer.write(LARGE[cut + 500 :])
        await writer.commit()
    assert await bucket.read_bytes("uploads/1.mp4") == LARGE


async def test_nothing_behind_a_part_that_did_not_arrive_counts(
    bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Multipart.put_part

    async def lost(self: Multipart, key: str, upload_id: str, number: int, data: bytes) -> str:
        if number == 1:
            raise StorageUnavailable("Storage did not answer.")
        return await real(self, key, upload_id, number, data)

    monkeypatch.setattr(Multipart, "put_part", lost)
    async with bucket.resume("uploads/1.mp4") as writer:
        await writer.go_on(0)
        await writer.write(LARGE)
        for _ in range(2):
            with pytest.raises(StorageUnavailable):
                await writer.keep()
        with pytest.raises(StorageUnavailable):
            await writer.commit()


async def test_pieces_are_forgotten_when_told_or_after_a_week(
    bucket: S3Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pieces(bucket, LARGE[: PART + 1])
    await elsewhere(bucket, tmp_path / "b").forget("uploads/1.mp4")
    assert await unfinished(bucket) == [] and await bucket.list("partial") == []

    await pieces(bucket, LARGE[: PART + 1])
    async with elsewhere(bucket, tmp_path / "c").resume("uploads/2.mp4"):
        assert len(await unfinished(bucket)) == 1
    monkeypatch.setattr(storage.s3_partial, "FORGOTTEN_S", -5.0)
    async with elsewhere(bucket, tmp_path / "d").resume("uploads/2.mp4"):
        assert await unfinished(bucket) == [] and await bucket.list("partial") == []


async def test_a_process_finds_what_a_killed_one_left_on_its_machine(bucket: S3Store, tmp_path: Path) -> None:
    left = tmp_path / "work/scratch/abc"
    left.mkdir(parents=True)
    left.with_name(".abc.lock").write_text(socket.gethostname())
    async with bucket.scratch("step") as here:
        assert here.is_dir() and not left.exists()
