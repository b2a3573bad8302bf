"""The property "the answer stays the label" over a box of parameters, as VNN-LIB text.

As verifiers want it, the property is negated: `sat` is a counterexample, `unsat` a proof. Version 1.0 is what verifiers
such as Marabou read; 2.0 is what the package vnnlib reads from its version 1.0 on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from testifai.errors import InputError, suggest
from testifai.verification.regions import Range

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
