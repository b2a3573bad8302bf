"""Comparison of two models in the same space on the same data, with intervals for the differences.

A difference is always B − A: positive if the second model passes more often. Inputs are the sampling unit: what both
runs tried on an input is compared on that input, and all outcomes of one input stay together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.space import Space
from testifai.statistics import differences
from testifai.statistics.differences import CONFIDENCE, Solved, solve_apart, solve_paired, solve_stopped
from testifai.statistics.intervals import half_widths, skewed_reaches
from testifai.statistics.multiplicity import holm
from testifai.support.bits import unpack
from testifai.support.serialization import plain
from testifai.support.types import Array, Bools, Floats, Record, RecordLike
from testifai.support.views import view
from testifai.tomogram.answers import PlainRecord, Sigma
from testifai.tomogram.tomogram import Tomogram

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

VERDICTS = ("better", "worse", "equal", "undecided")
EXTREMES = 5  # number of best and of worst tests that are shown


@dataclass(frozen=True)
class Difference(PlainRecord):
    """One test measured in both runs. The interval is for this test alone; `verdict` allows for all tests compared."""

    configuration: Sigma
    difference: float
    low: float
    high: float
    rate_a: float
    rate_b: float
    trials_a: int
    trials_b: int
    method: str  # "paired", "apart" (each run's own inputs), "stopped" (the same, valid under stopping), "equal"
    p: float
    p_adjusted: float
    verdict: str  # of B: "better" | "worse" | "equal" (known exactly) | "undecided"

    def __repr__(self) -> str:
        found = f"B − A {_signed(self.difference)} ({_bounds(self.low, self.high)}), {self.verdict}"
        return f"<Difference of {self.configuration}: {found}>"


@dataclass(frozen=True)
class RegionDifference:
    """The mean difference over the tests of a query that were measured in both runs; NaN without any."""

    query: str
    difference: float
    low: float
    high: float
    tests: int
    compared: int

    def __repr__(self) -> str:
        return f"<{_region_line(self)}>"

    @property
    def left_out(self) -> int:
        return self.tests - self.compared

    @property
    def verdict(self) -> str:
        """Verdict on B, from this interval alone: "better", "worse", "equal" (known exactly) or "undecided"."""
        if self.low == self.high == 0:
            return "equal"
        if self.low > 0:
            return "better"
        return "worse" if self.high < 0 else "undecided"

    def as_dict(self) -> Record:
        found = {**vars(self), "left_out": self.left_out, "verdict": self.verdict}
        return {name: plain(value) for name, value in found.items()}


@dataclass(frozen=True)
class Comparison:
    """Difference of B from A: for each test, over all tests measured in both, and over the requested regions."""

    space: Space
    names: tuple[str, str]
    inputs: int
    population: str
    tests: tuple[Difference, ...]
    overall: RegionDifference
    regions: tuple[RegionDifference, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def plot(self, *, dark: bool = False) -> Figure:
        """Return a figure of B − A over all tests, the regions, and the tests that lose and gain most."""
        figure: Figure = view("comparison as a figure")(self, dark=dark)
        return figure

    @property
    def better(self) -> tuple[Difference, ...]:
        """Tests in which B is better; with 95 % confidence none of `better` and `worse` is wrong."""
        return tuple(test for test in self.tests if test.verdict == "better")

    @property
    def worse(self) -> tuple[Difference, ...]:
        """Tests in which B is worse."""
        return tuple(test for test in self.tests if test.verdict == "worse")

    @property
    def counts(self) -> dict[str, int]:
        """Number of tests with each verdict."""
        found = [test.verdict for test in self.tests]
        return {verdict: found.count(verdict) for verdict in VERDICTS}

    @property
    def best(self) -> tuple[Difference, ...]:
        """The tests with the largest estimated gains, best first."""
        gains = [test for test in self.tests if test.difference > 0]
        return tuple(sorted(gains, key=lambda test: -test.difference)[:EXTREMES])

    @property
    def worst(self) -> tuple[Difference, ...]:
        """The tests with the largest estimated losses, worst first."""
        losses = [test for test in self.tests if test.difference < 0]
        return tuple(sorted(losses, key=lambda test: test.difference)[:EXTREMES])

    def as_dict(self) -> Record:
        """Return plain data for JSON."""
        named = ("inputs", "population", "overall", "regions", "counts", "best", "worst", "tests", "notes")
        found = {"a": self.names[0], "b": self.names[1], **{name: plain(getattr(self, name)) for name in named}}
        return {"verdicts" if name == "counts" else name: value for name, value in found.items()}

    def lines(self) -> list[str]:
        """Return the summary that is printed, in lines."""
        a, b = self.names
        shown = [f"A = {a}, B = {b}: {len(self.tests):,} tests run in both, up to {self.inputs:,} inputs each"]
        if self.population == "data":
            shown[0] += "; every number is for these inputs only"
        shown += [_region_line(region) for region in (self.overall, *self.regions)]
        counted = ", ".join(f"{verdict} in {count:,}" for verdict, count in self.counts.items())
        shown.append(f"test by test: B is {counted} (at most 5 % risk of one wrong verdict among them all)")
        for title, tests in (("largest losses of B", self.worst), ("largest gains of B", self.best)):
            if tests:
                shown += [f"{title}:", *_test_lines(self.space, tests)]
        return shown + [f"note: {note}" for note in self.notes]


def _region_line(region: RegionDifference) -> str:
    if not region.compared:
        return f"{region.query}: none of {region.tests:,} tests was run in both"
    verdict = "undecided" if region.verdict == "undecided" else f"B is {region.verdict}"
    left_out = f"; {region.left_out:,} not run in both are left out" if region.left_out else ""
    bounds = _bounds(region.low, region.high)
    difference = _signed(region.difference)
    return f"{region.query}: B − A {difference} ({bounds}), {verdict}; {region.compared:,} tests{left_out}"


def _test_lines(space: Space, tests: tuple[Difference, ...]) -> list[str]:
    words = [space.words(test.configuration) for test in tests]
    width = max(map(len, words))
    return [
        f"  {name:{width}}  {_signed(test.difference)} ({_bounds(test.low, test.high)})  "
        f"{test.rate_a:.3f} → {test.rate_b:.3f}, {test.verdict}"
        for name, test in zip(words, tests, strict=True)
    ]


def _bounds(low: float, high: float) -> str:
    return "exact" if low == high else f"{_signed(low)} … {_signed(high)}"


def _signed(value: float) -> str:
    if 0 < abs(value) < 0.0005:
        return f"{value:+.0e}"
    return f"{value:+.3f}" if value else "0"


def compare(
    a: Tomogram, b: Tomogram, queries: Iterable[str] = (), inputs: str | None = None, *, score: str | None = None
) -> Comparison:
    """Return how the model of run `b` differs from the model of run `a`, both of the same space and data.

    Args:
        a: a run of the first model
        b: a run of the second, over the same space and data
        queries: regions to compare over
        inputs: a query over `label`, such as "label in {3, 5}", for a part of the inputs; None: all
        score: name of a score, such as "f1", whose means are compared; None: pass rates

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> old, new = (lambda x: (x[:, 0] > 0.5).astype(int)), (lambda x: (x[:, 0] > 0.6).astype(int))
    >>> runs = [ta.scan(model, (rows, old(rows)), ta.Space({"shift": shift}), strategy="full") for model in (old, new)]
    >>> found = ta.compare(*runs, queries=["shift > 0"])
    >>> round(found.regions[0].difference, 3), found.regions[0].verdict
    (0.087, 'better')
    """
    if score is not None:
        a, b = a.scored(score), b.scored(score)
    names = str(a.provenance.get("path", "A")), str(b.provenance.get("path", "B"))
    if problem := _difference(a, b):
        raise InputError(f"compare: {names[0]} and {names[1]} cannot be compared: {problem}")
    asked = [queries] if isinstance(queries, str) else list(queries)
    wanted = [(query, a.query_engine.sample(query)) for query in asked]
    table = _SharedTests(a, b, inputs)
    if not len(table.ids):
        part = "" if inputs is None else f' on the inputs "{inputs}"'
        raise InputError(f"compare: no test was run in both {names[0]} and {names[1]}{part}")
    return Comparison(
        space=a.space,
        names=names,
        inputs=int(np.count_nonzero(table.chosen)),
        population="future" if table.population is None else "data",
        tests=table.differences(),
        overall=table.region("all tests", np.ones(len(table.ids), bool), a.space.size),
        regions=tuple(table.region(query, chosen.contains(table.ids), chosen.tests) for query, chosen in wanted),
        notes=tuple(_notes(table)),
    )


class _SharedTests:
    """All tests measured in both runs: outcomes by input, counts, differences, intervals, p-values.

    The columns of `counts` are trials and passes of A, of B, then passes of A alone and of B alone on common inputs.
    """

    def __init__(self, a: Tomogram, b: Tomogram, inputs: str | None) -> None:
        self.a, self.b, self.scored = a, b, a.settings.score is not None
        self.chosen = np.ones(a.outcomes.inputs, bool)
        part = a.query_engine.input_bits(inputs)
        if part is not None:
            self.chosen[a.order] = unpack(part, len(self.chosen))
        both_data = a.settings.population == b.settings.population == "data"
        self.population = int(np.count_nonzero(self.chosen)) if both_data else None
        self.stopped = a.settings.stopped_early or b.settings.stopped_early
        tests = np.intersect1d(a.estimator.measured_ids, b.estimator.measured_ids)
        counted = [_count(*self.outcomes(test), stopped=self.stopped) for test in tests.tolist()]
        counts: Array = np.array([row for row, _ in counted], np.float64 if self.scored else np.int64).reshape(-1, 6)
        tried = (counts[:, 0] > 0) & (counts[:, 2] > 0)  # a part of the inputs may contain no trial of a test
        self.ids, self.counts = tests[tried], counts[tried]
        self.paired = np.array([paired for _, paired in counted], bool)[tried]
        one, two = (run.provenance.get("identity", {}) for run in (a, b))
        # The same model, with the same random numbers.
        self.same = "model" in one and all(one.get(key) == two.get(key) for key in ("model", "preprocessing", "seed"))
        self.equal = self.same and not self.counts[:, 4:].any()
        self.low, self.high, self.p = np.zeros(len(self.ids)), np.zeros(len(self.ids)), np.ones(len(self.ids))
        for at, paired in ((self.paired, True), (~self.paired, False)):
            if at.any() and not self.equal:
                self.low[at], self.high[at], self.p[at] = self._solve(at, paired=paired)

    def outcomes(self, test: int) -> tuple[Bools, Array, Bools, Array]:
        """Return tried and passed (or scores) of A, then of B, each by input, whatever the order of visits."""
        return (*self._read(self.a, test), *self._read(self.b, test))

    def _read(self, run: Tomogram, test: int) -> tuple[Bools, Array]:
        places, found = run.outcomes.trials(test)
        tried, values = np.zeros(len(self.chosen), bool), np.zeros(len(self.chosen), found.dtype)
        tried[run.order[places]], values[run.order[places]] = True, found
        tried &= self.chosen
        values[~tried] = 0
        return tried, values

    def _solve(self, at: Bools, *, paired: bool) -> Solved:
        if not self.scored:
            solve = solve_paired if paired else solve_stopped if self.stopped else solve_apart
            return solve(self.counts[at], self.population)
        read = [self.outcomes(test) for test in self.ids[at].tolist()]
        if paired:
            return differences.solve_paired_means([two[a & b] - one[a & b] for a, one, b, two in read], self.population)
        scores_a, scores_b = [one[a] for a, one, _, _ in read], [two[b] for _, _, b, two in read]
        return differences.solve_separate_means(scores_a, scores_b, self.population, stopped=self.stopped)

    @property
    def rates(self) -> tuple[Floats, Floats]:
        n_a, s_a, n_b, s_b = self.counts.astype(np.float64)[:, :4].T
        return s_a / n_a, s_b / n_b

    @property
    def difference(self) -> Floats:
        if self.equal:
            return np.zeros(len(self.ids))
        rate_a, rate_b = self.rates
        # Paired, whole numbers are subtracted: equal outcomes make exactly 0.
        return np.where(self.paired, (self.counts[:, 5] - self.counts[:, 4]) / self.counts[:, 0], rate_b - rate_a)

    def differences(self) -> tuple[Difference, ...]:
        adjusted, difference = holm(self.p), self.difference
        significant = adjusted <= 1 - CONFIDENCE
        cases = [(self.low == 0) & (self.high == 0), significant & (difference > 0), significant & (difference < 0)]
        verdicts = np.select(cases, ["equal", "better", "worse"], "undecided")
        methods = np.where(self.paired, "paired", "stopped" if self.stopped else "apart")
        if self.equal:
            methods[:] = "equal"
        columns = (
            *(difference, self.low, self.high, *self.rates),
            *(self.counts[:, 0].astype(np.int64), self.counts[:, 2].astype(np.int64)),
            *(methods, self.p, adjusted, verdicts),
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        names = map(self.a.space.configuration, self.ids.tolist())
        return tuple(Difference(name, *row) for name, row in zip(names, rows, strict=True))

    def region(self, query: str, chosen: Bools, tests: int) -> RegionDifference:
        at = np.flatnonzero(chosen)
        if not len(at):
            return RegionDifference(query, float("nan"), float("nan"), float("nan"), tests, 0)
        difference = float(self.difference[at].mean())
        if len(at) == 1 or self.stopped or self.equal:
            # The mean of bounds is valid for any dependence between tests, and conservative.
            low, high = float(self.low[at].mean()), float(self.high[at].mean())
        else:
            half = _half_width(*self.influence(at))
            low, high = max(-1.0, difference - half), min(1.0, difference + half)
        return RegionDifference(query, difference, low, high, tests, len(at))

    def influence(self, at: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Influence of each input on the mean difference, and the largest influence it could have.

        A test's deviations from its own mean, over its number of inputs and the number of tests, add up input by
        input, so that tests which share inputs may depend on each other in any way; squares of the sums add up to the
        variance (Cochran, Sampling Techniques, 3rd ed. 1977, section 9A). The correction 1 − n/N for a finite
        population is exact for tests on the same inputs and conservative for others.
        """
        moved, reach = np.zeros(len(self.chosen)), np.zeros(len(self.chosen))
        rate_a, rate_b = (rates[at].mean() for rates in self.rates)

        def add(tried: Bools, values: Array, sign: int, centre: float, share: float) -> None:
            n = len(values)
            own = (values - values.mean()) * np.sqrt(n / (n - 1)) if n > 1 else values - centre
            scale = np.sqrt(share) / (n * len(at))
            moved[tried] += sign * scale * own
            reach[tried] += scale

        for place in at:
            tried_a, passed_a, tried_b, passed_b = self.outcomes(int(self.ids[place]))
            if self.paired[place]:
                common = tried_a & tried_b
                values = passed_b[common] * 1 - passed_a[common]
                left = 1.0 if self.population is None else 1 - len(values) / self.population
                add(common, values, 1, rate_b - rate_a, left)
            else:
                add(tried_a, passed_a[tried_a] * 1, -1, rate_a, 1.0)
                add(tried_b, passed_b[tried_b] * 1, 1, rate_b, 1.0)
        return moved, reach


def _count(
    tried_a: Bools, passed_a: Array, tried_b: Bools, passed_b: Array, *, stopped: bool
) -> tuple[list[Any], bool]:
    """Counts of one test, and whether they are limited to the inputs that both runs tried.

    They are if that narrows the interval for outcomes correlated by a half or more. The number of pairs decides, not
    the outcomes, so the choice causes no bias; stopping rules depend on outcomes, so they exclude pairing.
    """
    common = tried_a & tried_b
    n_a, n_b, n = (int(np.count_nonzero(tried)) for tried in (tried_a, tried_b, common))
    paired = not stopped and n > 0 and n * (n_a + n_b) >= n_a * n_b
    if paired:
        tried_a = tried_b = common
        n_a = n_b = n
    # For scores, the gain or loss is the excess of the better one.
    s_a, s_b = passed_a[tried_a].sum(), passed_b[tried_b].sum()
    both = np.minimum(passed_a, passed_b)[common].sum()
    lost, gained = (passed[common].sum() - both for passed in (passed_a, passed_b))
    return [n_a, s_a, n_b, s_b, lost, gained], paired


def _half_width(moved: Floats, reach: Floats) -> float:
    """Half-width h from the inputs' influences: h² = z²(variance + h·m), the form of Wilson's interval.

    m is the influence of a typical input that matters: if such inputs are rare, the variance is underestimated. For
    single passes this is Wilson's bound for rare events; without any difference it is one input's largest influence.
    """
    variance = float(np.square(moved).sum())
    size = float((np.abs(moved) ** 3).sum()) / variance if variance > 0 else float(reach.max())
    return skewed_reaches(variance, size, half_widths(CONFIDENCE))[1]


def _difference(a: Tomogram, b: Tomogram) -> str | None:
    if a.space != b.space:
        return _space_difference(a.space.describe(), b.space.describe())
    if a.settings.score != b.settings.score:
        one, two = (run.settings.score or "pass rates" for run in (a, b))
        return f"{one} against {two}; hand over both runs' .scored(name), or neither"
    if a.outcomes.inputs != b.outcomes.inputs:
        return f"data differ: {a.outcomes.inputs:,} inputs against {b.outcomes.inputs:,}"
    one, two = (run.provenance.get("identity", {}) for run in (a, b))
    if one.get("data") != two.get("data"):
        return f"data differ: fingerprint {_short(one.get('data'))} against {_short(two.get('data'))}"
    if one.get("oracle") != two.get("oracle"):
        return f"oracles differ: {_short(one.get('oracle'))} against {_short(two.get('oracle'))}"
    return None


def _space_difference(one: RecordLike, two: RecordLike) -> str:
    names = [[axis["name"] for axis in space["axes"]] for space in (one, two)]
    if names[0] != names[1]:
        return f"spaces differ: axes {', '.join(names[0])} against {', '.join(names[1])}"
    for left, right in zip(one["axes"], two["axes"], strict=True):
        for key in left:
            if left[key] != right[key]:
                return f"spaces differ: {key} of axis {left['name']}: {_short(left[key])} against {_short(right[key])}"
    return "spaces differ: the application order counts in only one of them"


def _short(value: Any, most: int = 40) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _notes(table: _SharedTests) -> Iterable[str]:
    a, b = table.a, table.b
    apart = int(np.count_nonzero(~table.paired))
    if a.settings.score is not None:
        yield f"differences are those of the {a.settings.quantity}, not of pass rates"
    if table.equal:
        yield "both runs are of the same model with the same seed, so nothing can differ"
        return
    if table.same:
        yield (
            f"both runs are of the same model with the same seed, but {int(table.counts[:, 4:].sum()):,} outcomes "
            "contradict each other; is the model deterministic?"
        )
    if table.stopped:
        yield (
            "a stopping rule ended tests, so bounds combine each run's own and are wide; "
            "runs without a rule are compared input by input"
        )
    elif apart:
        yield f"{apart:,} tests share too few inputs to be paired; scan with the same seed for narrower intervals"
    if a.settings.population != b.settings.population:
        yield "the runs' populations differ; intervals are for new inputs like these"
