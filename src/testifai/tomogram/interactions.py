"""Independence of the perturbations of a run, pair by pair, and the result in words; effects of their order."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from testifai.errors import InputError
from testifai.space.query import before
from testifai.statistics import independence
from testifai.statistics.independence import DRAWS, FEWEST_TRIALS, PairTests, Rows, examine, find_designs, warnings
from testifai.statistics.multiplicity import confidence_each
from testifai.support.bits import unpack
from testifai.support.types import Bools
from testifai.tomogram.answers import Answer, PlainRecord
from testifai.tomogram.tomogram import Tomogram


def analyse(tomogram: Tomogram, seed: int = 0, draws: int = DRAWS) -> PairTests:
    """Test every pair of axes of a run for independence, on the inputs that all tests of the pair tried."""
    if not draws >= independence.FEWEST_DRAWS:
        raise InputError(f"draws: {draws!r}; accepted: at least {independence.FEWEST_DRAWS}")
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
    return examine(designs, space.names, fetch, outcomes.inputs, seed=seed, draws=draws)


def lines(result: PairTests) -> list[str]:
    return [*_matrix_lines(result), "", *_pair_lines(result), "", *_explanation(result), *warnings(result)]


def _matrix_lines(result: PairTests) -> list[str]:
    width = max(7, *map(len, result.axes))
    effects, dependent = result.matrix(), result.matrix("dependent")
    shown = ["Mean departure of measured from product, * where dependent:"]
    shown.append(" ".join([" " * width, *(f"{name:>{width}}" for name in result.axes)]))
    for i, name in enumerate(result.axes):
        marks = ["*" if dependent[i, j] else " " * (not math.isnan(effects[i, j])) for j in range(len(result.axes))]
        cells = [_shown(effect, ".3f") + mark for effect, mark in zip(effects[i].tolist(), marks, strict=True)]
        cells[i] = "·"
        shown.append(" ".join([f"{name:<{width}}", *(f"{cell:>{width}}" for cell in cells)]).rstrip())
    return shown


# Title, width, field of `Pair` and format of each column.
COLUMNS = (
    *(("tests", 5, "tests", ""), ("inputs", 7, "inputs", ","), ("statistic", 9, "statistic", ".1f")),
    *(("p", 6, "p_adjusted", ".4f"), ("mean", 6, "mean_effect", ".3f"), ("largest", 7, "largest_effect", "+.3f")),
    *(("chi-square", 10, "chi2", ".1f"), ("expected", 8, "chi2_expected", ".1f"), ("valid", 5, "valid", "")),
    ("p (Holm)", 8, "p_published_holm", ".4f"),
)


def _pair_lines(result: PairTests) -> list[str]:
    labels = [" × ".join(pair.axes) for pair in result.pairs]
    width = max(4, *map(len, labels))
    shown = [" ".join([f"{'pair':<{width}}", *(f"{title:>{size}}" for title, size, _, _ in COLUMNS)])]
    for label, pair in zip(labels, result.pairs, strict=True):
        cells = (f"{_shown(getattr(pair, field), style):>{size}}" for _, size, field, style in COLUMNS)
        shown.append(" ".join([f"{label:<{width}}", *cells]))
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
        few = independence.FEWEST_SHARED
        shown.append(f"Fewer than {few} inputs were tried by all tests of some pair; it counts all inputs.")
    return shown


def _shown(value: float, style: str) -> str:
    return "–" if math.isnan(value) else format(value, style)


MOST_PAIRS = 15  # pairs of axes, with two queries each


@dataclass(frozen=True)
class Precedence(PlainRecord):
    """Two perturbations whose rate is higher if the first one is applied first."""

    first: str
    second: str
    before: Answer
    after: Answer

    @property
    def difference(self) -> float:
        return self.before.robustness - self.after.robustness


def precedences(tomogram: Tomogram) -> list[Precedence] | None:
    """Return the pairs whose order makes a difference beyond the noise, the largest first; None if not tested.

    At most 5 % of the runs in which no order matters have any such pair: the intervals are valid together, and the
    errors of the two answers count as independent.
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
