"""Answers over spaces with more tests than are listed, against the truth over every test."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.present.export import write_grid
from testifai.present.figures.heatmaps import others_text
from testifai.runs.outcomes import Outcomes
from testifai.space import LISTED, Selection, Space
from testifai.space import query as queries
from testifai.surrogates import Surrogate
from testifai.tomogram import EstimatorSettings, Tomogram, region_estimator
from testifai.tomogram.comparison import compare
from testifai.tomogram.limits import limits
from testifai.tomogram.region_estimator import DRAWN, DRAWN_EACH, RegionEstimator, TestSample
from testifai.tomogram.regions import standard_queries, worst_regions

LADDER = Perturbation("ladder", lambda batch, parameter, rng: batch, tuple(range(6)))
AXES = 8


def truth(rows):
    """Rates that fall with every axis, and by far more where the first two are high together."""
    rows = np.asarray(rows)[:, :AXES].astype(float)
    return 0.95 - 0.015 * rows @ np.linspace(0.5, 1.5, rows.shape[1]) - 0.3 * ((rows[:, 0] > 3) & (rows[:, 1] > 3))


class Knowing(Surrogate):
    """Predicts the truth, with an error of a known size."""

    name = "knowing"

    def __init__(self, spread=0.0, seconds=0.0):
        self.spread, self.seconds = spread, seconds

    def fit(self, features, passes, trials, *, single=None):
        return self

    def predict(self, features):
        time.sleep(self.seconds * len(features))
        return truth(features), np.full(len(features), self.spread**2)


def tomogram(surrogate=None, axes=AXES, tests=60, **options):
    space, outcomes = Space({f"a{number}": LADDER for number in range(axes)}, **options), Outcomes(100)
    generator = np.random.default_rng(7)
    for test in [0, *Selection(space, "order >= 1").sample(tests, generator).tolist()]:
        rate = truth(space.matrix([test]))[0] if axes <= AXES else 0.5
        outcomes.record(test, np.arange(20), generator.random(20) < rate)
    return Tomogram(space, outcomes, np.arange(100), settings=EstimatorSettings(surrogate=surrogate))


@pytest.fixture(scope="module")
def rates():
    """The true rate of every test, by configuration id."""
    space = tomogram().space
    return np.concatenate([truth(space.matrix(np.arange(start, start + 6**6))) for start in range(0, 6**8, 6**6)])


def selected(space, text):
    holds = queries.compile(text, space.column_names).evaluate(space.columns())
    return np.broadcast_to(holds, space.shape).reshape(-1)


@pytest.mark.parametrize("text", ["a0 > 3", "order <= 6 and severity >= 15", "a0 > a1 or a2 == a3", "order >= 0"])
def test_the_mean_over_a_sample_is_that_of_the_region_within_its_interval(text, rates):
    found = tomogram(Knowing(0.01)).query(text)
    chosen = selected(tomogram().space, text)
    assert found.tests == np.count_nonzero(chosen) > LISTED
    assert found.low < rates[chosen].mean() < found.high
    # The errors of predictions alone make ±.0196; what the draw adds is small against that.
    assert 0.0196 <= (found.high - found.low) / 2 < 1.06 * 0.0196
    assert found.inferred == found.tests - found.measured


def test_the_draw_is_in_the_interval_as_often_as_it_should_be(rates):
    """Of 40 samples under one seed each, about 38 cover the truth; fewer than 34 are one in three hundred."""
    known = tomogram(Knowing())
    covered = 0
    for number in range(40):
        settings = EstimatorSettings(Knowing(), seed=number)
        found = Tomogram(known.space, known.outcomes, known.order, settings=settings).query("order >= 0")
        covered += found.low <= rates.mean() <= found.high
    assert covered >= 34


def test_a_region_with_few_tests_is_listed(rates):
    known = tomogram(Knowing())
    found = known.query("order <= 2 and severity >= 8")
    chosen = selected(known.space, "order <= 2 and severity >= 8")
    assert found.tests == np.count_nonzero(chosen) < DRAWN
    tried = known.estimator.measured_ids[chosen[known.estimator.measured_ids]]
    expected = rates[chosen].sum() - rates[tried].sum() + known.estimator.table(tried).estimate.sum()
    assert found.robustness == pytest.approx(expected / found.tests)


def test_tables_have_the_exact_numbers_of_tests(rates):
    known = tomogram(Knowing(0.01))
    assert {order: found.tests for order, found in known.by_order().items()} == {
        order: math.comb(AXES, order) * 5**order for order in range(AXES + 1)
    }
    for name, table in known.by_severity().items():
        for level, found in table.items():
            assert found.tests == 6 ** (AXES - 1)
            mean = rates[selected(known.space, f"{name} == {level}")].mean()
            assert found.low < mean < found.high
    assert sum(found.tests for found in known.query_engine.by("severity").values()) == 6**AXES


def test_without_a_surrogate_the_tests_tried_speak_for_themselves():
    known = tomogram()
    found = known.query("a0 > 2")
    ids = known.estimator.measured_ids[known.space.matrix(known.estimator.measured_ids)[:, 0] > 2]
    passes, trials = known.outcomes.counts(ids)
    assert found.robustness == pytest.approx((passes / trials).mean())
    assert (found.tests, found.measured, found.inferred) == (6**7 * 3, len(ids), 0)
    assert known.by_order()[1].measured in (0, 1)


def test_a_slow_machine_answers_the_same(monkeypatch):
    """How many tests stand for a region does not hang on the time that one takes."""
    quick, slow = tomogram(Knowing(0.01)), tomogram(Knowing(0.01, seconds=1e-6))
    clock = iter(np.cumsum(np.random.default_rng(0).exponential(100, 100_000)))
    for name in ("perf_counter", "monotonic", "process_time", "time"):
        monkeypatch.setattr(time, name, lambda: next(clock))
    assert slow.query("a0 > 2").as_dict() == quick.query("a0 > 2").as_dict()
    for table in ("by_order", "by_severity_sum"):
        assert getattr(slow, table)() == getattr(quick, table)()
    assert slow.by_severity() == quick.by_severity()
    assert (slow.estimator.sample[0] == quick.estimator.sample[0]).all()


def test_means_by_severity_come_from_one_sample(rates):
    """The draw adds less to their bounds than 400 tests for each would."""
    for name, table in tomogram(Knowing()).by_severity().items():
        for level, found in table.items():
            own = rates[selected(tomogram().space, f"{name} == {level}")]
            assert (found.high - found.low) / 2 < 1.96 * own.std() / 400**0.5


def test_a_severity_with_few_tests_of_the_sample_gets_its_own(monkeypatch):
    monkeypatch.setattr(region_estimator, "FEWEST_SHARED", 10**6)
    known = tomogram(Knowing(0.01))
    assert known.by_severity()["a0"][2] == RegionEstimator(known.estimator).answer(
        TestSample.some_of(known.query_engine.selection("a0 == 2"), DRAWN_EACH, 0)
    )


def test_the_planted_region_is_found():
    found = worst_regions(tomogram(Knowing(0.01)), count=1).regions[0]
    assert found.query == "a0 >= 4 and a1 >= 4"
    assert found.answer.tests == 6**6 * 4


def test_standard_queries_and_gates_have_answers():
    known = tomogram(Knowing(0.01))
    asked = list(standard_queries(known.space).values())
    assert all(answer.low < answer.robustness < answer.high for answer in known.queries(asked))
    wide, narrow = known.query_engine.bound("a0 > 3", looks=20), known.query_engine.bound("a0 > 3")
    assert wide.low < narrow.low < narrow.robustness


def test_two_runs_are_compared_where_both_measured():
    found = compare(tomogram(), tomogram(), ["a0 > 2", "order <= 5"])
    assert found.overall.tests == 6**8
    assert [region.tests for region in found.regions] == [6**7 * 3, Selection(tomogram().space, "order <= 5").count]
    assert all(region.compared < 61 for region in found.regions)


def test_quality_is_refused_in_one_line():
    known = tomogram()
    object.__setattr__(known, "quality", object())
    refused = "quality: it is predicted for every test, of at most 200,000, and the space has 1,679,616; "
    for asked in (tomogram(), known):
        with pytest.raises(InputError, match=refused + "accepted in its queries: a0, a1"):
            asked.query("quality < 1 and a0 > 2")
        with pytest.raises(InputError, match=refused + "accepted: spaces"):
            limits(asked)


def test_selecting_nothing_is_said_as_ever():
    with pytest.raises(InputError, match='"a0 > 5" selects no test'):
        tomogram().query("a0 > 5")


def test_orders_of_application_need_no_list():
    known = tomogram(Knowing(0.01), order_sensitive=True)
    found = known.query("order == 7 and a0 == 0")
    assert found.tests == math.factorial(7) * 5**7
    assert found.low < found.robustness < found.high


def test_a_grid_is_refused_for_what_it_is(tmp_path):
    with pytest.raises(InputError, match="export: a grid needs every input on every test, of at most 200,000"):
        write_grid(tomogram(), tmp_path / "grid.npz")


def test_figures_say_that_a_mean_is_over_a_sample():
    assert others_text(tomogram().space, ["a0", "a1"], None, whole=True).endswith("a7, from a sample of the tests")
