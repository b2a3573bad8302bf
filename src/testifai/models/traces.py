"""Activation traces: what a layer said of each input, as one row of numbers each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError


def as_rows(activations: NDArray[Any], inputs: int, layer: str) -> NDArray[np.float32]:
    """One row per input. Feature maps (N, C, H, W) are averaged over their places, tokens (N, T, D) over the tokens.

    Averaging feature maps is what surprise adequacy does (Kim et al., ICSE 2019); a convolution would otherwise
    give tens of thousands of columns.

    >>> as_rows(np.array([[[[1.0, 3.0]], [[5.0, 5.0]]]]), 1, "conv").tolist()
    [[2.0, 5.0]]
    """
    if activations.ndim == 0 or len(activations) != inputs:
        raise InputError(
            f"layer: {layer!r} gives shape {activations.shape} for {inputs} inputs; one row each is needed"
        )
    if activations.dtype.kind not in "iuf":
        raise InputError(f"layer: {layer!r} gives {activations.dtype} values; a layer that gives numbers is needed")
    if activations.ndim > 3:
        activations = activations.mean(axis=tuple(range(2, activations.ndim)))
    elif activations.ndim == 3:
        activations = activations.mean(axis=1)
    elif activations.ndim == 1:
        activations = activations[:, None]
    rows: NDArray[np.float32] = activations.astype(np.float32, copy=False)
    if not np.isfinite(rows).all():
        raise InputError(f"layer: {layer!r} gives NaN or infinity; choose another layer")
    return rows
