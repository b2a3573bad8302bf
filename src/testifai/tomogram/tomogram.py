"""The finished result: an estimate with an interval for every configuration, and answers to queries over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.quality.scores import Scores
from testifai.runs.outcomes import Bits, Ids, Outcomes
from testifai.space import Space
from testifai.space import query as queries
from testifai.space.query import Query
from testifai.statistics.corrections import confidence_each
from testifai.statistics.intervals import confidence_sequence, disagree, wilson
from testifai.statistics.normal import half_widths
from testifai.support.threads import one_blas_thread
from testifai.support.views import view
from testifai.surrogates import Surrogate, Trials, resolve
from testifai.tomogram import own_trials
from testifai.tomogram.answers import Answer, Excluded, Sigma

if TYPE_CHECKING:
    from testifai.tomogram.profile import Expected

__all__ = ["Answer", "Excluded", "Sigma", "Tomogram"]

Floats = NDArray[np.float64]

WORST = 5
# Up to this many single outcomes are handed to a surrogate.
MOST_SINGLE = 3_000_000


@dataclass(frozen=True)
class _View:
    """Estimates over the whole space, flat by configuration id, for all inputs or a part of them."""

    estimate: Floats
    low: Floats
    high: Floats
    passes: Ids
    trials: Ids


@dataclass
class Tomogram:
    """Everything that is known about a model in a space of conditions.

    Bounds of a test stand at 95 % and are for the rate on the inputs at hand (`population="data"`: they close once all
    inputs were tried) or on new inputs like them (`"future"`). Tests ended by a stopping rule have bounds that stay
    valid under it. The bounds of an answer are the mean bounds of its tests: conservative,
    since the tests share inputs.
    """

    space: Space
    outcomes: Outcomes
    order: NDArray[np.intp]
    labels: NDArray[Any] | None = None
    classes: tuple[str, ...] | None = None
    population: str = "data"
    stopped_early: bool = False
    surrogate: str | Surrogate | None = "forest"
    seed: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict)
    quality: Scores | None = None

    def __repr__(self) -> str:
        return (
            f"<Tomogram of {self.space.size:,} tests over {', '.join(self.space.names)}: "
            f"{len(self.outcomes):,} measured, {self.inferences:,} inferences, clean accuracy {self.base:.3f}>"
        )

    # -- what was measured --------------------------------------------------------------------------------------

    @cached_property
    def measured_ids(self) -> Ids:
        """The configurations with at least one outcome, ascending."""
        return np.array(sorted(self.outcomes), np.int64)

    @cached_property
    def inferences(self) -> int:
        """Inputs handed to the model in all, for outcomes and for quality."""
        return self.outcomes.total() + (0 if self.quality is None else self.quality.inferences)

    @cached_property
    def base(self) -> float:
        """Clean accuracy."""
        if self._pooling(None) is not None:
            return float(self._whole.estimate[0])
        passes, trials = self.outcomes.counts([0])
        return float(passes[0] / trials[0]) if trials[0] else float("nan")

    @property
    def passes(self) -> Ids:
        """Passed trials of every test."""
        return self._whole.passes.reshape(self.space.shape)

    @property
    def trials(self) -> Ids:
        """Trials of every test."""
        return self._whole.trials.reshape(self.space.shape)

    @cached_property
    def rests_on_own_trials(self) -> NDArray[np.bool_]:
        """Which tests' estimates rest on their own trials alone, flat by configuration id."""
        trials = self._whole.trials
        return np.asarray(trials == self.outcomes.inputs if self._pools else trials > 0)

    # -- estimates ----------------------------------------------------------------------------------------------

    @property
    def estimate(self) -> Floats:
        """The pass rate of every test: measured where there are trials, predicted elsewhere."""
        return self._whole.estimate.reshape(self.space.shape)

    @property
    def low(self) -> Floats:
        """Lower 95 % bound of every test; NaN where a method has none."""
        return self._whole.low.reshape(self.space.shape)

    @property
    def high(self) -> Floats:
        """Upper 95 % bound of every test; NaN where a method has none."""
        return self._whole.high.reshape(self.space.shape)

    def predict(self, configurations: Iterable[Sequence[int]]) -> tuple[Floats, Floats, Floats]:
        """Estimate and bounds of some configurations; for spaces too large to enumerate."""
        ids = np.array([self.space.id(tuple(sigma)) for sigma in configurations], np.int64)
        view = self._view(ids)
        return view.estimate, view.low, view.high

    # -- questions ----------------------------------------------------------------------------------------------

    def query(self, expression: str, inputs: str | None = None, *, confidence: float = 0.95) -> Answer:
        """The mean robustness over the tests an expression selects, for all inputs or a part of them.

        `inputs` is a query over `label`, such as "label in {3, 5}".
        """
        chosen, part = self.select(expression), self._part(inputs)
        answer = self._checked(self._answer(chosen, part, confidence), chosen, part, confidence)
        return replace(answer, excluded=self._excluded(expression, chosen, part, confidence))

    def queries(self, expressions: Sequence[str], inputs: str | None = None) -> list[Answer]:
        """Answers to several queries whose intervals hold together, all at once, at 95 % (Bonferroni)."""
        return [self.query(one, inputs, confidence=confidence_each(len(expressions))) for one in expressions]

    def select(self, expression: str) -> NDArray[np.bool_]:
        """Which tests an expression selects, flat by configuration id; selecting none is an error."""
        compiled = self._compiled(expression)
        chosen = self._holds(compiled, None if self.quality is None else self.quality.estimate)
        if not chosen.any():
            ranges = "; ".join(f"{a.name}: {', '.join(map(str, a.severities))}" for a in self.space.axes)
            if self.quality is not None and "quality" in compiled.names:
                ranges += f"; quality: {np.nanmin(self.quality.estimate):.3g} to {np.nanmax(self.quality.estimate):.3g}"
            raise InputError(f'query: "{expression}" selects no test (severities are {ranges})')
        return chosen

    def _compiled(self, expression: str) -> Query:
        compiled = queries.compile(expression, [*self.space.columns(), "quality"], self.space.levels)
        if "quality" in compiled.names and self.quality is None:
            raise InputError(
                f'query: "{expression}" asks for quality, which this run did not measure; add quality = "kid" '
                '(texts: "edit_similarity") to the spec\'s [scan], and run it again'
            )
        return compiled

    def _holds(self, compiled: Query, quality: Floats | None) -> NDArray[np.bool_]:
        """Where a query holds, flat by configuration id, if the tests' quality were this."""
        asked: Query | None = compiled
        columns: Mapping[str, NDArray[Any]] = self.space.columns()
        if quality is not None and "quality" in compiled.names:
            columns = {**{name: columns[name] for name in compiled.names - {"quality"}}, "quality": quality}
            if np.isnan(quality).all():
                asked = compiled.without("quality")  # before a run has begun it excludes nothing
        holds = np.array(True) if asked is None else asked.evaluate(columns)
        return np.broadcast_to(holds, self.space.shape).reshape(-1)

    def _excluded(
        self, expression: str, chosen: NDArray[np.bool_], among: Bits | None, confidence: float
    ) -> Excluded | None:
        """What a query's limit on quality leaves out; None where it has no such limit."""
        compiled = self._compiled(expression)
        if self.quality is None or "quality" not in compiled.names:
            return None
        rest = compiled.without("quality")
        region = np.ones(len(chosen), bool) if rest is None else self._holds(rest, None)
        ends = [self._holds(compiled, bound) for bound in (self.quality.low, self.quality.high)]
        known = ~np.isnan(self.quality.low.reshape(-1))
        doubtful = int(np.count_nonzero(known & ((ends[0] != chosen) | (ends[1] != chosen))))
        outside = region & ~chosen
        if not outside.any():
            return Excluded(0, doubtful, np.nan, np.nan, np.nan)
        answer = self._answer(outside, among, confidence)
        return Excluded(answer.tests, doubtful, answer.robustness, answer.low, answer.high)

    def bound(self, expression: str, inputs: str | None = None, *, looks: int = 1) -> Answer:
        """The same answer with bounds for decisions: valid however often one looks, shared among `looks` questions."""
        confidence = confidence_each(looks)
        return self._answer(self.select(expression), self._part(inputs), confidence, anytime=True)

    def to_pandas(self) -> Any:
        """A DataFrame with a row for every test (extra `pandas`)."""
        return view("tomogram as a data frame")(self)

    def to_xarray(self) -> Any:
        """A Dataset whose dimensions are the axes of the space (extra `xarray`)."""
        return view("tomogram as a dataset")(self)

    def _repr_html_(self) -> str:
        html: str = view("tomogram in a notebook")(self)
        return html

    def expected(self, profile: Any, given: Mapping[str, Any] | None = None) -> Expected:
        """The robustness to expect in operation, tests weighted by how probable their conditions are.

        See `testifai.tomogram.profile.expected`.
        """
        from testifai.tomogram.profile import expected

        return expected(self, profile, given)

    def by_class(self) -> dict[str, Answer]:
        """For each class, the mean robustness over the measured tests."""
        if self.labels is None or self.labels.ndim != 1 or self.labels.dtype.kind == "f":
            return {}
        measured, pooled = self._measured_mask(), self._pooling(None) is not None
        answers = {}
        for label in np.unique(self.labels):
            name = self.classes[int(label)] if self.classes else str(label)
            part = self._bits(self.labels == label)
            answers[name] = self._raw(part) if pooled else self._answer(measured, part, 0.95)
        return answers

    def _raw(self, among: Bits) -> Answer:
        """The mean over the measured tests from their own trials alone: a surrogate for each class would take long."""
        free = own_trials.region(self.outcomes, self.measured_ids, among, finite=self.population == "data")
        drop = free.estimate - own_trials.region(self.outcomes, self.measured_ids[:1], among).estimate
        return Answer(free.estimate, free.low, free.high, drop, free.tests, free.tests, 0, ())

    def by_order(self) -> dict[int, Answer]:
        """For each order, the mean robustness over its tests."""
        orders = np.broadcast_to(self.space.columns()["order"], self.space.shape).reshape(-1)
        return {int(order): self._answer(orders == order, None, 0.95) for order in np.unique(orders)}

    def by_severity(self) -> dict[str, dict[int, Answer]]:
        """For each axis and severity, the mean robustness over its tests."""
        table: dict[str, dict[int, Answer]] = {}
        columns = self.space.columns()
        for axis in self.space.axes:
            values = np.broadcast_to(columns[axis.name], self.space.shape).reshape(-1)
            table[axis.name] = {level: self._answer(values == level, None, 0.95) for level in axis.severities}
        return table

    def by_severity_sum(self) -> dict[int, Answer]:
        """For each sum of severities, the mean robustness over its tests."""
        sums = np.broadcast_to(self.space.columns()["severity"], self.space.shape).reshape(-1)
        return {int(total): self._answer(sums == total, None, 0.95) for total in np.unique(sums)}

    # -- inside -------------------------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> _View:
        return self._view(None)

    def _measured_mask(self) -> NDArray[np.bool_]:
        return self._whole.trials > 0

    def _view(
        self,
        ids: Ids | None,
        among: Bits | None = None,
        confidence: float = 0.95,
        *,
        anytime: bool = False,
        chosen: NDArray[np.bool_] | None = None,
    ) -> _View:
        """Estimates of some configurations, or of all, on all inputs or on a part of them.

        With `chosen`, only these of the tests without trials are predicted.
        """
        if ids is None:
            self.space.columns()  # refuses what cannot be enumerated
            size = self.space.size
            known = self.measured_ids
            passes, trials = np.zeros(size, np.int64), np.zeros(size, np.int64)
            passes[known], trials[known] = self.outcomes.counts(known, among)
        else:
            size = len(ids)
            passes, trials = self.outcomes.counts(ids, among)
        inputs = self.outcomes.inputs if among is None else int(np.bitwise_count(among).sum())
        population = inputs if self.population == "data" else None
        interval = confidence_sequence if self.stopped_early or anytime else wilson
        # A pooling surrogate leaves alone only what there is nothing more to know about.
        pooling = self._pooling(among)
        done = np.flatnonzero(trials if pooling is None else trials == inputs)
        estimate, low, high = (np.full(size, np.nan) for _ in range(3))
        estimate[done] = passes[done] / trials[done]
        low[done], high[done] = interval(passes[done], trials[done], population, confidence)
        unknown = np.isnan(estimate)
        missing = np.flatnonzero(unknown if chosen is None else unknown & chosen)
        if len(missing) and len(self.measured_ids):
            at = missing if ids is None else ids[missing]
            if pooling is None:
                self._predict(at, missing, among, confidence, estimate, low, high)
            else:
                features, looked = self.space.matrix(at), self._looked(confidence) if anytime else confidence
                estimate[missing] = pooling.predict(features)[0]
                low[missing], high[missing] = pooling.bounds(features, looked)
        return _View(estimate, low, high, passes, trials)

    def _pooling(self, among: Bits | None) -> Any:
        """The fitted surrogate, where it is one that estimates every test from all trials and there is need of it."""
        known = self.population == "data" and self._complete
        return self._fitted(among) if self._pools and len(self.measured_ids) and not known else None

    @cached_property
    def _complete(self) -> bool:
        """Whether every test of the space was tried on every input."""
        _, trials = self.outcomes.counts(self.measured_ids)
        return len(trials) == self.space.size and bool((trials == self.outcomes.inputs).all())

    @cached_property
    def _pools(self) -> bool:
        return bool(getattr(resolve(self.surrogate), "pools", False))

    def _looked(self, confidence: float) -> float:
        """The confidence at which each of many looks holds together: their errors add up to no more than asked for.

        Looks are counted each time the number of trials has doubled; the k-th may err with a share 1 / k(k + 1).
        """
        looks = 1 + int(np.log2(max(1.0, self.outcomes.total() / max(1, len(self.measured_ids)))))
        return 1 - (1 - confidence) / (looks * (looks + 1))

    def _predict(
        self,
        ids: Ids,
        at: NDArray[np.intp],
        among: Bits | None,
        confidence: float,
        estimate: Floats,
        low: Floats,
        high: Floats,
    ) -> None:
        surrogate = self._fitted(among)
        if surrogate is None:
            return
        mean, variance = surrogate.predict(self.space.matrix(ids))
        estimate[at] = mean
        if variance is not None:
            half = half_widths(confidence) * np.sqrt(variance)
            low[at], high[at] = np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)

    def _fitted(self, among: Bits | None) -> Surrogate | None:
        key = None if among is None else among.tobytes()
        cache: dict[bytes | None, Surrogate | None] = self.__dict__.setdefault("_surrogates", {})
        if key not in cache:
            passes, trials = self.outcomes.counts(self.measured_ids, among)
            used = trials > 0
            levels = [axis.severities for axis in self.space.axes]
            whole: Any = None if among is None else self._fitted(None)
            surrogate = resolve(self.surrogate, self.seed, levels, finite=self.population == "data")
            if surrogate is not None and used.any():
                features = self.space.matrix(self.measured_ids[used])
                single = {}
                if getattr(surrogate, "wants_trials", False):
                    single["single"] = self._single(self.measured_ids[used], among)
                with one_blas_thread():
                    if hasattr(whole, "update"):
                        # A part of the inputs has the same surface but for its values: its shape is known already.
                        cache[key] = copy(whole).update(features, passes[used], trials[used], **single)
                    else:
                        cache[key] = surrogate.fit(features, passes[used], trials[used], **single)
            else:
                cache[key] = None
        return cache[key]

    def _checked(self, answer: Answer, chosen: NDArray[np.bool_], among: Bits | None, confidence: float) -> Answer:
        """The answer with what the tests' own trials say, where it came from a surrogate and all of them have some."""
        ids = np.flatnonzero(chosen)
        if self._pooling(among) is None or not np.isin(ids, self.measured_ids).all():
            return answer
        free = own_trials.region(self.outcomes, ids, among, confidence, finite=self.population == "data")
        if free.left_out:
            return answer
        found = (free.estimate, free.low, free.high)
        disagrees = disagree((answer.robustness, answer.low, answer.high), found)
        return replace(answer, model_free=found, disagrees=disagrees)

    def _single(self, ids: Ids, among: Bits | None) -> Trials | None:
        """Single outcomes for the surrogate; of a run with millions the counts say all there is to say."""
        if self.outcomes.total() > MOST_SINGLE:
            return None
        return self.outcomes.single(ids, among, "value" if "value" in self.outcomes.kept_names() else None)

    def _answer(
        self, chosen: NDArray[np.bool_], among: Bits | None, confidence: float, *, anytime: bool = False
    ) -> Answer:
        usual = among is None and confidence == 0.95 and not anytime
        if usual:
            view = self._whole
        else:
            wanted = chosen | (np.arange(len(chosen)) == 0)  # the clean test too: the drop is from there
            view = self._view(None, among, confidence, anytime=anytime, chosen=wanted)
        estimate, low, high = (array[chosen] for array in (view.estimate, view.low, view.high))
        pooling = self._pooling(among)
        if pooling is None:
            measured = int(np.count_nonzero(view.trials[chosen]))
            bounds = float(low.mean()), float(high.mean())
        else:
            # Nothing rests on its own trials alone but what was tried on every input.
            inputs = self.outcomes.inputs if among is None else int(np.bitwise_count(among).sum())
            measured = int(np.count_nonzero(view.trials[chosen] == inputs))
            looked = self._looked(confidence) if anytime else confidence
            bounds = pooling.region(self.space.matrix(np.flatnonzero(chosen)), looked)[1:]
        robustness = float(estimate.mean())
        base = self.base if among is None else float(view.estimate[0])
        return Answer(
            robustness=robustness,
            low=bounds[0],
            high=bounds[1],
            drop=robustness - base,
            tests=len(estimate),
            measured=measured,
            inferred=len(estimate) - measured,
            worst=self._worst(np.flatnonzero(chosen), estimate, low, high),
        )

    def _worst(self, ids: NDArray[np.intp], estimate: Floats, low: Floats, high: Floats) -> tuple[Any, ...]:
        if len(estimate) > WORST:
            limit = np.partition(estimate, WORST - 1)[WORST - 1]
            candidates = np.flatnonzero(estimate <= limit) if not np.isnan(limit) else np.arange(len(estimate))
        else:
            candidates = np.arange(len(estimate))
        lowest = candidates[np.argsort(estimate[candidates], kind="stable")][:WORST]
        return tuple(
            (self.space.configuration(int(ids[i])), float(estimate[i]), float(low[i]), float(high[i])) for i in lowest
        )

    def _part(self, inputs: str | None) -> Bits | None:
        if inputs is None:
            return None
        if self.labels is None or self.labels.ndim != 1:
            raise InputError("inputs: this run has no labels to choose inputs by")
        levels = {"label": {name: number for number, name in enumerate(self.classes or ())}}
        try:
            compiled = queries.compile(inputs, ["label"], levels)
        except InputError as error:
            raise InputError(f"inputs: {error}") from error
        chosen = np.broadcast_to(compiled.evaluate({"label": self.labels}), self.labels.shape)
        if not chosen.any():
            raise InputError(f'inputs: "{inputs}" selects no input (labels are {_listing(np.unique(self.labels))})')
        return self._bits(chosen)

    def _bits(self, chosen: NDArray[np.bool_]) -> Bits:
        """Inputs as bits in visiting order."""
        return np.packbits(chosen[self.order])


def _listing(values: NDArray[Any], most: int = 12) -> str:
    shown = ", ".join(map(str, values[:most].tolist()))
    return shown + (", …" if len(values) > most else "")
