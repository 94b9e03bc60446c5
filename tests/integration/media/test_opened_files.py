"""Nothing but the upload is opened: the kernel tells every file that a command opened, and the bait is none of them."""

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.clips import Clips

ROOT = Path(__file__).parents[3]
CALLS = "trace=open,openat,openat2,connect,execve"


def families(clips: Clips, folder: Path, bait: Path) -> dict[str, bytes]:
    """Write one file of each kind that could name another."""
    plain = clips.get("noaudio.mp4").read_bytes()
    place = plain.index(b"dref") + 12  # behind version, flags and count: the entry
    elsewhere = f"file://{bait}".encode() + b"\0"

    def referring(kind: bytes) -> bytes:
        # The entry says that the media lie elsewhere; a longer one with the name follows where `stbl` was.
        entry = struct.pack(">I4sI", 12 + len(elsewhere), kind, 0) + elsewhere
        return plain[:place] + entry + plain[place + 12 :]

    return {
        "hls.mp4": f"#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n{bait}\n#EXT-X-ENDLIST\n".encode(),
        "relative.m3u8": f"#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n{bait.name}\n#EXT-X-ENDLIST\n".encode(),
        "tagged.mp3": b"ID3\x03\0\0\0\0\0\0" + f"#EXTM3U\n#EXTINF:3,\n{bait}\n#EXT-X-ENDLIST\n".encode(),
        "concat.mp4": f"ffconcat version 1.0\nfile {bait.name}\n".encode(),
        "concat.ffconcat": f"ffconcat version 1.0\nfile '{bait}'\n".encode(),
        "dash.mpd": (
            '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
            'mediaPresentationDuration="PT3S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" '
            f'bandwidth="1"><BaseURL>{bait}</BaseURL></Representation></AdaptationSet></Period></MPD>'
        ).encode(),
        "session.sdp": b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
        "vobsub.idx": b"# VobSub index file, v7 (do not modify this line!)\nsize: 720x576\nid: en, index: 0\n"
        b"timestamp: 00:00:01:000, filepos: 000000000\n",
        "drawing.svg": f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{bait}"/></svg>'.encode(),
        "subtitles.ass": f"[Script Info]\nScriptType: v4.00+\nVideo File: {bait}\nAudio URI: {bait}\n".encode(),
        "referring.mov": referring(b"alis"),
        "referring.mp4": referring(b"url "),
        "pattern%03d.mp4": b"\xff\xd8\xff" + bytes(500),
        "plain.mp4": plain,
    }


def test_no_command_opens_anything_but_the_upload(clips: Clips, tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        if os.environ.get("CI"):
            pytest.fail("strace is missing; `make setup-dev` installs it")
        pytest.skip("strace is missing")
    bait = tmp_path / "bait.mp4"
    shutil.copy(clips.get("noaudio.mp4"), bait)
    shutil.copy(clips.get("noaudio.mp4"), tmp_path / "vobsub.sub")
    paths = []
    for name, data in families(clips, tmp_path, bait).items():
        (tmp_path / name).write_bytes(data)
        paths.append(tmp_path / name)
    log = tmp_path / "opened.log"
    done = subprocess.run(
        [
            strace,
            "-f",
            "--seccomp-bpf",  # stops at what is asked for only, not at every call
            "-qq",
            "-s",
            "4096",
            "-e",
            CALLS,
            "-o",
            log,
            sys.executable,
            "-m",
            "tests.support.opening",
            *paths,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
    )
    assert done.stdout.endswith(f"looked at {len(paths)}\n"), done.stderr[-2000:]
    seen = log.read_text()
    for path in paths:
        assert f'"{path}"' in seen, "the watch itself must work"
    opened = set(re.findall(r'(?:open|openat2?)\((?:AT_FDCWD, )?"([^"]*)"', seen))
    mine = {path for path in opened if path.startswith(str(tmp_path))}
    written = {path for path in mine if re.match(rf"{re.escape(str(tmp_path))}/out[^/]*(/|$)", path)}
    assert mine - written <= {str(path) for path in paths}
    # Nor does a command that reads it speak to anybody: connect() is not even tried.
    assert "AF_INET" not in seen
