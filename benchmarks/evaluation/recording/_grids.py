"""Grids as they are committed, and put together from parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from replay import Grid

from testifai.support.bits import pack, unpack
from testifai.support.files import write_npz


def write(path: Path, grid: Grid) -> None:
    """The outcomes of a grid, and its scores where an oracle gave them; no margins, which are many times as large."""
    arrays = {"axes": np.array(grid.axes), "inputs": np.array(grid.inputs), "passes": grid.passes}
    if grid.scores is not None:
        arrays |= {"score": np.array(grid.score), "scores": grid.scores}
    write_npz(path, arrays)


def joined(grids: list[Grid]) -> Grid:
    """Grids of different inputs of the same tests as one, the inputs in this order.

    >>> one = Grid(("fade",), 2, np.array([[0b11000000], [0b01000000]], np.uint8))
    >>> joined([one, one]).truth.tolist()
    [1.0, 0.5]
    """
    first = grids[0]
    passes = np.concatenate([unpack(grid.passes, grid.inputs) for grid in grids], axis=-1)
    scores = [grid.scores for grid in grids if grid.scores is not None]
    together: NDArray[np.float32] | None = np.concatenate(scores, axis=-1) if scores else None
    return Grid(first.axes, passes.shape[-1], pack(passes), score=first.score, scores=together)
