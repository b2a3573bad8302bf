"""Sweeps as curves of accuracy over level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.image_io import write_picture
from testifai.present import theme
from testifai.present.figures.curves import band
from testifai.support.optional_imports import cv2
from testifai.support.types import RecordLike
from testifai.sweeps.result import Sweep

MOST_CROSSINGS = 4

Picture = NDArray[np.uint8]
Colour = tuple[int, int, int]

WIDTH, HEIGHT = 960, 600
LEFT, RIGHT, TOP, BOTTOM = 84, 28, 100, 70
# Drawn at twice the size and shrunk: OpenCV's letters and thin lines are rough otherwise.
FINE = 2
INK: Colour = (45, 45, 45)
FAINT: Colour = (228, 228, 228)
CURVE: Colour = (31, 104, 176)
BAND: Colour = (206, 224, 242)
THRESHOLD: Colour = (200, 60, 40)
UNCERTAIN: Colour = (252, 228, 180)


def draw(sweep: Sweep, path: str | PathLike[str]) -> None:
    """Draw a sweep into a .png or .jpg file."""
    write_picture(Path(path), lambda: compose(sweep), field="plot")


def compose(sweep: Sweep) -> Picture:
    """The picture as an RGB image."""
    sheet = _Sheet(sweep.span)
    for start, end in sweep.uncertain:
        sheet.shade(start, end)
    sheet.axes()
    if len(sweep.levels):
        sheet.band(sweep.levels, sweep.lows, sweep.highs)
        sheet.line(sweep.levels, sweep.accuracies, CURVE, 2)
    sheet.line(np.array(sweep.span), np.full(2, sweep.threshold), THRESHOLD, 2)
    sheet.dots(sweep.levels, sweep.accuracies)
    sheet.titles(*_titles(sweep), f"threshold {sweep.threshold:g}")
    return np.asarray(cv2.resize(sheet.image, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers from low to high, at most so many steps."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def _titles(sweep: Sweep) -> tuple[str, str]:
    bound = "" if math.isnan(sweep.bound) else f" +/- {100 * sweep.bound:.2f}"
    first = f"{sweep.name or 'accuracy'}: robustness {100 * sweep.robustness:.2f}{bound} %"
    spent = f", {sweep.inferences:,} inferences" if sweep.inferences else ""
    sure = f", {100 * sweep.confidence:g} % confidence" if sweep.confidence is not None else ""
    return first, f"{sweep.method}, {sweep.evaluations} levels{spent}{sure}"


class _Sheet:
    """A white sheet with two axes; levels may run downwards."""

    def __init__(self, span: tuple[float, float]) -> None:
        self.span = span
        self.image: Picture = np.full((HEIGHT * FINE, WIDTH * FINE, 3), 255, np.uint8)

    def x(self, level: float) -> int:
        share = (level - self.span[0]) / (self.span[1] - self.span[0])
        return round(FINE * (LEFT + share * (WIDTH - LEFT - RIGHT)))

    def y(self, accuracy: float) -> int:
        shown = min(1.0, max(0.0, accuracy))
        return round(FINE * (TOP + (1 - shown) * (HEIGHT - TOP - BOTTOM)))

    def shade(self, start: float, end: float) -> None:
        left, right = self.x(start), self.x(end)
        # A stretch narrower than a few pixels would not be seen.
        spare = max(0, 3 * FINE - (right - left)) // 2
        self.image[self.y(1) : self.y(0), left - spare : right + spare + 1] = UNCERTAIN

    def axes(self) -> None:
        for accuracy in ticks(0, 1, 5):
            self._stroke([(self.x(self.span[0]), self.y(accuracy)), (self.x(self.span[1]), self.y(accuracy))], FAINT, 1)
            self.text(f"{accuracy:g}", FINE * (LEFT - 10), self.y(accuracy) + 5 * FINE, anchor="right")
        for level in ticks(min(self.span), max(self.span)):
            self._stroke([(self.x(level), self.y(0)), (self.x(level), self.y(0) + 6 * FINE)], INK, 1)
            self.text(f"{level:g}", self.x(level), self.y(0) + 24 * FINE, anchor="middle")
        corners = [(self.span[0], 1), (self.span[0], 0), (self.span[1], 0)]
        self._stroke([(self.x(level), self.y(accuracy)) for level, accuracy in corners], INK, 1)
        self.text("level", (self.x(self.span[0]) + self.x(self.span[1])) // 2, FINE * (HEIGHT - 16), anchor="middle")
        self.text("accuracy", 16 * FINE, FINE * (TOP - 14))

    def band(self, levels: Any, lows: Any, highs: Any) -> None:
        edge = [*zip(levels, lows, strict=True), *reversed(list(zip(levels, highs, strict=True)))]
        outline = np.array([(self.x(level), self.y(accuracy)) for level, accuracy in edge], np.int32)
        plain = self.image.copy()
        cv2.fillPoly(plain, [outline], BAND, cv2.LINE_AA)
        # The shading below stays visible.
        self.image = np.minimum(self.image, plain)

    def line(self, levels: Any, accuracies: Any, colour: Colour, width: int) -> None:
        places = [(self.x(level), self.y(value)) for level, value in zip(levels, accuracies, strict=True)]
        self._stroke(places, colour, width)

    def dots(self, levels: Any, accuracies: Any) -> None:
        for level, accuracy in zip(levels, accuracies, strict=True):
            place = self.x(level), self.y(accuracy)
            cv2.circle(self.image, place, 5 * FINE, (255, 255, 255), -1, cv2.LINE_AA)
            cv2.circle(self.image, place, 4 * FINE, CURVE, -1, cv2.LINE_AA)

    def titles(self, first: str, second: str, threshold: str) -> None:
        self.text(first, 16 * FINE, 30 * FINE, scale=0.66)
        self.text(second, 16 * FINE, 52 * FINE)
        self.text(threshold, FINE * (WIDTH - RIGHT), 52 * FINE, colour=THRESHOLD, anchor="right")

    def text(
        self, text: str, x: int, y: int, *, scale: float = 0.5, colour: Colour = INK, anchor: str = "left"
    ) -> None:
        font, size = cv2.FONT_HERSHEY_SIMPLEX, scale * FINE
        width = cv2.getTextSize(text, font, size, FINE)[0][0]
        start = x - {"left": 0, "middle": width // 2, "right": width}[anchor]
        cv2.putText(self.image, text, (start, y), font, size, colour, FINE, cv2.LINE_AA)

    def _stroke(self, places: list[tuple[int, int]], colour: Colour, width: int) -> None:
        cv2.polylines(self.image, [np.array(places, np.int32)], False, colour, width * FINE, cv2.LINE_AA)


def sweep_curves(name: str, found: Sequence[RecordLike], *, dark: bool = False) -> theme.Figure:
    """The accuracy of one perturbation over its level, with the thresholds and the levels that are not settled."""
    one = max(found, key=lambda sweep: len(sweep["levels"]))  # the same levels serve all thresholds
    levels = one["levels"]
    accuracies, lows, highs = (_numbers(one[name]) for name in ("accuracies", "lows", "highs"))
    words = [
        f"level {level:.4g}<br>{theme.estimate_text(*numbers)}"
        for level, *numbers in zip(levels, accuracies, lows, highs, strict=True)
    ]
    colour, limit = theme.SERIES[:2]
    line = theme.line(levels, accuracies, words, colour, size=5, width=2, showlegend=False)
    shapes = []
    for sweep in found:
        threshold = sweep["threshold"]
        shapes.append(
            {
                "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": threshold, "y1": threshold,
                "line": {"color": limit, "width": 1.5, "dash": "dash"},
                "label": {"text": f"{threshold:g}", "textposition": "end", "font": {"color": limit}},
            }
        )  # fmt: skip
        shapes += [
            {
                "type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": start, "x1": end, "layer": "below",
                "fillcolor": theme.translucent(theme.SERIES[5], 0.35), "line": {"width": 0},
            }
            for start, end in sweep["uncertain"]
        ]  # fmt: skip
    return theme.figure(
        [band(levels, lows, highs, colour, name), line],
        theme.plain(name),
        "accuracy over the level; shaded: not settled",
        dark=dark,
        xaxis={"title": {"text": "level"}, "range": list(one["span"]), "zeroline": False},
        yaxis=theme.rate_axis("accuracy"),
        shapes=shapes,
    )


def sweep_text(found: RecordLike) -> str:
    """A sweep's result in words."""
    bound = "" if found["bound"] is None else f" ± {100 * found['bound']:.1f}"
    return (
        f"accuracy is at least {found['threshold']:g} on {100 * found['robustness']:.1f} %{bound} of the levels "
        f"({found['evaluations']:,} levels, {found['inferences']:,} inferences)"
    )


def crossed(levels: Sequence[float]) -> str:
    """The levels at which accuracy crosses the threshold.

    >>> crossed([0.25, 0.5]), crossed([])
    ('0.25, 0.5', 'never')
    """
    shown = ", ".join(f"{level:.4g}" for level in levels[:MOST_CROSSINGS])
    return shown + (" …" if len(levels) > MOST_CROSSINGS else "" if shown else "never")


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]
