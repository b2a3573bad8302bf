"""Sweeps as curves of accuracy over level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    """The picture as an RGB image; levels may run downwards."""
    image: Picture = np.full((HEIGHT * FINE, WIDTH * FINE, 3), 255, np.uint8)
    first, last = sweep.span

    def points(levels: ArrayLike, accuracies: ArrayLike) -> NDArray[np.int32]:
        x = LEFT + (np.asarray(levels) - first) / (last - first) * (WIDTH - LEFT - RIGHT)
        y = TOP + (1 - np.clip(np.nan_to_num(accuracies), 0, 1)) * (HEIGHT - TOP - BOTTOM)
        return np.asarray(np.rint(FINE * np.stack(np.broadcast_arrays(x, y), axis=-1)), np.int32)

    def line(places: NDArray[np.int32], colour: Colour, width: int) -> None:
        cv2.polylines(image, [places], False, colour, width * FINE, cv2.LINE_AA)

    def text(text: str, x: int, y: int, *, scale: float = 0.5, colour: Colour = INK, anchor: float = 0) -> None:
        font, size = cv2.FONT_HERSHEY_SIMPLEX, scale * FINE
        width = cv2.getTextSize(text, font, size, FINE)[0][0]
        cv2.putText(image, text, (int(x - width * anchor // 1), y), font, size, colour, FINE, cv2.LINE_AA)

    for start, end in sweep.uncertain:
        (left, top), (right, bottom) = points([start, end], [1, 0]).tolist()
        spare = max(0, 3 * FINE - (right - left)) // 2  # a stretch narrower than a few pixels would not be seen
        image[top:bottom, left - spare : right + spare + 1] = UNCERTAIN
    for accuracy in ticks(0, 1, 5):
        grid = points([first, last], accuracy)
        line(grid, FAINT, 1)
        text(f"{accuracy:g}", FINE * (LEFT - 10), int(grid[0, 1]) + 5 * FINE, anchor=1)
    for level in ticks(min(sweep.span), max(sweep.span)):
        mark = points([level, level], 0)
        mark[1, 1] += 6 * FINE
        line(mark, INK, 1)
        text(f"{level:g}", int(mark[0, 0]), int(mark[0, 1]) + 24 * FINE, anchor=0.5)
    corners = points([first, first, last], [1, 0, 0])
    line(corners, INK, 1)
    text("level", int(corners[1:, 0].sum()) // 2, FINE * (HEIGHT - 16), anchor=0.5)
    text("accuracy", 16 * FINE, FINE * (TOP - 14))
    if len(sweep.levels):
        outline = np.concatenate([points(sweep.levels, sweep.lows), points(sweep.levels, sweep.highs)[::-1]])
        shaded = image.copy()
        cv2.fillPoly(shaded, [outline], BAND, cv2.LINE_AA)
        np.minimum(image, shaded, out=image)  # the shading below stays visible
        line(points(sweep.levels, sweep.accuracies), CURVE, 2)
    line(points(sweep.span, sweep.threshold), THRESHOLD, 2)
    for place in points(sweep.levels, sweep.accuracies).tolist():
        cv2.circle(image, place, 5 * FINE, (255, 255, 255), -1, cv2.LINE_AA)
        cv2.circle(image, place, 4 * FINE, CURVE, -1, cv2.LINE_AA)
    bound = "" if math.isnan(sweep.bound) else f" +/- {100 * sweep.bound:.2f}"
    spent = f", {sweep.inferences:,} inferences" if sweep.inferences else ""
    sure = f", {100 * sweep.confidence:g} % confidence" if sweep.confidence is not None else ""
    title = f"{sweep.name or 'accuracy'}: robustness {100 * sweep.robustness:.2f}{bound} %"
    text(title, 16 * FINE, 30 * FINE, scale=0.66)
    text(f"{sweep.method}, {sweep.evaluations} levels{spent}{sure}", 16 * FINE, 52 * FINE)
    text(f"threshold {sweep.threshold:g}", FINE * (WIDTH - RIGHT), 52 * FINE, colour=THRESHOLD, anchor=1)
    return np.asarray(cv2.resize(image, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers from low to high, with at most `most` steps."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def sweep_curves(name: str, found: Sequence[RecordLike], *, dark: bool = False) -> theme.Figure:
    """The accuracy of one perturbation over its level, with the thresholds and the levels that are not settled."""
    one = max(found, key=lambda sweep: len(sweep["levels"]))  # the same levels serve all thresholds
    levels = one["levels"]
    accuracies, lows, highs = (np.array(one[key], float).tolist() for key in ("accuracies", "lows", "highs"))
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
    """The levels at which accuracy crosses the threshold."""
    shown = ", ".join(f"{level:.4g}" for level in levels[:MOST_CROSSINGS])
    return shown + (" …" if len(levels) > MOST_CROSSINGS else "" if shown else "never")
