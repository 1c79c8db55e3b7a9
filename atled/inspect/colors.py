"""One color per device, light enough for dark text and distinct from the colors of adjacent devices."""

from __future__ import annotations

import colorsys

_GOLDEN = 0.618034  # steps of the golden ratio spread any number of hues evenly


def color(number: int) -> tuple[int, int, int]:
    """The RGB color of the device at this position in its mesh."""
    lightness = (0.74, 0.62, 0.84)[number % 3]
    r, g, b = colorsys.hls_to_rgb((0.58 + number * _GOLDEN) % 1.0, lightness, 0.65)
    return round(r * 255), round(g * 255), round(b * 255)


def ansi(number: int) -> int:
    """The number of the terminal color, of 256, that is nearest to `color(number)`."""
    r, g, b = [min(5, max(0, round((c - 55) / 40))) if c > 47 else 0 for c in color(number)]
    return 16 + 36 * r + 6 * g + b
