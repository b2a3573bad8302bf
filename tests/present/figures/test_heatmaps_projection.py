"""Projections against loops over all tests."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.present.figures.heatmaps import MEASURED, PART, PREDICTED, UNKNOWN, project, sources
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.tomogram import Tomogram


def brute(tomogram, axes, at, chosen):
    """Mean estimate and number of tests of each cell, one test after the other."""
    space = tomogram.space
    cells = {}
    for test in range(space.size):
        sigma = dict(zip(space.names, space.configuration(test), strict=False))
        if chosen[test] and all(sigma[name] == severity for name, severity in at.items()):
            cells.setdefault(tuple(sigma[name] for name in axes), []).append(tomogram.estimate.reshape(-1)[test])
    return cells


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_against_brute_force(full, partial, data):
    tomogram = data.draw(st.sampled_from([full, partial]))
    names = tomogram.space.names
    axes = data.draw(st.permutations(names).map(lambda order: order[: data.draw(st.integers(1, 3))]))
    at = {name: data.draw(st.sampled_from(tomogram.space.axes[0].severities)) for name in names if name not in axes}
    at = {name: severity for name, severity in at.items() if data.draw(st.booleans())}
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=tomogram.space.size, max_size=tomogram.space.size)))
    seen = project(tomogram, axes, at=at, chosen=chosen)
    expected = brute(tomogram, axes, at, chosen)
    for cell in itertools.product(*(range(len(levels)) for levels in seen.levels)):
        found = expected.get(tuple(levels[place] for levels, place in zip(seen.levels, cell, strict=True)), [])
        assert seen.tests[cell] == len(found)
        if found:
            assert seen.estimate[cell] == pytest.approx(np.mean(found))
            assert chosen[seen.first[cell]]
        else:
            assert np.isnan(seen.estimate[cell])
            assert seen.first[cell] == -1


def test_where_estimates_come_from(partial):
    seen = project(partial, ("a", "b"))
    assert seen.source[0, 0] == MEASURED  # no test of order 3 among its own
    assert seen.source[1, 1] == PART
    assert project(partial, ("a", "b"), at={"c": 1}).source[1, 1] == PREDICTED
    kinds = sources(partial.estimator.table(np.arange(partial.space.size)))
    assert np.array_equal(kinds == MEASURED, partial.trials.reshape(-1) > 0)


def test_without_a_surrogate_what_was_not_measured_is_unknown(tomogram):
    found = tomogram(3, max_order=2, surrogate=None)
    assert project(found, ("a", "b"), at={"c": 2}).source[1, 1] == UNKNOWN
    assert "unknown" in project(found, ("a", "b"), at={"c": 2}).describe((1, 1))


def test_order_sensitive_space():
    fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2))
    space, outcomes = Space({"a": fade, "b": fade}, order_sensitive=True), Outcomes(10)
    for test in range(space.size):
        outcomes.record(test, np.arange(10), np.arange(10) >= test % 5)
    seen = project(Tomogram(space, outcomes, np.arange(10)), ("a", "b"))
    assert seen.tests.tolist() == [[1, 1, 1], [1, 2, 2], [1, 2, 2]]  # two orders of application where both act
    rates = {space.configuration(test)[:2]: [] for test in range(space.size)}
    for test in range(space.size):
        rates[space.configuration(test)[:2]].append(1 - (test % 5) / 10)
    assert all(seen.estimate[sigma] == pytest.approx(np.mean(found)) for sigma, found in rates.items())


@pytest.mark.parametrize(
    ("axes", "at", "message"),
    [
        (("a", "zoom"), {}, "'zoom' is not an axis"),
        (("a",), {"b": 2}, "accepted: 0, 1, 3, 5"),
        (("a",), {"z": 0}, "'z'"),
    ],
)
def test_mistakes(partial, axes, at, message):
    with pytest.raises(InputError, match=message):
        project(partial, axes, at=at)
