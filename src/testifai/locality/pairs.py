"""`composed`: the global robustness of a composed system, measured on real combinations of perturbed inputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai import data as datasets
from testifai import models
from testifai.errors import InputError
from testifai.locality.compose import SHARES, Combine, Expected, Global, Prediction, Setting, build, read_conditions
from testifai.locality.local import Local, Rates, Sampled, bounded_arms, clipped, shared_variance
from testifai.locality.measure import known_classes, local
from testifai.space import Space
from testifai.statistics.differences import difference_limits
from testifai.statistics.intervals import wilson
from testifai.statistics.multiplicity import confidence_each
from testifai.support.progress import Step
from testifai.support.serialization import plain
from testifai.support.types import Bools, Floats, Record, RecordLike


@dataclass(frozen=True, eq=False)
class Agreement:
    """Measured minus predicted, for every (tuple, condition), the severities' mean."""

    tuples: tuple[tuple[str, ...], ...]
    conditions: tuple[str, ...]
    predicted: Rates
    measured: Rates
    difference: Floats
    low: Floats  # bounds all the differences together at 95 % (Bonferroni)
    high: Floats
    inside: Bools  # the measurement is in the interval predicted at 95 % for a measurement of its size
    disagrees: Bools  # 0 is not between low and high: the parts are shown to depend on each other
    told: Prediction = field(repr=False)
    seen: Measurement = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"<Agreement: measured less predicted {self.mean_difference:+.3f} on average, {self.inside.mean():.0%} "
            f"inside their intervals, {int(self.disagrees.sum()):,} of {self.disagrees.size:,} disagree>"
        )

    @property
    def mean_difference(self) -> float:
        """Over all tuples and conditions; `told.overall` and `seen.overall` are the two with their intervals."""
        return float(self.difference.mean())

    def as_dict(self) -> Record:
        return {
            "predicted": {"overall": plain(self.told.overall), "by_condition": plain(self.told.by_condition)},
            "measured": {"overall": plain(self.seen.overall), "by_condition": plain(self.seen.by_condition)},
            "conditions": list(self.conditions),
            "tuples": len(self.tuples),
            "combinations": int(self.seen.trials.sum()),
            "inside": float(self.inside.mean()),
            "disagreements": int(self.disagrees.sum()),
            "statements": self.statements(),
        }

    def statements(self) -> list[str]:
        """One line for every disagreement, the largest first, or one that says there is none."""
        if not self.disagrees.any():
            count = self.difference.size
            return [f"prediction and measurement agree in all {count} cases; no dependence between the parts is shown"]
        order = np.argsort(-np.abs(self.difference[self.disagrees]), kind="stable")
        written = []
        for place, which in np.argwhere(self.disagrees)[order].tolist():
            seen, told = (
                f"{rates.rate[place, which]:.3f} ({rates.low[place, which]:.3f} to {rates.high[place, which]:.3f})"
                for rates in (self.measured, self.predicted)
            )
            side = "lower" if self.difference[place, which] < 0 else "higher"
            written.append(
                f"{' and '.join(self.tuples[place])} under {self.conditions[which]}: measured {seen}, "
                f"predicted {told}; {side} than parts that fail independently of each other give"
            )
        return written


def agreement(predicted: Prediction, measured: Measurement) -> Agreement:
    """Compare a prediction with a measurement on other inputs, corrected for looking at many tuples and conditions.

    Args:
        predicted: by `compose`
        measured: by `composed` or `paired`, on other inputs

    >>> from testifai.locality import Local, Sampled, compose
    >>> from testifai.locality.pairs import paired
    >>> right = np.arange(400) % 200 >= 40  # the first 40 of each class fail
    >>> classes = np.repeat([0, 1], 200)
    >>> answers = np.where(right, classes, 1 - classes).astype(np.int32)[:, None, None]
    >>> counts = [[[[160, 40], [40, 160]]]]
    >>> single = Sampled(np.arange(400), classes, answers)
    >>> table = Local.from_counts(["0", "1"], ["noise"], [[1]], counts, sampled=single)
    >>> together = [(i, 200 + i) for i in range(200)]  # failing inputs always meet failing ones, and cancel
    >>> found = agreement(compose(table), paired(table, pairs=together))
    >>> found.difference.round(2).tolist(), found.disagrees.tolist()
    ([[0.32]], [[True]])
    >>> found.statements()[0].split("; ")[1]
    'higher than parts that fail independently of each other give'
    """
    if predicted.conditions != measured.conditions or predicted.severities != measured.severities:
        raise InputError(
            f"conditions: predicted {', '.join(predicted.conditions)}, measured {', '.join(measured.conditions)}; "
            "accepted: the same conditions and severities"
        )
    places = {one: place for place, one in enumerate(predicted.tuples)}
    if missing := [one for one in measured.tuples if one not in places]:
        raise InputError(f"tuples: {' and '.join(missing[0])} was measured but not predicted; predict it too")
    rows = np.array([places[one] for one in measured.tuples])
    told, seen = predicted.mean.at(rows), measured.mean
    low, high = _bounds(told, seen)
    strict = confidence_each(seen.rate.size)
    wide = _means(seen.rate, measured.variance, measured.trials, strict)
    all_low, all_high = _bounds(predicted.at(strict).mean.at(rows), wide)
    inside, disagrees = (low <= 0) & (high >= 0), (all_low > 0) | (all_high < 0)
    return Agreement(
        measured.tuples, measured.conditions, told, seen, seen.rate - told.rate, all_low, all_high, inside, disagrees,
        predicted, measured,
    )  # fmt: skip


def _bounds(told: Rates, seen: Rates) -> tuple[Floats, Floats]:
    return difference_limits(told.rate, (told.low, told.high), seen.rate, (seen.low, seen.high))


Rows = NDArray[np.intp]  # (combination, part): rows of the sampled inputs


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Global):
    """Measured (Eq. 5 of the Bayesian-network framework), with Wilson intervals for new combinations of new inputs."""

    passes: NDArray[np.int64]  # (tuple, condition, severity)
    trials: NDArray[np.int64]  # (tuple): combinations
    variance: Floats  # (tuple, condition): of a combination's mean over the severities
    dropped: int = 0  # given combinations that contain an input that was not sampled


def composed(
    model: Any,
    data: Any,
    properties: RecordLike | Space,
    combine: Combine | None = None,
    arity: int = 2,
    expected: Expected | None = None,
    *,
    pairs: int | ArrayLike | None = 200,
    conditions: Sequence[str | Sequence[str]] | None = None,
    tuples: Sequence[Sequence[Any]] | None = None,
    share: str = SHARES[0],
    among: str = "correct",
    exclude: ArrayLike | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    batch_size: int | None = None,
    workers: int | str | None = None,
    progress: bool | Callable[[Step], None] = False,
) -> Measurement:
    """Perturb real inputs, combine the model's answers on them, and count how often the system is right.

    Args:
        model: what `ta.scan` takes: a function, a path, an estimator, a module
        data: what `ta.scan` takes: (inputs, labels), a path, a data set, a frame
        properties: written as the axes of a space
        combine: the system, as for `compose`
        arity: how many parts the system has
        expected: what is right, as for `compose`
        pairs: random combinations per tuple of classes; None: as many as there are; or rows of `arity` input numbers
        conditions: the properties of the parts, as for `compose`
        tuples: the combinations of classes, as for `compose`
        share: what the parts have in common, as for `compose`
        among: inputs that the model gets right, "correct", or "all"
        exclude: numbers of inputs never to draw, such as those behind a prediction (`local.sampled.ids`)
        seed: of all that is drawn
        store: a run file to keep what is measured in, and to go on from; None: nothing is kept
        batch_size: inputs handed to the model at once; None: what is quickest
        workers: how many work side by side here, or 'ray' and 'ray:ADDRESS'; None: as the model allows
        progress: True for a bar, or a function that is called with every step

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 400)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> found = composed(model, (rows, model(rows)), {"shift": shift}, pairs=None)
    >>> found.tuples[2], found.mean.rate[2].tolist(), found.trials.tolist()
    (('1', '1'), [1.0], [100, 200, 100])
    """
    model, data = models.wrap(model), datasets.wrap(data)
    space = properties if isinstance(properties, Space) else Space(properties)
    number, given = read_pairs(pairs, arity)
    # What can be refused is refused before the model runs.
    labels, names = known_classes(model, data)
    tested = [names[one] for one in np.unique(labels if given is None else labels[given[given < len(labels)]])]
    system = build(tested, [*tested, *(name for name in names if name not in tested)], combine, arity, expected)
    read_conditions(space.names, tuple(axis.severities[1:] for axis in space.axes), conditions, arity, share)
    system.tuples(tuples, interchangeable=True)
    fresh = local(
        model, data, space, None if number is None else number * arity, seed, store, among=among, exclude=exclude,
        inputs=None if given is None else np.unique(given), batch_size=batch_size, workers=workers, progress=progress,
    )  # fmt: skip
    options: Record = {"pairs": pairs, "conditions": conditions, "tuples": tuples, "share": share, "seed": seed}
    return paired(fresh, combine, arity, expected, **options)


def paired(
    fresh: Local,
    combine: Combine | None = None,
    arity: int = 2,
    expected: Expected | None = None,
    *,
    pairs: int | ArrayLike | None = None,
    conditions: Sequence[str | Sequence[str]] | None = None,
    tuples: Sequence[Sequence[Any]] | None = None,
    share: str = SHARES[0],
    seed: int = 0,
) -> Measurement:
    """Measure, as `composed` does, on inputs whose answers are known already, one by one, in a table of `local`.

    Args:
        fresh: the table with the single answers
        combine: the system, as for `compose`
        arity: how many parts the system has
        expected: what is right, as for `compose`
        pairs: as for `composed`
        conditions: the properties of the parts, as for `compose`
        tuples: the combinations of classes, as for `compose`
        share: what the parts have in common, as for `compose`
        seed: of all that is drawn
    """
    if fresh.sampled is None:
        raise InputError("local: this table has counts alone; combinations need the single inputs, as local() keeps")
    setting = Setting.of(fresh, combine, arity, expected, conditions, tuples, share)
    number, given = read_pairs(pairs, arity)
    # Inputs that were tried under every property and severity
    tried = [fresh.sampled.predicted[:, which, : len(levels)] >= 0 for which, levels in enumerate(fresh.severities)]
    usable, dropped = np.flatnonzero(np.concatenate(tried, axis=1).all(axis=1)), 0
    if given is None:
        groups = {classes: _draw(fresh.sampled, usable, classes, number, seed) for classes in setting.tuples}
    else:
        row_of = np.full(int(max(given.max(), fresh.sampled.ids.max())) + 1, -1, np.intp)
        row_of[fresh.sampled.ids[usable]] = usable
        rows = row_of[given]
        known = (rows >= 0).all(axis=1)
        dropped = int((~known).sum())
        groups = _group(fresh.sampled, rows[known], setting.tuples, swap=setting.interchangeable)
    groups = {classes: rows for classes, rows in groups.items() if len(rows)}
    if not groups:
        raise InputError("pairs: no combination is left in which every input was sampled; accepted: at least one")
    return _count(replace(setting, tuples=list(groups)), list(groups.values()), dropped)


def _count(setting: Setting, groups: list[Rows], dropped: int) -> Measurement:
    sampled, parts, share = setting.local.sampled, setting.cells[2], setting.shares
    assert sampled is not None
    answers = sampled.predicted.reshape(len(sampled.ids), -1)
    passed = np.zeros((len(groups), len(parts)), np.int64)
    mean, variance = np.empty((len(groups), len(share))), np.empty((len(groups), len(share)))
    apart = []
    for place, (classes, rows) in enumerate(zip(setting.tuples, groups, strict=True)):
        given = tuple(answers[rows[:, [part]], parts[:, part]] for part in range(len(classes)))
        right = setting.system.codes[given] == setting.system.right[classes]  # (combination, cell)
        passed[place] = right.sum(axis=0)
        each = right @ share.T
        mean[place], variance[place] = each.mean(axis=0), each.var(axis=0)
        apart.append((each - mean[place]) / np.sqrt(len(rows) * max(len(rows) - 1, 1)) / len(groups))
    trials = np.array([len(rows) for rows in groups])
    passes, tried = setting.grid(passed, 0), setting.grid(np.broadcast_to(trials[:, None], passed.shape), 0)
    with np.errstate(invalid="ignore"):
        rate = passes / tried
    inputs, moved = np.concatenate(groups), np.concatenate(apart)
    by_condition = _over_tuples(mean.mean(axis=0), inputs, moved)
    overall = _over_tuples(mean.mean(keepdims=True)[0], inputs, moved.mean(axis=1, keepdims=True)).numbers()
    return Measurement(
        setting.tuple_names, setting.condition_names, setting.severities, rate, *wilson(passes, tried),
        _means(mean, variance, trials, 0.95), by_condition, overall, passes, trials, variance, dropped,
    )  # fmt: skip


def _means(mean: Floats, variance: Floats, trials: NDArray[np.int64], confidence: float) -> Rates:
    counts = np.broadcast_to(trials[:, None].astype(float), mean.shape)
    return clipped(mean, bounded_arms(mean, variance, counts, confidence))


def _over_tuples(mean: Floats, rows: Rows, apart: Floats) -> Rates:
    """Means (estimate) over all tuples; `apart` is how far each combination moves them, and `rows` its inputs."""
    independent = np.full(len(mean), len(np.unique(rows)) / rows.shape[1])
    return clipped(mean, bounded_arms(mean, shared_variance(rows, apart) * independent, independent))


def _draw(sampled: Sampled, usable: NDArray[np.intp], classes: tuple[int, ...], most: int | None, seed: int) -> Rows:
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *classes])))
    columns: list[NDArray[np.intp]] = [np.empty(0, np.intp)] * len(classes)
    for one in sorted(set(classes)):
        own = generator.permutation(usable[sampled.classes[usable] == one])
        seats = [part for part, other in enumerate(classes) if other == one]
        for seat, rows in zip(seats, np.split(own[: len(own) // len(seats) * len(seats)], len(seats)), strict=True):
            columns[seat] = rows
    count = min(len(rows) for rows in columns)
    return np.stack([rows[: count if most is None else min(count, most)] for rows in columns], axis=1)


def _group(sampled: Sampled, rows: Rows, wanted: list[tuple[int, ...]], *, swap: bool) -> dict[tuple[int, ...], Rows]:
    classes = sampled.classes[rows]
    if swap:
        order = np.argsort(classes, axis=1, kind="stable")
        rows, classes = np.take_along_axis(rows, order, axis=1), np.take_along_axis(classes, order, axis=1)
    return {one: rows[(classes == (sorted(one) if swap else one)).all(axis=1)] for one in wanted}


def read_pairs(pairs: Any, arity: int) -> tuple[int | None, Rows | None]:
    if pairs is None:
        return None, None
    try:
        rows = np.asarray(pairs)
    except ValueError:
        rows = np.empty(0)
    whole = rows.dtype.kind in "iu"
    if rows.ndim == 0 and whole and rows >= 1:
        return int(rows), None
    if rows.ndim != 2 or rows.shape[1] != arity or not whole or not len(rows) or rows.min() < 0:
        given = repr(pairs) if rows.ndim == 0 else f"shape {rows.shape} of {rows.dtype}"
        raise InputError(
            f"pairs: {given} is not accepted; a number from 1, rows of {arity} input numbers, or None for all are"
        )
    return None, rows.astype(np.intp)
