"""A first picture of a run, drawn without waiting for estimates or for the browser's plotting library."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from testifai.present.theme import DARK, LIGHT, NEUTRAL, SCALE
from testifai.tomogram import Tomogram

CELL, LEFT, TOP, BELOW = 52, 78, 46, 52
MOST_LEVELS = 30  # beyond which cells would be too small to tell apart
MOST_TESTS = 1_000_000


def draw(tomogram: Tomogram) -> str | None:
    """The pass rate of trials for each pair of severities of the first two axes, as SVG; None where that is too much.

    >>> import testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"up": shift, "on": shift}), strategy="full")
    >>> draw(tomogram).count("<rect")
    9
    """
    axes = tomogram.space.axes[:2]
    if max(len(axis.severities) for axis in axes) > MOST_LEVELS or len(tomogram.measured_ids) > MOST_TESTS:
        return None
    rates = _rates(tomogram)
    rows, columns = rates.shape
    names = [escape(axis.name) for axis in axes]
    levels = [axis.severities for axis in axes]
    bottom = TOP + rows * CELL
    parts = [
        f'<text x="{LEFT}" y="16" class="title">pass rate of the trials so far</text>',
        f'<text x="{LEFT}" y="34" class="soft">mean over the other axes; estimates are being made …</text>',
        f'<text x="{LEFT + columns * CELL / 2}" y="{bottom + 40}" class="middle">{names[0]}</text>',
    ]
    parts += [
        f'<text x="{LEFT + (place + 0.5) * CELL}" y="{bottom + 20}" class="middle">{level}</text>'
        for place, level in enumerate(levels[0])
    ]
    if len(axes) > 1:
        parts += [
            f'<text x="{LEFT - 10}" y="{_top(row, rows) + CELL / 2 + 4}" class="end">{level}</text>'
            for row, level in enumerate(levels[1])
        ]
        middle = TOP + rows * CELL / 2
        parts.append(f'<text transform="translate(18 {middle}) rotate(-90)" class="middle">{names[1]}</text>')
    for row, column in np.ndindex(rows, columns):
        parts.append(_cell(float(rates[row, column]), LEFT + column * CELL, _top(row, rows)))
    width, height = LEFT + max(columns * CELL, 370) + 12, bottom + BELOW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<style>text{{font:13px system-ui,sans-serif;fill:{LIGHT.ink}}}.title{{font-size:16px}}.soft{{fill:{NEUTRAL}}}"
        f".middle{{text-anchor:middle}}.end{{text-anchor:end}}.on{{fill:#fff}}.off{{fill:#111}}"
        f"@media(prefers-color-scheme:dark){{text{{fill:{DARK.ink}}}.on{{fill:#fff}}.off{{fill:#111}}}}</style>"
        + "".join(parts)
        + "</svg>"
    )


def _top(row: int, rows: int) -> int:
    """The first severity is at the bottom."""
    return TOP + (rows - 1 - row) * CELL


def _rates(tomogram: Tomogram) -> NDArray[np.float64]:
    """The mean of tests' pass rates, rows by the second axis and columns by the first; NaN where none was tried."""
    axes = tomogram.space.axes[:2]
    ids = tomogram.measured_ids
    passes, trials = tomogram.outcomes.counts(ids)
    severities = tomogram.space.matrix(ids)
    places = [np.searchsorted(axis.severities, severities[:, number]) for number, axis in enumerate(axes)]
    at = (places[1] if len(axes) > 1 else np.zeros(len(ids), np.intp), places[0])
    shape = (len(axes[1].severities) if len(axes) > 1 else 1, len(axes[0].severities))
    total, tests = np.zeros(shape), np.zeros(shape)
    np.add.at(total, at, passes / trials)
    np.add.at(tests, at, 1)
    return np.asarray(np.divide(total, tests, out=np.full(shape, np.nan), where=tests > 0))


def _cell(rate: float, x: float, y: float) -> str:
    if np.isnan(rate):
        return f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" fill="none" stroke="{NEUTRAL}"/>'
    ink = "off" if 0.2 < rate < 0.85 else "on"
    return (
        f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" fill="{_colour(rate)}"/>'
        f'<text x="{x + CELL / 2}" y="{y + CELL / 2 + 4}" class="middle {ink}">{rate:.2f}</text>'
    )


def _colour(rate: float) -> str:
    """The colour of the scale at a rate."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in SCALE], float)
    channels = [np.interp(rate, [stop for stop, _ in SCALE], stops[:, channel]) for channel in range(3)]
    return "#" + "".join(f"{round(float(channel)):02x}" for channel in channels)
