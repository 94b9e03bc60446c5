"""Read what ffmpeg says of its progress."""

from dataclasses import dataclass

# Of an output that has ended ffmpeg takes the largest number there is for its time, while others still go on.
_ENDED_S = 1e12


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
        self._reached = (0.0, 0.0)  # time and speed, as they were last known

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
        # Microseconds; `out_time_ms` holds microseconds too, an old mistake that ffmpeg keeps.
        out_time_s = self._number("out_time_us") / 1e6
        if out_time_s < _ENDED_S:  # else its speed, which follows from the time, is as wrong
            self._reached = (out_time_s, self._number("speed"))
        out_time_s, speed = self._reached
        return Progress(
            frame=int(self._number("frame")),
            fps=self._number("fps"),
            speed=speed,
            out_time_s=out_time_s,
            ended=self._block.get("progress") == "end",
        )

    def _number(self, key: str) -> float:
        try:
            return float(self._block.get(key, "0").removesuffix("x"))
        except ValueError:  # N/A in the first block
            return 0.0
