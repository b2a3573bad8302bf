"""The finished result: what was measured and estimated, and answers to queries over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.space import query as queries
from testifai.space.query import Query
from testifai.statistics.corrections import confidence_each
from testifai.statistics.intervals import disagree
from testifai.strategies.clean import region
from testifai.support.bits import Bits, pack
from testifai.support.views import view
from testifai.tomogram import own_trials
from testifai.tomogram.answers import Answer, Excluded
from testifai.tomogram.estimates import Estimates, Floats, RateTable
from testifai.tomogram.profile import Expected, expected

WORST = 5


@dataclass(frozen=True, eq=False)
class Tomogram(Estimates):
    """Everything that is known about a model in a space of conditions.

    The bounds of an answer are the mean bounds of its tests, which is conservative, since tests share inputs; where a
    surrogate knows how their errors hang together, bounds from that.
    """

    def __repr__(self) -> str:
        return (
            f"<Tomogram of {self.space.size:,} tests over {', '.join(self.space.names)}: "
            f"{len(self.outcomes):,} tried, {self.inferences:,} inferences, clean accuracy {self.base:.3f}>"
        )

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
            asked = queries.printable(expression, 200)
            raise InputError(f'query: "{asked}" selects no test (severities are {ranges})')
        return chosen

    def _compiled(self, expression: str) -> Query:
        compiled = queries.compile(expression, [*self.space.columns(), "quality"], self.space.levels)
        if "quality" in compiled.names and self.quality is None:
            asked = queries.printable(expression, 200)
            raise InputError(
                f'query: "{asked}" asks for quality, which this run did not measure; add quality = "kid" '
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
        """A query's answer with bounds for decisions: valid however often one looks, shared among `looks` questions.

        They are those of the surrogate, where one stands behind the answer. Where the tests' own trials contradict it,
        one of the two misleads: the bounds are the outer ones of both.
        """
        confidence = confidence_each(looks)
        chosen, part = self.select(expression), self._part(inputs)
        answer = self._answer(chosen, part, confidence, anytime=True)
        answer = self._checked(answer, chosen, part, self._looked(confidence))
        if answer.modelled is None:
            return answer
        _, low, high = answer.modelled
        return replace(answer, low=min(low, answer.low), high=max(high, answer.high))

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
        return expected(self, profile, given)

    def by_class(self) -> dict[str, Answer]:
        """For each class, the mean robustness over the tests that were tried."""
        if self.labels is None or self.labels.ndim != 1 or self.labels.dtype.kind == "f":
            return {}
        measured, pooled = self._measured_mask(), self.pooling() is not None
        answers = {}
        for label in np.unique(self.labels):
            name = self.classes[int(label)] if self.classes else str(label)
            part = self._bits(self.labels == label)
            answers[name] = self._raw(part) if pooled else self._answer(measured, part, 0.95)
        return answers

    def _raw(self, among: Bits) -> Answer:
        """The mean over the tests tried from their own trials alone: a surrogate for each class would take long."""
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

    def _measured_mask(self) -> NDArray[np.bool_]:
        return self._counts[1] > 0

    def _checked(self, answer: Answer, chosen: NDArray[np.bool_], among: Bits | None, confidence: float) -> Answer:
        """The answer with what the tests' own trials say, where it came from a surrogate and all of them have some.

        Where the two cannot both be right, that of the trials is the answer: it assumes nothing about the surface.
        """
        ids = np.flatnonzero(chosen)
        if answer.inferred == 0 or self.pooling(among) is None or not np.isin(ids, self.measured_ids).all():
            return answer
        free = own_trials.region(self.outcomes, ids, among, confidence, finite=self.population == "data")
        if free.left_out:
            return answer
        found, modelled = (free.estimate, free.low, free.high), (answer.robustness, answer.low, answer.high)
        if not disagree(modelled, found):
            return replace(answer, model_free=found)
        return replace(
            answer,
            robustness=free.estimate,
            low=free.low,
            high=free.high,
            drop=answer.drop + free.estimate - answer.robustness,
            model_free=found,
            disagrees=True,
            modelled=modelled,
        )

    def _answer(
        self, chosen: NDArray[np.bool_], among: Bits | None, confidence: float, *, anytime: bool = False
    ) -> Answer:
        usual = among is None and confidence == 0.95 and not anytime
        pooling = self.pooling(among)
        # A pooling surrogate keeps what it predicts: of a large space only what is asked for need be.
        if usual and (pooling is None or self.estimated):
            view = self._whole
        else:
            wanted = chosen | (np.arange(len(chosen)) == 0)  # the clean test too: the drop is from there
            view = self.view(None, among, confidence, anytime=anytime, chosen=wanted)
        estimate, low, high = (array[chosen] for array in (view.estimate, view.low, view.high))
        measured = int(np.count_nonzero(view.alone[chosen]))
        bounds = self._bounds(chosen, view, among, self._looked(confidence) if anytime else confidence)
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

    def _bounds(
        self, chosen: NDArray[np.bool_], view: RateTable, among: Bits | None, confidence: float
    ) -> tuple[float, float]:
        """Of the mean over some tests: from the covariance of their errors where that is known, else mean bounds."""
        clean = (float(view.low[0]), float(view.high[0])) if view.alone[0] else None
        surrogate = None if clean is not None and not chosen[1:].any() else self.pooling(among)
        if surrogate is None:
            return float(view.low[chosen].mean()), float(view.high[chosen].mean())
        return region(surrogate, self.space, chosen, clean, confidence)

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
            asked, known = queries.printable(inputs, 200), _listing(np.unique(self.labels))
            raise InputError(f'inputs: "{asked}" selects no input (labels are {known})')
        # A class of which this run has no input, and the data no name, is a slip of the pen.
        classes = np.union1d(self.labels, np.arange(len(self.classes or ())))
        if len(unknown := np.setdiff1d(compiled.equated("label"), classes)):
            raise InputError(f"inputs: there is no label {_listing(unknown)} (labels are {_listing(classes)})")
        return self._bits(chosen)

    def _bits(self, chosen: NDArray[np.bool_]) -> Bits:
        """Inputs as bits in visiting order."""
        return pack(chosen[self.order])


def _listing(values: NDArray[Any], most: int = 12) -> str:
    shown = ", ".join(map(str, values[:most].tolist()))
    return shown + (", …" if len(values) > most else "")
