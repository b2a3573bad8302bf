"""Draw a three-axis run as heat maps in one SVG file: a panel per severity of the last axis.

python examples/tools/draw_heatmaps.py RUN.db picture.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

import testifai as ta

CELL, GAP, LEFT, TOP = 40, 26, 62, 64
# Dark purple, green, yellow: lightness grows with robustness, so the picture also reads in grey.
COLOURS = [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)]


def colour(rate: float) -> tuple[int, int, int]:
    """A rate from 0 to 1 on the colour scale."""
    place = min(max(rate, 0.0), 1.0) * (len(COLOURS) - 1)
    lower = min(int(place), len(COLOURS) - 2)
    share = place - lower
    return tuple(round(a + share * (b - a)) for a, b in zip(COLOURS[lower], COLOURS[lower + 1], strict=True))


def draw(tomogram: ta.Tomogram) -> str:
    """The picture as SVG text."""
    rows, columns, panels = tomogram.space.axes
    width = LEFT + len(panels.severities) * (len(columns.severities) * CELL + GAP)
    height = TOP + len(rows.severities) * CELL + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        'font-family="sans-serif" font-size="12" text-anchor="middle">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" text-anchor="start" font-size="15">Robustness by {rows.name} (down), {columns.name} '
        f"(across) and {panels.name} (panels); a dot marks what was predicted, all else was measured</text>",
    ]
    for p, panel in enumerate(panels.severities):
        x0 = LEFT + p * (len(columns.severities) * CELL + GAP)
        middle = x0 + len(columns.severities) * CELL / 2
        parts.append(f'<text x="{middle}" y="{TOP - 26}" font-weight="bold">{panels.name} {panel}</text>')
        for c, level in enumerate(columns.severities):
            parts.append(f'<text x="{x0 + (c + 0.5) * CELL}" y="{TOP - 8}" fill="#555">{level}</text>')
        for r, _ in enumerate(rows.severities):
            for c, _ in enumerate(columns.severities):
                rate = float(tomogram.estimate[r, c, p])
                x, y = x0 + c * CELL, TOP + r * CELL
                ink = "#000" if rate > 0.55 else "#fff"
                fill = "rgb({},{},{})".format(*colour(rate))
                parts.append(f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="{fill}"/>')
                text = f"{rate:.2f}".lstrip("0") if rate < 1 else "1"
                parts.append(f'<text x="{x + CELL / 2}" y="{y + CELL / 2 + 4}" fill="{ink}">{text}</text>')
                if tomogram.trials[r, c, p] == 0:
                    parts.append(f'<circle cx="{x + CELL - 7}" cy="{y + 6}" r="2.5" fill="{ink}"/>')
    for r, level in enumerate(rows.severities):
        parts.append(f'<text x="{LEFT - 12}" y="{TOP + (r + 0.5) * CELL + 4}" fill="#555">{level}</text>')
    middle = TOP + len(rows.severities) * CELL / 2
    parts.append(f'<text transform="translate(18,{middle}) rotate(-90)" font-weight="bold">{rows.name}</text>')
    label = TOP + len(rows.severities) * CELL + 22
    parts.append(
        f'<text x="{LEFT}" y="{label}" text-anchor="start" fill="#555">{columns.name} runs from left to right in every '
        f"panel. {tomogram.inferences:,} inferences; clean accuracy {tomogram.base:.3f}.</text>"
    )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(draw(ta.open(sys.argv[1])), encoding="utf-8")
