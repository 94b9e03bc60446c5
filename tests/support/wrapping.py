"""An ffmpeg that is not itself: a script in front of a real one, for devices that fail, hang or lie."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

from media.tools import Ffmpeg

# Takes the options of h264_nvenc, drops those that no other encoder has, and encodes with x264.
_AS_NVENC = r"""
case " $* " in *" h264_nvenc "*) ;; *) exec "$real" "$@" ;; esac
left=$#
while [ $left -gt 0 ]; do
    word=$1; shift; left=$((left - 1))
    case $word in
    h264_nvenc) set -- "$@" libx264 ;;
    -preset) set -- "$@" -preset ultrafast; shift; left=$((left - 1)) ;;
    -init_hw_device | -filter_hw_device | -hwaccel* | -extra_hw_frames) shift; left=$((left - 1)) ;;
    -filter_complex)
        set -- "$@" "$word" "$(printf %s "$1" | sed 's/scale_cuda=format=nv12:/scale=/')"; shift; left=$((left - 1)) ;;
    -tune | -rc | -cq | -b:v | -forced-idr | -no-scenecut | -b_ref_mode | -gpu) shift; left=$((left - 1)) ;;
    -g | -force_key_frames) [ "$keys" = no ] || set -- "$@" "$word" "$1"; shift; left=$((left - 1)) ;;
    *) set -- "$@" "$word" ;;
    esac
done
exec "$real" "$@"
"""


def wrapped(real: Ffmpeg, folder: Path, script: str, *encoders: str) -> Ffmpeg:
    """Put a script before a build; `exec "$real" "$@"` in it is the build itself. It may claim encoders of a device."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ffmpeg"
    path.write_text(f"#!/bin/sh\nreal={shlex.quote(str(real.ffmpeg))}\n{script}\n")
    os.chmod(path, 0o755)
    return replace(real, ffmpeg=path, build=f"{real.build}-{folder.name}", encoders=real.encoders.union(encoders))


def as_nvenc(real: Ffmpeg, folder: Path, before: str = "", *, decodes: bool = False) -> Ffmpeg:
    """Make a card of NVIDIA's out of x264; `keys=no` before makes one that sets keyframes where it likes."""
    card = wrapped(real, folder, before + _AS_NVENC, "h264_nvenc")
    return replace(card, filters=card.filters | {"scale_cuda"}) if decodes else card
