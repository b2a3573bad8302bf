"""The region to be verified: a range of the parameter for each perturbation that is on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.perturb import Perturbation, get, names
from testifai.space import Axis, Selection, Space
from testifai.support.checks import number

Levels = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Range:
    """An axis, and the parameters from low to high that its perturbation takes."""

    axis: str
    perturbation: Perturbation
    low: float
    high: float

    @property
    def varies(self) -> bool:
        return self.low < self.high

    def __str__(self) -> str:
        limits = f"{self.low:g} to {self.high:g}" if self.varies else f"{self.low:g}"
        return f"{self.axis} ({self.perturbation.name}): {limits}"


@dataclass(frozen=True)
class Region:
    """The ranges of the axes that are on, in the order in which they are applied; those off are not in it."""

    ranges: tuple[Range, ...]

    @property
    def free(self) -> tuple[Range, ...]:
        """Those whose parameter is not fixed: the inputs of the graph, in order."""
        return tuple(one for one in self.ranges if one.varies)

    def __repr__(self) -> str:
        return f"<Region {'; '.join(map(str, self.ranges))}>"

    def points(self, count: int, seed: int = 0) -> NDArray[np.float32]:
        """Parameters drawn evenly from the region, a row each."""
        lows, highs = [one.low for one in self.free], [one.high for one in self.free]
        drawn = np.random.default_rng(seed).uniform(lows, highs, (count, len(self.free)))
        return drawn.astype(np.float32)


def region_of(space: Space, query: str | None = None, levels: Levels | None = None) -> Region:
    """The region of a query's severities, of parameters given by axis, or of both; axes that neither names are off.

    Args:
        space: its axes
        query: whose severities are a box; None: none
        levels: the range of an axis's parameter itself; None: none

    >>> space = Space({"bright": "deeptest.brightness", "contrast": "deeptest.contrast"})
    >>> print(*region_of(space, "bright <= 3 and contrast in {1, 2}").ranges, sep="; ")
    bright (deeptest.brightness): 0 to 60; contrast (deeptest.contrast): 1.2 to 1.6
    """
    if query is None and not levels:
        raise InputError("region: is empty; give a query such as 'brightness <= 3', or levels for an axis")
    if space.order_sensitive:
        raise InputError("region: in this space the order of perturbations is open; verify one without order_sensitive")
    given = dict(levels or {})
    for name in given:
        if name not in space.names:
            raise InputError(f"level: axis {name!r} is not in the space; {suggest(name, space.names)}")
    chosen = {axis.name: (0,) for axis in space.axes} if query is None else _severities(space, query)
    found = []
    for axis in space.axes:
        if axis.name in given:
            found.append(_of_levels(axis, given[axis.name]))
        elif chosen[axis.name] != (0,):
            found.append(_of_severities(axis, chosen[axis.name]))
    region = Region(tuple(found))
    if not region.free:
        raise InputError("region: is a single test, which a run measures; give at least one axis a range of severities")
    return region


def _severities(space: Space, query: str) -> dict[str, tuple[int, ...]]:
    """The severities of each axis that a query selects, which must be a box."""
    selection = Selection(space, query)
    chosen = {axis.name: tuple(selection.by(axis.name)) for axis in space.axes}
    whole = {axis.name: axis.severities for axis in space.axes}
    gaps = any(some != _between(whole[name], some) for name, some in chosen.items())
    if not selection.count:
        raise InputError(f"region: {query!r} selects no test")
    if gaps or selection.count != math.prod(map(len, chosen.values())):
        raise InputError(
            f"region: {query!r} is no box; give each axis a range of severities, joined by 'and', "
            "such as: brightness <= 3 and contrast <= 2"
        )
    return chosen


def _between(severities: tuple[int, ...], some: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(one for one in severities if some and some[0] <= one <= some[-1])


def _of_severities(axis: Axis, severities: tuple[int, ...]) -> Range:
    perturbation = _with_graph(axis)
    parameters = [float(perturbation.severities[severity]) for severity in severities]
    return Range(axis.name, perturbation, min(parameters), max(parameters))


def _of_levels(axis: Axis, limits: tuple[float, float]) -> Range:
    perturbation = _with_graph(axis)
    known = [float(one) for one in perturbation.severities]
    field = f"level: {axis.name}"
    low, high = (number(field, limit, least=min(known), most=max(known)) for limit in limits)
    if low > high:
        raise InputError(f"{field}: {low:g} to {high:g} is no range; the lower end comes first")
    return Range(axis.name, perturbation, low, high)


def _with_graph(axis: Axis) -> Perturbation:
    """The axis's perturbation, if it can be written down as a graph."""
    if axis.perturbation.smooth is None:
        able = ", ".join(name for name in names() if get(name).smooth is not None)
        raise InputError(
            f"region: {axis.name} ({axis.perturbation.name}) cannot be handed to a verifier; keep it off "
            f"({axis.name} == 0), or use one of {able}"
        )
    return axis.perturbation
