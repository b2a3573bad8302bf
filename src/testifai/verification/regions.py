"""The region to be verified: a range of the parameter for each perturbation that is on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.perturb import Perturbation, get, names
from testifai.space import Axis, Selection, Space
from testifai.support.validation import number

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


VERSIONS = ("1.0", "2.0")


def property_text(ranges: Sequence[Range], label: int, classes: int, *, version: str = "1.0", about: str = "") -> str:
    """One input for each range, one output for each class; a counterexample scores another class at least as high.

    Args:
        ranges: one input for each
        label: the right class
        classes: how many there are
        version: of VNN-LIB
        about: a comment for its first lines

    >>> from testifai.perturb import get
    >>> print(property_text([Range("light", get("deeptest.brightness"), 0.0, 20.0)], 0, 2))
    ; X_0 = light (deeptest.brightness): 0 to 20
    ; sat: some other class scores at least as much as class 0
    (declare-const X_0 Real)
    (declare-const Y_0 Real)
    (declare-const Y_1 Real)
    (assert (>= X_0 0.0))
    (assert (<= X_0 20.0))
    (assert (or (and (>= Y_1 Y_0))))
    <BLANKLINE>
    """
    if version not in VERSIONS:
        raise InputError(f"version: {version!r} is not known; {suggest(version, VERSIONS)}")
    first = version == "1.0"
    x = _names("X", first)
    y = _names("Y", first)
    notes = [about, *(f"X_{place} = {one}" for place, one in enumerate(ranges))]
    notes.append(f"sat: some other class scores at least as much as class {label}")
    declared = _declared(len(ranges), classes) if first else _network(len(ranges), classes)
    limits = []
    for place, one in enumerate(ranges):
        limits += [f"(assert (>= {x(place)} {_decimal(one.low)}))", f"(assert (<= {x(place)} {_decimal(one.high)}))"]
    others = " ".join(f"(and (>= {y(other)} {y(label)}))" for other in range(classes) if other != label)
    lines = [*(f"; {note}" for note in notes if note), *declared, *limits, f"(assert (or {others}))"]
    return "\n".join(lines) + "\n"


def _names(letter: str, first: bool) -> Callable[[int], str]:
    return lambda place: f"{letter}_{place}" if first else f"{letter}[0,{place}]"


def _declared(inputs: int, outputs: int) -> list[str]:
    named = [*(f"X_{place}" for place in range(inputs)), *(f"Y_{place}" for place in range(outputs))]
    return [f"(declare-const {name} Real)" for name in named]


def _network(inputs: int, outputs: int) -> list[str]:
    return [
        "(vnnlib-version <2.0>)",
        "(declare-network N",
        f"  (declare-input X float32 [1,{inputs}])",
        f"  (declare-output Y float32 [1,{outputs}])",
        ")",
    ]


def _decimal(value: float) -> str:
    """Without an exponent, which not every parser reads."""
    return np.format_float_positional(value, trim="0")
