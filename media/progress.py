"""Read what ffmpeg says of its progress."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One block of `-progress`. With several outputs `frame` counts the first of them."""

    frame: int = 0
    fps: float = 0.0
    speed: float = 0.0
    out_time_s: float = 0.0
    ended: bool = False


class Reports:
    """Turn the bytes of `-progress` into reports: key=value lines, a block ends with `progress=`."""

    def __init__(self) -> None:
        self._rest = b""
        self._block: dict[str, str] = {}

    def feed(self, chunk: bytes) -> list[Progress]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = []
        for line in lines:
            key, _, value = line.decode("utf-8", "replace").partition("=")
            self._block[key.strip()] = value.strip()
            if key == "progress":
                found.append(self._report())
                self._block = {}
        return found

    def _report(self) -> Progress:
        return Progress(
            frame=int(self._number("frame")),
            fps=self._number("fps"),
            speed=self._number("speed"),
            # Microseconds; `out_time_ms` holds microseconds too, an old mistake that ffmpeg keeps.
            out_time_s=self._number("out_time_us") / 1e6,
            ended=self._block.get("progress") == "end",
        )

    def _number(self, key: str) -> float:
        try:
            return float(self._block.get(key, "0").removesuffix("x"))
        except ValueError:  # N/A in the first block
            return 0.0
