"""The region to be verified: a range of the parameter for each perturbation that is on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.perturb import Perturbation, get, names
from testifai.space import Selection, Space
from testifai.support.validation import number

Levels = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Range:
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
        return tuple(one for one in self.ranges if one.varies)

    def __repr__(self) -> str:
        return f"<Region {'; '.join(map(str, self.ranges))}>"

    def points(self, count: int, seed: int = 0) -> NDArray[np.float32]:
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
        if axis.name not in given and chosen[axis.name] == (0,):
            continue
        perturbation = axis.perturbation
        if perturbation.smooth is None:
            able = ", ".join(name for name in names() if get(name).smooth is not None)
            raise InputError(
                f"region: {axis.name} ({perturbation.name}) cannot be handed to a verifier; keep it off "
                f"({axis.name} == 0), or use one of {able}"
            )
        if axis.name in given:
            known = [float(one) for one in perturbation.severities]
            field = f"level: {axis.name}"
            low, high = (number(field, limit, least=min(known), most=max(known)) for limit in given[axis.name])
            if low > high:
                raise InputError(f"{field}: {low:g} to {high:g} is no range; the lower end comes first")
        else:
            parameters = [float(perturbation.severities[severity]) for severity in chosen[axis.name]]
            low, high = min(parameters), max(parameters)
        found.append(Range(axis.name, perturbation, low, high))
    region = Region(tuple(found))
    if not region.free:
        raise InputError("region: is a single test, which a run measures; give at least one axis a range of severities")
    return region


def _severities(space: Space, query: str) -> dict[str, tuple[int, ...]]:
    selection = Selection(space, query)
    chosen = {axis.name: tuple(selection.by(axis.name)) for axis in space.axes}
    if not selection.count:
        raise InputError(f"region: {query!r} selects no test")
    gaps = False
    for axis in space.axes:
        some = chosen[axis.name]
        gaps |= some != tuple(one for one in axis.severities if some[0] <= one <= some[-1])
    if gaps or selection.count != math.prod(map(len, chosen.values())):
        raise InputError(
            f"region: {query!r} is no box; give each axis a range of severities, joined by 'and', "
            "such as: brightness <= 3 and contrast <= 2"
        )
    return chosen


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
    inputs, outputs = len(ranges), classes
    x, y = [f"X_{place}" for place in range(inputs)], [f"Y_{place}" for place in range(outputs)]
    declared = [f"(declare-const {name} Real)" for name in (*x, *y)]
    if version != "1.0":
        x, y = [f"X[0,{place}]" for place in range(inputs)], [f"Y[0,{place}]" for place in range(outputs)]
        declared = [
            "(vnnlib-version <2.0>)",
            "(declare-network N",
            f"  (declare-input X float32 [1,{inputs}])",
            f"  (declare-output Y float32 [1,{outputs}])",
            ")",
        ]
    notes = [about, *(f"X_{place} = {one}" for place, one in enumerate(ranges))]
    notes.append(f"sat: some other class scores at least as much as class {label}")
    limits = []
    for name, one in zip(x, ranges, strict=True):
        # Without an exponent, which not every parser reads
        low, high = (np.format_float_positional(end, trim="0") for end in (one.low, one.high))
        limits += [f"(assert (>= {name} {low}))", f"(assert (<= {name} {high}))"]
    others = " ".join(f"(and (>= {name} {y[label]}))" for name in y if name != y[label])
    lines = [*(f"; {note}" for note in notes if note), *declared, *limits, f"(assert (or {others}))"]
    return "\n".join(lines) + "\n"
