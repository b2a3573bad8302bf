"""Which perturbations of a run act independently, pair by pair, and the same in words."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from testifai.errors import InputError
from testifai.space.query import before
from testifai.statistics.independence import (  # fmt: skip
    DRAWS,
    FEWEST_DRAWS,
    FEWEST_SHARED,
    FEWEST_TRIALS,
    Pair,
    PairTests,
    Rows,
    examine,
    find_designs,
    warnings,
)
from testifai.statistics.multiplicity import confidence_each
from testifai.support.bits import unpack
from testifai.support.types import Bools, Record
from testifai.tomogram.answers import Answer
from testifai.tomogram.tomogram import Tomogram

__all__ = ["Pair", "PairTests", "analyse", "lines", "warnings"]


def analyse(
    tomogram: Tomogram, seed: int = 0, draws: int = DRAWS, *, alpha: float = 0.05, plain: bool = False
) -> PairTests:
    """Test every pair of axes of a run for independence, on the inputs that all tests of the pair tried.

    >>> from testifai import Perturbation, Space
    >>> from testifai.runs.outcomes import Outcomes
    >>> from testifai.tomogram import Tomogram
    >>> keep = Perturbation("keep", lambda batch, parameter, rng: batch, (0, 1))
    >>> outcomes, place = Outcomes(400), np.arange(400)
    >>> for test, passed in enumerate([place >= 0, place >= 100, place % 4 > 0, place >= 300]):
    ...     outcomes.record(test, place, passed)
    >>> result = analyse(Tomogram(Space({"fade": keep, "blur": keep}), outcomes, place))
    >>> print(warnings(result)[0])  # doctest: +ELLIPSIS
    Products will mislead about fade × blur: off by 0.312 on average, optimistic by 0.312 at fade 1 with blur 1 (...
    """
    if not draws >= FEWEST_DRAWS:
        raise InputError(f"draws: {draws!r}; accepted: at least {FEWEST_DRAWS}")
    space, outcomes = tomogram.space, tomogram.outcomes
    if space.order_sensitive:
        raise InputError("independence: this space knows application orders; accepted: spaces without order_sensitive")
    if len(space.axes) < 2:
        raise InputError(f"independence: one axis, {space.names[0]}; accepted: spaces of at least two")
    ids = tomogram.estimator.measured_ids
    _, trials = outcomes.counts(ids)
    ids = ids[trials >= FEWEST_TRIALS]

    def fetch(tests: Rows) -> tuple[Bools, Bools]:
        bits = [outcomes.bits(int(ids[test])) for test in tests]
        tried, passed = (unpack(np.stack(rows), outcomes.inputs) for rows in zip(*bits, strict=True))
        return tried.T, passed.T

    matrix = space.matrix(ids)
    designs = list(find_designs(matrix))
    if not any(design.tests for design in designs):
        clean = "its clean test was not measured" if not (matrix == 0).all(axis=1).any() else "no pair can be tested"
        raise InputError(
            f"independence: {clean} on at least {FEWEST_TRIALS} inputs; accepted: runs with the clean test and "
            "first- and second-order tests, such as strategy 'ordered' or 'full'"
        )
    return examine(designs, space.names, fetch, outcomes.inputs, seed=seed, draws=draws, alpha=alpha, plain=plain)


def lines(result: PairTests) -> list[str]:
    """The result for people: the matrix, a line per pair, and in plain words whether products will mislead."""
    return [*_matrix_lines(result), "", *_pair_lines(result), "", *_explanation(result), *warnings(result)]


def _matrix_lines(result: PairTests) -> list[str]:
    width = max(7, *map(len, result.axes))
    effects, dependent = result.matrix(), result.matrix("dependent")
    shown = ["Mean departure of measured from product, * where dependent:"]
    shown.append(" ".join([" " * width, *(f"{name:>{width}}" for name in result.axes)]))
    for i, name in enumerate(result.axes):
        cells = [
            "·"
            if i == j
            else "–"
            if math.isnan(effects[i, j])
            else f"{effects[i, j]:.3f}" + ("*" if dependent[i, j] else " ")
            for j in range(len(result.axes))
        ]
        shown.append(" ".join([f"{name:<{width}}", *(f"{cell:>{width}}" for cell in cells)]).rstrip())
    return shown


def _pair_lines(result: PairTests) -> list[str]:
    labels = [" × ".join(pair.axes) for pair in result.pairs]
    width = max(4, *map(len, labels))
    shown = [f"{'pair':<{width}} {'tests':>5} {'inputs':>7} {'statistic':>9} {'p':>6} {'mean':>6} {'largest':>7}"
             f" {'chi-square':>10} {'expected':>8} {'valid':>5} {'p (Holm)':>8}"]  # fmt: skip
    for label, pair in zip(labels, result.pairs, strict=True):
        decided = f"{_shown(pair.statistic, '.1f'):>9} {_shown(pair.p_adjusted, '.4f'):>6}"
        effects = f"{_shown(pair.mean_effect, '.3f'):>6} {_shown(pair.largest_effect, '+.3f'):>7}"
        published = f"{_shown(pair.chi2, '.1f'):>10} {_shown(pair.chi2_expected, '.1f'):>8} {pair.valid:>5}"
        holm_p = f"{_shown(pair.p_published_holm, '.4f'):>8}"
        shown.append(f"{label:<{width}} {pair.tests:>5} {pair.inputs:>7,} {decided} {effects} {published} {holm_p}")
    return shown


def _explanation(result: PairTests) -> list[str]:
    tested = [pair for pair in result.pairs if pair.tests]
    short, total = sum(pair.tests - pair.valid for pair in tested), sum(pair.tests for pair in tested)
    shown = [
        f"p: bootstrap over inputs, {result.draws} draws, corrected for {len(tested)} pairs; it decides, at "
        f"{result.alpha:g}. Groups: {'; '.join(', '.join(group) for group in result.groups)}.",
        "chi-square, p (Holm): as published, for fresh inputs in every test and known first-order rates; if that held, "
        "it would average the number of valid tests under independence, not what stands under 'expected'.",
    ]
    if short:
        shown.append(f"{short} of {total} tests fall short of the chi-square's condition on N and are not in it.")
    if not all(pair.shared for pair in tested):
        shown.append(f"Fewer than {FEWEST_SHARED} inputs were tried by all tests of some pair; it counts all inputs.")
    return shown


def _shown(value: float, style: str) -> str:
    return "–" if math.isnan(value) else format(value, style)


MOST_PAIRS = 15  # of axes, each asked about twice


@dataclass(frozen=True)
class Precedence:
    """Two perturbations over all tests that have both: the rate is higher with the first applied before the second."""

    first: str
    second: str
    before: Answer
    after: Answer

    @property
    def difference(self) -> float:
        return self.before.robustness - self.after.robustness

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        answers = {"before": self.before.as_dict(), "after": self.after.as_dict()}
        return {"first": self.first, "second": self.second, **answers}


def precedences(tomogram: Tomogram) -> list[Precedence] | None:
    """The pairs whose order makes a difference beyond the noise, the largest first; None where that was not asked.

    It is not in a plain space, in one too large to list, where there are many pairs, and where answers have no
    interval. At most 5 % of the runs in which no order matters have any: the intervals hold together, and the errors of
    the two answers, of which a part is the same, count as if they were independent.
    """
    pairs = list(itertools.combinations(tomogram.space.sequenced, 2))
    if not tomogram.space.listed or not 0 < len(pairs) <= MOST_PAIRS:
        return None
    confidence = confidence_each(len(pairs))
    found = []
    for pair in pairs:
        asked = [(tomogram.query(before(a, b), confidence=confidence), a, b) for a, b in (pair, pair[::-1])]
        (worse, second, first), (better, _, _) = sorted(asked, key=lambda one: one[0].robustness)
        apart = better.robustness - worse.robustness
        noise = math.hypot(better.robustness - better.low, worse.high - worse.robustness)
        if math.isnan(noise):
            return None
        if apart > noise:
            found.append(Precedence(first, second, better, worse))
    return sorted(found, key=lambda one: -one.difference)
