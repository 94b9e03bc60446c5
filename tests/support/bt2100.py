"""What HDR signals mean, from BT.2100, and what they should look like in SDR: a second opinion on our filters."""

import math

from media.tone import KNEE, PAPER_NITS
from tests.support.chart import Colour

_PEAK_NITS = 1000  # of the screen that HLG is shown on
# Linear light of BT.2020 in the primaries of BT.709 (BT.2087).
_TO_709 = ((1.6605, -0.5876, -0.0728), (-0.1246, 1.1329, -0.0083), (-0.0182, -0.1006, 1.1187))


def pq_nits(signal: Colour) -> Colour:
    """The light that a PQ signal of 0 to 255 asks for, in cd/m²."""

    def eotf(value: float) -> float:
        m1, m2, c1, c2, c3 = 2610 / 16384, 2523 / 32, 3424 / 4096, 2413 / 128, 2392 / 128
        power = (value / 255) ** (1 / m2)
        return float(10_000 * (max(power - c1, 0) / (c2 - c3 * power)) ** (1 / m1))

    return eotf(signal[0]), eotf(signal[1]), eotf(signal[2])


def hlg_nits(signal: Colour) -> Colour:
    """The light that a screen of 1000 cd/m² makes of an HLG signal of 0 to 255."""

    def scene(value: float) -> float:
        a, b, c = 0.17883277, 0.28466892, 0.55991073
        value /= 255
        return value * value / 3 if value <= 0.5 else (math.exp((value - c) / a) + b) / 12

    red, green, blue = (scene(value) for value in signal)
    # The eye adapts to the screen: brightness is raised, not each colour by itself.
    gain = _PEAK_NITS * (0.2627 * red + 0.6780 * green + 0.0593 * blue) ** 0.2
    return gain * red, gain * green, gain * blue


def sdr(nits: Colour) -> tuple[Colour, bool]:
    """The BT.709 colour of that light with paper white as white, and whether SDR can show it unchanged.

    Unchanged is what lies in the smaller gamut and under the knee of the tone curve; the rest must give way.
    """
    light = [value / PAPER_NITS for value in nits]
    narrow = [sum(weight * value for weight, value in zip(row, light, strict=True)) for row in _TO_709]
    fits = min(narrow) >= 0 and max(narrow) <= KNEE
    # BT.1886: what a screen of SDR undoes again.
    red, green, blue = (255 * min(max(value, 0), 1) ** (1 / 2.4) for value in narrow)
    return (red, green, blue), fits


def narrowed(signal: Colour) -> Colour:
    """The BT.709 colour of an SDR signal of 0 to 255 in the primaries of BT.2020, by the curve that cameras use."""

    def light(value: float) -> float:
        value /= 255
        return value / 4.5 if value < 0.081 else ((value + 0.0993) / 1.0993) ** (1 / 0.45)

    def code(value: float) -> float:
        value = min(max(value, 0), 1)
        return 255 * (4.5 * value if value < 0.018 else 1.0993 * value**0.45 - 0.0993)

    wide = [light(value) for value in signal]
    red, green, blue = (code(sum(w * v for w, v in zip(row, wide, strict=True))) for row in _TO_709)
    return red, green, blue
