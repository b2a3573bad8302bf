"""A tomogram in block characters: what fits a terminal without colours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.tomogram import Tomogram

SHADES = " ░▒▓█"  # the last one: nearly all is right
MOST_MAPS = 3


def blocks(tomogram: Tomogram) -> list[str]:
    """Maps of the last two axes, side by side for a few severities of the first where there are three; others are off.

    >>> from testifai.scans.replay import Grid, replay
    >>> passes = np.packbits(np.indices((3, 3)).sum(axis=0)[..., None] + np.arange(8) < 8, axis=-1)
    >>> print("\\n".join(blocks(replay(Grid(("fade", "blur"), 8, passes), "full", surrogate="none"))))
    fade 0 ████▓▓
         1 ██▓▓▒▒
         2 ▓▓▒▒▒▒
      blur 0 1 2
    """
    space = tomogram.space
    down, across = space.axes[-2], space.axes[-1]
    estimate = tomogram.estimate
    chosen: list[tuple[str, NDArray[np.float64]]] = [("", estimate[(0,) * (estimate.ndim - 2)])]
    if estimate.ndim > 2:
        first = space.axes[0]
        places = np.unique(np.linspace(0, len(first.severities) - 1, MOST_MAPS).round().astype(int)).tolist()
        chosen = [
            (f"{first.name} {first.severities[place]}", estimate[(place, *(0,) * (estimate.ndim - 3))])
            for place in places
        ]
    margin = max(len(down.name) + 1 + max(len(str(level)) for level in down.severities), len(across.name))
    width = max(2 * len(across.severities), *(len(title) for title, _ in chosen))
    lines = [" " * (margin + 1) + "  ".join(f"{title:{width}}" for title, _ in chosen)] if estimate.ndim > 2 else []
    for row, level in enumerate(down.severities):
        name = f"{down.name} {level}" if row == 0 else str(level)
        maps = ["".join(2 * shade(rate) for rate in found[row]) for _, found in chosen]
        lines.append(f"{name:>{margin}} " + "  ".join(f"{text:{width}}" for text in maps))
    levels = "".join(f"{level!s:2.2}" for level in across.severities)
    lines.append(f"{across.name:>{margin}} " + "  ".join(f"{levels:{width}}" for _ in chosen))
    return [line.rstrip() for line in lines]


def shade(rate: float) -> str:
    """The character of a rate, a question mark where there is none.

    >>> "".join(shade(rate) for rate in (0.0, 0.25, 0.5, 0.75, 1.0, float("nan")))
    ' ░▒▓█?'
    """
    return "?" if np.isnan(rate) else SHADES[round(rate * (len(SHADES) - 1))]
