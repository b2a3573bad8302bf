"""Configurations as places among the levels of their axes: which of the tests they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.space.numbering import rank_places, unrank_places
from testifai.surrogates.base import are_numbered
from testifai.surrogates.process.kernel import Prior

Ints = NDArray[np.intp]


class Numbers:
    """Finds tests by their places.

    >>> numbers = Numbers(np.array([[0, 0], [2, 1]]), sizes=(3, 2))
    >>> numbers(np.array([[2, 1], [1, 1], [0, 0]])).tolist()
    [1, -1, 0]
    """

    def __init__(self, places: Ints, sizes: Sequence[int], *, ordered: bool = False) -> None:
        self._sizes, self._sequences = tuple(sizes), math.factorial(len(sizes)) if ordered else 1
        self.size = math.prod(sizes) * self._sequences  # how many keys there may be
        strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        # Spaces beyond what a machine word counts need whole numbers without an end.
        whole = np.int64 if self.size < 2**63 else object
        self._strides = np.array(strides, whole)
        counts = range(len(sizes) + 1) if ordered else ()
        self._factorials = np.array([math.factorial(count) for count in counts], whole)
        keys = self.keys(places)
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]

    def __call__(self, places: Ints) -> Ints:
        """The tests that configurations are; -1 where they are none."""
        keys = self.keys(places)
        at = np.searchsorted(self._sorted, keys, side="right") - 1
        found: Ints = np.where(self._sorted[at] == keys, self._order[at], -1)
        return found

    def keys(self, places: Ints) -> NDArray[np.generic]:
        """Where configurations stand among all of the grid, the last axis running fastest; then by their sequences."""
        axes = len(self._sizes)
        keys: NDArray[np.generic] = places[:, :axes].astype(self._strides.dtype) @ self._strides
        if self._sequences == 1:
            return keys
        return np.asarray(keys * self._sequences + rank_places(places[:, axes:].T, self._factorials))

    def places(self, keys: Ints) -> Ints:
        """The configurations with these keys."""
        found = np.array(np.unravel_index(keys // self._sequences, self._sizes), np.intp)
        if self._sequences > 1:
            sequences = unrank_places(keys % self._sequences, found > 0, self._factorials)
            found = np.concatenate([found, sequences]).astype(np.intp)
        return found.T


def severities(features: ArrayLike) -> NDArray[np.int64]:
    """Rows of severities, or an InputError."""
    rows = np.asarray(features)
    if rows.ndim != 2 or rows.shape[1] == 0 or rows.dtype.kind not in "iu":
        raise InputError(f"features: {rows.dtype} of shape {rows.shape}; accepted: a row of severities each")
    return rows.astype(np.int64)


def known_places(prior: Prior, rows: NDArray[np.int64]) -> Ints:
    """Severities as places among the levels of their axes, or an InputError where there is no such level."""
    levels = prior.levels
    if rows.shape[1] != prior.width:
        raise InputError(f"features: {rows.shape[1]} severities to a row; accepted: {prior.width}")
    if prior.ordered and not are_numbered(rows):
        raise InputError("features: the places of some rows do not number the axes that are on; accepted: 1, 2, …")
    places = prior.places(rows)
    if (places < 0).any():
        i, j = np.argwhere(places < 0)[0]
        raise InputError(
            f"features: severity {rows[i, j]} on axis {j}; accepted: {', '.join(map(str, levels[j].tolist()))}"
        )
    return places
