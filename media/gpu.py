"""What the GPU of this machine can do, found out by doing it: a few pictures per codec, through the very commands that
videos are encoded with, into segments that are checked as theirs are.

A list of encoders says what a build was compiled with, a device node that there is a device; only pictures that come
out as they should say that driver, device, rights and build go together.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from contracts.errors import EncoderStalled, GpuLacks, OutputIncomplete, VlogError
from contracts.ids import JobId, ObjectKey, VideoId
from contracts.layout import INIT, segment_name
from contracts.media import FrameRate, VideoFacts
from contracts.plan import Encoding, Grid, PlannedRendition, Span
from contracts.states import Codec
from contracts.steps import TranscodeSpan
from media import commands, device_encoders, device_graphs, encoder, verify
from media.boxes import canonical_init, read_init
from media.devices import DEVICES, KNOWN, SESSIONS, VENDORS, Family, GpuEncoder
from media.devices import device_encoder as _name
from media.diagnosis import SAID_BY_ENCODER, has_no_device
from media.tools import Toolbox

TRIAL_S = 20.0  # a driver wakes a sleeping card in a few seconds; what takes longer hangs
_NODES = Path("/dev/dri")
# Not smaller: the least that devices encode is about 256x128. Three groups of pictures, the last one short.
_SIZE, _SOURCE_SIZE = (480, 270), (640, 360)
_GRID = Grid(frame_rate=FrameRate(num=30), frames=40, segment_frames=16)
_ENCODING = Encoding(preset="veryfast")
_MEMORY_BYTES = 2 * encoder.MEMORY_BYTES  # a driver maps a card's memory into the process


class UnknownEncoder(VlogError):
    """VLOG_GPU_ENCODER names something that we would not know how to command."""


@dataclass(frozen=True)
class Attempt:
    """An encoder that did not do it, and what it said."""

    encoder: str
    build: str
    device: str
    said: str

    def __str__(self) -> str:
        where = f" on {self.device}" if self.device else ""
        build = f" with ffmpeg {self.build}" if self.build else ""
        return f"{self.encoder}{where}{build}: {self.said}"


@dataclass(frozen=True)
class Gpu:
    """What was found: an encoder per codec at most, and what was tried in vain."""

    encoders: tuple[GpuEncoder, ...] = ()
    attempts: tuple[Attempt, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.encoders)

    @property
    def names(self) -> dict[str, str]:
        """Name the encoder of each codec, as routing asks for it."""
        return {one.codec.value: one.name for one in self.encoders}

    @property
    def sessions(self) -> int:
        """Say how many encodes the device takes at once, as far as its kind tells."""
        return min((SESSIONS[one.family] for one in self.encoders), default=0)

    def encoder(self, name: str) -> GpuEncoder:
        """Give the encoder that a rendition was routed to."""
        for one in self.encoders:
            if one.name == name:
                return one
        has = ", ".join(self.names.values()) or "none"
        raise GpuLacks(f"This worker's GPU has no encoder {name}.", detail=f"It has: {has}.")

    def shown(self) -> dict[str, Any]:
        """Tell people what was found."""
        first = self.encoders[0]
        return {
            "vendor": VENDORS[first.family],
            "device": first.device or "the first",
            "sessions": self.sessions,
            "decode": sorted(first.decodes),
            "scale": bool(first.decodes),
            "ffmpeg": first.tool.build,
        }


async def detect(tools: Toolbox, *, wanted: Sequence[str] = (), device: str = "", trial_s: float = TRIAL_S) -> Gpu:
    """Try the families in order, per codec, with each build and device; the first that works is taken.

    `wanted` names encoders outright and leaves out all others.
    """
    if unknown := [name for name in wanted if name not in KNOWN]:
        usual = ", ".join(f"h264_{family}" for family in DEVICES)
        raise UnknownEncoder(f"VLOG_GPU_ENCODER: {', '.join(unknown)} is not known here; {usual} and the like are.")
    names = wanted or tuple(name for name, (family, _) in KNOWN.items() if family in _worth_trying())
    with tempfile.TemporaryDirectory(prefix="vlog-gpu-") as folder:
        return await _Search(tools, Path(folder), device, trial_s).run(names)


class _Search:
    def __init__(self, tools: Toolbox, folder: Path, device: str, trial_s: float) -> None:
        self._tools, self._folder, self._device, self._trial_s = tools, folder, device, trial_s
        self._attempts: list[Attempt] = []
        self._hopeless: set[tuple[str, Family, str]] = set()  # builds that reach no such device at all
        self._source: Path | None = None
        self._runs = 0

    async def run(self, names: Sequence[str]) -> Gpu:
        found: dict[Codec, GpuEncoder] = {}
        for family, wanted in groupby(names, lambda name: KNOWN[name][0]):
            codecs = [KNOWN[name][1] for name in wanted if KNOWN[name][1] not in found]
            for candidate in self._candidates(family, codecs):
                if candidate.codec not in found and (works := await self._tried(candidate)):
                    found[candidate.codec] = works
        together = [*found.values()]
        return Gpu(tuple(_informed(one, together) for one in together), tuple(self._attempts))

    def _candidates(self, family: Family, codecs: Sequence[Codec]) -> Iterator[GpuEncoder]:
        """Give every codec with every build and device that may do it, but those that have shown to be hopeless."""
        devices = devices_of(family, self._device)
        able = [
            (codec, tool) for codec in codecs for tool in self._tools.tools if _name(family, codec) in tool.encoders
        ]
        names = ", ".join(_name(family, codec) for codec in codecs)
        if codecs and not able:
            self._note(names, "", "", "no ffmpeg here has it")
        elif able and not devices:
            self._note(names, "", "", "no such device on this machine")
        for codec, tool in able:
            for device in devices:
                if (tool.build, family, device) not in self._hopeless:
                    yield GpuEncoder(family, codec, tool, device)

    async def _tried(self, candidate: GpuEncoder) -> GpuEncoder | None:
        """Find a way in which the encoder works; what the last one said is remembered when none does."""
        source = await self._sample()
        said = ""
        ways = device_encoders.ways(candidate.family, _rendition(candidate), _ENCODING)
        for way in range(len(ways)):
            one = replace(candidate, way=way)
            try:
                made = await self._encoded(one, source, Codec.H264)
            except VlogError as error:
                said = said or _last_words(error)
                if isinstance(error, EncoderStalled) or has_no_device(error.detail):
                    self._hopeless.add((one.tool.build, one.family, one.device))
                    break
                continue
            return replace(one, decodes=await self._decoded(one, made))
        self._note(candidate.name, candidate.tool.build, candidate.device, said)
        return None

    async def _decoded(self, one: GpuEncoder, made: Path) -> frozenset[str]:
        """Say whether the device takes its own work as a source, decoded and scaled without the CPU."""
        if device_graphs.filter_needed(one) not in one.tool.filters:
            return frozenset()
        source = made / "whole.mp4"
        parts = [INIT, *(segment_name(index) for index in range(_GRID.segments))]
        source.write_bytes(b"".join((made / part).read_bytes() for part in parts))
        staying = replace(one, decodes=frozenset({one.codec.value}))
        try:
            again = await self._encoded(staying, source, one.codec)
        except VlogError as error:
            self._note(f"decoding for {one.name}", one.tool.build, one.device, _last_words(error))
            return frozenset()
        # Both ways feed one rendition, and one rendition has one header.
        same = _header(made) == _header(again)
        return staying.decodes if same else frozenset()

    async def _sample(self) -> Path:
        if self._source is None:
            path = self._folder / "sample.mp4"
            seconds = float(_GRID.frames / _GRID.frame_rate.fraction)
            made = commands.sample(self._tools.pick(), path, seconds=seconds, size=_SOURCE_SIZE)
            await encoder.output_of(made, timeout_s=TRIAL_S)
            self._source = path
        return self._source

    async def _encoded(self, one: GpuEncoder, source: Path, codec: Codec) -> Path:
        """Encode as a step would, and check the segments as a step does."""
        self._runs += 1
        request = _request(one, codec)
        output = self._folder / str(self._runs)
        argv = commands.transcode(one.tool, source, output, request, first_segment=0, device=one)
        async with aclosing(encoder.run(argv, timeout_s=self._trial_s, memory_bytes=_MEMORY_BYTES)) as reports:
            async for _ in reports:
                pass
        made = output / request.renditions[0].quality
        await asyncio.to_thread(_check, made)
        return made

    def _note(self, name: str, build: str, device: str, said: str) -> None:
        self._attempts.append(Attempt(name, build, device, said or "no answer"))


def _worth_trying() -> tuple[Family, ...]:
    """Name the families of this system; nobody needs to be told that Linux has no VideoToolbox."""
    foreign = (Family.QSV, Family.VAAPI, Family.NVENC) if sys.platform == "darwin" else (Family.VIDEOTOOLBOX,)
    return tuple(family for family in DEVICES if family not in foreign)


def devices_of(family: Family, chosen: str = "", nodes: Path = _NODES) -> tuple[str, ...]:
    """Name the devices of a family that are worth a try; "" is the one that the driver chooses."""
    is_node = chosen.startswith("/")
    match family:
        case Family.NVENC:
            return () if is_node else (chosen,)
        case Family.VAAPI | Family.QSV:
            if sys.platform != "linux":
                return ("",) if family is Family.QSV else ()
            if chosen:
                return (chosen,) if is_node else ()
            return tuple(str(node) for node in sorted(nodes.glob("renderD*")))
        case Family.VIDEOTOOLBOX:
            return ("",) if sys.platform == "darwin" else ()
        case Family.STAND_IN:
            return ("",)


def _rendition(one: GpuEncoder) -> PlannedRendition:
    width, height = _SIZE
    return PlannedRendition(
        quality="trial", width=width, height=height, video_kbps=800, codec=one.codec, encoder=one.name, gpu=True
    )


def _request(one: GpuEncoder, codec: Codec) -> TranscodeSpan:
    width, height = _SOURCE_SIZE if codec is Codec.H264 and not one.decodes else _SIZE
    return TranscodeSpan(
        job_id=JobId(0),
        video_id=VideoId(0),
        source_key=ObjectKey(""),
        slug="",
        output="",
        video=VideoFacts(
            stream=0,
            codec=codec.value,
            width=width,
            height=height,
            display_width=width,
            display_height=height,
            pixel_format="yuv420p",
            color_space="bt709",
            frame_rate=_GRID.frame_rate,
            average_rate=_GRID.frame_rate,
            packets=_GRID.frames,
            end_s=_GRID.duration_s,
        ),
        grid=_GRID,
        span=Span(first_segment=0, segments=_GRID.segments),
        renditions=(_rendition(one),),
        encoding=_ENCODING,
    )


def _informed(one: GpuEncoder, found: Sequence[GpuEncoder]) -> GpuEncoder:
    """Let an encoder know what the others have shown that their common device decodes."""
    if not one.decodes:
        return one  # the way from a decoder to it does not work, whatever the decoder
    same = [other for other in found if (other.family, other.tool, other.device) == (one.family, one.tool, one.device)]
    return replace(one, decodes=frozenset(codec for other in same for codec in other.decodes))


def _header(made: Path) -> bytes:
    return canonical_init((made / INIT).read_bytes())


def _check(made: Path) -> None:
    try:
        init = read_init(_header(made))
        for index in range(_GRID.segments):
            verify.check_video_segment(made / segment_name(index), init, _GRID, index)
    except OSError as error:
        raise OutputIncomplete(
            "ffmpeg ended well and made no segments.", detail=os.strerror(error.errno or 0)
        ) from None


def _last_words(error: VlogError) -> str:
    """Give what helps: the first line that ffmpeg said, for the rest follows from it."""
    lines = [
        line.strip() for line in error.detail.splitlines() if line.strip() and not line.startswith(SAID_BY_ENCODER)
    ]
    return (lines[0] if lines else error.sentence)[:300]
