"""The voxel view of a region (TestifAI, Figure 5): a cube for each test, larger the more of it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.present import theme
from testifai.present.figures import heatmaps
from testifai.present.figures.heatmaps import SOURCES, Projection, others_text, project
from testifai.support.types import Record
from testifai.tomogram import Tomogram
from testifai.tomogram.lowest_tests import Mask

SIDE = {heatmaps.MEASURED: 0.74, heatmaps.PART: 0.58, heatmaps.PREDICTED: 0.38}  # of a cube, as a share of a cell

CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
# Two triangles for each of the six faces, as places of `CORNERS`.
TRIANGLES = np.array(
    [
        *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)),
        *((2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
    ]
)


def voxels(
    tomogram: Tomogram,
    axes: Sequence[str] | None = None,
    *,
    at: Mapping[str, int] | None = None,
    chosen: Mask | None = None,
    dark: bool = False,
) -> theme.Figure:
    """Robustness over three axes, the first three by default; other axes are fixed by `at` or averaged over.

    Tests that are not `chosen` are dots. `customdata` of a corner is the id of its cell's first test.
    """
    names = tuple(tomogram.space.names[:3] if axes is None else axes)
    if len(names) != 3 or len(set(names)) != 3:
        raise InputError(f"axes: a voxel view needs three different axes, got {', '.join(names) or 'none'}")
    seen = project(tomogram, names, at=at, chosen=chosen)
    cells = np.argwhere((seen.tests > 0) & (seen.source != heatmaps.UNKNOWN))
    kinds = seen.source[tuple(cells.T)]
    groups = {kind: cells[kinds == kind] for kind in SIDE}
    traces = [_cubes(seen, group, kind) for kind, group in groups.items() if len(group)]
    rest = np.argwhere((seen.tests == 0) | (seen.source == heatmaps.UNKNOWN))
    if len(rest):
        x, y, z = rest.T
        marker = {"size": 2, "color": theme.NEUTRAL, "opacity": 0.6}
        traces.append(
            {"type": "scatter3d", "name": "not selected", "mode": "markers", "x": x, "y": y, "z": z, "marker": marker,
             "hoverinfo": "skip"}
        )  # fmt: skip
    sides = {
        f"{side}axis": {
            "title": {"text": name}, "tickvals": list(range(len(levels))), "ticktext": list(map(str, levels)),
            "range": [-0.7, len(levels) - 0.3],
        }
        for side, name, levels in zip("xyz", names, seen.levels, strict=True)
    }  # fmt: skip
    camera = {"eye": {"x": 1.4, "y": -1.5, "z": 0.8}, "center": {"x": 0, "y": 0, "z": -0.14}}
    return theme.figure(
        traces,
        f"{theme.plain(tomogram.settings.quantity)} over {', '.join(names)}",
        others_text(tomogram.space, names, at, whole=chosen is None),
        dark=dark,
        scene={**sides, "aspectmode": "cube", "camera": camera},
        coloraxis=theme.robustness_colours(tomogram.settings.quantity),
        legend={"orientation": "h", "y": -0.02, "itemsizing": "constant"},
        margin={"l": 0, "r": 0, "t": 70, "b": 0},
    )


def _cubes(seen: Projection, cells: NDArray[np.intp], kind: int) -> Record:
    corners = (cells[:, None, :] + SIDE[kind] * CORNERS).astype(np.float32)  # cubes × 8 × 3
    x, y, z = corners.reshape(-1, 3).T
    triangles = (8 * np.arange(len(cells))[:, None, None] + TRIANGLES).reshape(-1, 3)
    places = tuple(cells.T)
    words = [seen.describe(tuple(cell)) for cell in cells.tolist()]
    return {
        "type": "mesh3d", "name": SOURCES[kind], "x": x, "y": y, "z": z,
        **dict(zip("ijk", triangles.T.astype(np.int32), strict=True)),
        # By corner, not by face: what the mouse is over is then told by corner too, as `text` and `customdata` are.
        "intensity": np.repeat(seen.estimate[places].astype(np.float32), len(CORNERS)),
        "coloraxis": "coloraxis",
        "customdata": np.repeat(seen.first[places], len(CORNERS)),
        "text": np.repeat(words, len(CORNERS)).tolist(),
        "hoverinfo": "text",
        "flatshading": True,
        "lighting": {"ambient": 0.62, "diffuse": 0.55, "specular": 0.02, "roughness": 0.9, "fresnel": 0.0},
        "lightposition": {"x": 3000, "y": 1000, "z": 6000},
        "showlegend": True,
    }  # fmt: skip
