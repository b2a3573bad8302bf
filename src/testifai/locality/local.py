"""Local robustness: how often, and how surely, each class survives each property at each severity.

The arrays have the axes `classes`, `properties`, and the severities of each property without 0 (padded with NaN rates
and 0 trials). Columns of the confusion are `outputs`: the classes first, in the same order, then other answers.

Intervals: every estimate here, a mean rate or the robustness of a composed system, is approximately a sum over classes
of means of values in a known range: an input of the class adds g[answer] for every cell (property, severity) that the
estimate uses. Inputs of different classes are independent, the cells of a class are not: the same inputs went through
all of them. So each class gets one interval, from its inputs' own sums, and the arms of the classes add in squares
(MOVER: Zou and Donner, Statistics in Medicine 27, 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.statistics.intervals import half_widths, wilson
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Array, Bools, Floats, Record, RecordLike
from testifai.support.views import view

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Arms = tuple[Floats, Floats]  # how far down, how far up


def bounded_arms(mean: Floats, variance: Floats, trials: Floats, confidence: float = 0.95) -> Arms:
    """Arms for the mean of values in 0..1: Wilson's interval for as many 0/1 trials as have the same variance."""
    centre, squared, _ = _cautious(mean, variance, trials, confidence)
    effective = trials * centre * (1 - centre) / squared
    low, high = wilson(mean * effective, effective, None, confidence)
    return mean - low, high - mean


def coull_arms(mean: Floats, variance: Floats, trials: Floats, confidence: float = 0.95) -> Arms:
    """Arms by Agresti and Coull (1998), for terms of a sum: Wilson's interval has no upper arm at a mean of 1."""
    centre, squared, z2 = _cautious(mean, variance, trials, confidence)
    half = np.sqrt(z2 * squared / (trials + z2))
    return mean - centre + half, centre + half - mean


def _cautious(mean: Floats, variance: Floats, trials: Floats, confidence: float) -> tuple[Floats, Floats, float]:
    """Mean and variance with z^2/2 more values at 0 and at 1, and z^2."""
    z2 = half_widths(confidence) ** 2
    centre = (trials * mean + z2 / 2) / (trials + z2)
    squares = trials * (variance + (mean - centre) ** 2) + z2 / 2 * (centre**2 + (1 - centre) ** 2)
    return centre, squares / (trials + z2), z2


def class_arms(
    local: Local, place: int, gradient: Floats, confidence: float = 0.95, arms: Callable[..., Arms] = bounded_arms
) -> Arms:
    """Arms that a class's finite trials give to estimates; `gradient` is (estimate, property, severity, output).

    Single inputs, if known, each add up over all cells. With counts only, the cells' arms are added: this is as wide
    as possible, and right if the same inputs fail in all of them.
    """

    def scaled(mean: Floats, variance: Floats, trials: Floats, least: Floats, most: Floats) -> Arms:
        """Arms of values between `least` and `most`, 0 if every answer gives the same value."""
        width = most - least
        scale = np.where(width > 0, width, 1.0)
        down, up = arms(np.clip((mean - least) / scale, 0, 1), variance / scale**2, trials, confidence)
        return np.where(width > 0, down * width, 0.0), np.where(width > 0, up * width, 0.0)

    used = np.flatnonzero(gradient.any(axis=(0, 3)).reshape(-1))
    flat = gradient.reshape(len(gradient), -1, gradient.shape[-1])[:, used]
    least, most = flat.min(axis=-1), flat.max(axis=-1)
    if local.sampled is not None and bool((flat.any(axis=-1).sum(axis=-1) > 1).any()):
        # (input, cell); usable if all inputs of the class were tried in all the cells
        own = local.sampled.predicted[local.sampled.classes == place].reshape(-1, local.trials[place].size)[:, used]
        if len(own) and bool((own >= 0).all()):
            values = flat[:, np.arange(len(used)), own].sum(axis=-1)  # (estimate, input)
            trials = np.full(len(flat), float(len(own)))
            return scaled(values.mean(axis=1), values.var(axis=1), trials, least.sum(axis=-1), most.sum(axis=-1))
    answers = local.answers[place].reshape(-1, flat.shape[-1])[used]
    trials = np.broadcast_to(local.trials[place].reshape(-1)[used].astype(np.float64), least.shape)
    mean = (flat * answers).sum(axis=-1)
    variance = np.maximum((flat**2 * answers).sum(axis=-1) - mean**2, 0)
    down, up = scaled(mean, variance, trials, least, most)
    return down.sum(axis=-1), up.sum(axis=-1)


def shared_variance(rows: NDArray[np.intp], errors: Floats) -> Floats:
    """The variance (estimate) of sums of errors (combination, estimate) whose combinations share inputs.

    `rows` (combination, part) are the inputs of each. Combinations are correlated if they share an input: the products
    of their errors count once for every shared input (Aronow, Samii and Assenova, Political Analysis 23, 2015).

    >>> shared_variance(np.array([[0, 1], [0, 2]]), np.array([[0.5], [0.5]])).tolist()
    [1.0]
    """
    sums = np.zeros((int(rows.max()) + 1, errors.shape[1]))
    for part in rows.T:
        np.add.at(sums, part, errors)
    alone = (errors**2).sum(axis=0)
    # A combination shares all its inputs with itself; chance may make what others add to that negative.
    return np.asarray(np.maximum((sums**2).sum(axis=0) - (rows.shape[1] - 1) * alone, alone))


def together(arms: Sequence[Arms]) -> Arms:
    down, up = (np.sqrt(sum(np.square(part) for part in side)) for side in zip(*arms, strict=True))
    return down, up


def clipped(mean: Any, arms: Arms) -> Rates:
    return Rates(mean, np.clip(mean - arms[0], 0, 1), np.clip(mean + arms[1], 0, 1))


@dataclass(frozen=True, eq=False)
class Sampled:
    """The single inputs behind the counts."""

    ids: NDArray[np.intp]  # numbers of the inputs in the data
    classes: NDArray[np.intp]  # indices of the true classes
    predicted: NDArray[np.int32]  # (input, property, severity): index of the output, -1 if the input was not tried
    confidence: NDArray[np.float32] | None = None  # of each prediction, NaN if unknown

    def __repr__(self) -> str:
        return f"<Sampled: {len(self.ids):,} inputs of {len(np.unique(self.classes)):,} classes>"

    def part(self, rows: Array) -> Sampled:
        sure = None if self.confidence is None else self.confidence[rows]
        return Sampled(self.ids[rows], self.classes[rows], self.predicted[rows], sure)


def count_answers(
    predicted: NDArray[np.int32], classes: NDArray[np.intp], rows: int, columns: int, weights: Floats | None = None
) -> Array:
    """The confusion (property, severity, true class, output) of answers (input, property, severity); -1 is none."""
    shape = (*predicted.shape[1:], rows, columns)
    inputs, which, level = np.nonzero(predicted >= 0)
    cells = np.ravel_multi_index((which, level, classes[inputs], predicted[inputs, which, level]), shape)
    each = None if weights is None else weights[inputs]
    return np.bincount(cells, each, math.prod(shape)).reshape(shape)


def joined(right: Floats, answers: Floats) -> Floats:
    """Rows (class, ..., output) with these rates of right answers; the rest is shared out like the wrong `answers`.

    If all of these are 0 it is shared out evenly.
    """
    classes, outputs = answers.shape[0], answers.shape[-1]
    own = np.eye(classes, outputs, dtype=np.bool_).reshape(classes, *[1] * (answers.ndim - 2), outputs)
    wrong = np.where(own, 0.0, answers)
    total = wrong.sum(axis=-1, keepdims=True)
    share = np.where(total > 0, wrong / np.where(total > 0, total, 1), ~own / max(outputs - 1, 1))
    return np.asarray(np.where(own, right[..., None], share * (1 - right)[..., None]))


def class_means(values: Array, classes: NDArray[np.intp], rows: int) -> Floats:
    means = np.full((rows, *values.shape[1:]), np.nan)
    for place in range(rows):
        mine = values[classes == place]
        known = ~np.isnan(mine)
        with np.errstate(invalid="ignore"):
            means[place] = np.where(known, mine, 0).sum(axis=0, dtype=np.float64) / known.sum(axis=0)
    return means


@dataclass(frozen=True, eq=False)
class Confidences:
    """Mean confidence of "all", "right" and "wrong" answers; NaN where there is no such answer."""

    classes: tuple[str, ...]
    properties: tuple[str, ...]
    cells: Mapping[str, Rates]  # (class, property)
    by_property: Mapping[str, Rates]
    answers: Mapping[str, NDArray[np.int64]]  # (class, property): how many

    def __repr__(self) -> str:
        means = ", ".join(f"{kind} {np.nanmean(self.by_property[kind].rate):.3f}" for kind in ("right", "wrong"))
        return f"<Confidences of {len(self.classes):,} classes under {', '.join(self.properties)}: mean when {means}>"

    def as_dict(self) -> Record:
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}


def confidences(local: Local) -> Confidences | None:
    """The mean confidences of a table, or None where the model or the table tells none of single inputs.

    Args:
        local: the table

    >>> from testifai.locality.local import Sampled
    >>> single = Sampled(np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1], np.int32)[:, None, None],
    ...                  np.array([0.9, 0.6, 0.8, 1.0], np.float32)[:, None, None])
    >>> table = Local.from_counts(["cat", "dog"], ["fog"], [[1]], [[[[1, 1], [0, 2]]]], sampled=single)
    >>> found = confidences(table)
    >>> found.cells["right"].rate.round(2).tolist(), found.by_property["wrong"].rate.round(2).tolist()
    ([[0.9], [0.9]], [0.6])
    """
    sampled = local.sampled
    if sampled is None or sampled.confidence is None or np.isnan(sampled.confidence).all():
        return None
    sure = sampled.confidence.astype(np.float64)
    told = ~np.isnan(sure)
    right = sampled.predicted == sampled.classes[:, None, None]
    members = np.arange(len(local.classes))[:, None] == sampled.classes  # (class, input)
    cells, by_property, answers = {}, {}, {}
    for name, chosen in zip(("all", "right", "wrong"), (told, told & right, told & ~right), strict=True):
        sums, counts = np.where(chosen, sure, 0).sum(axis=2), chosen.sum(axis=2)  # (input, property)
        each = [_ratio(sums[mine], counts[mine]) for mine in members]
        cells[name] = Rates(*(np.stack(part) for part in zip(*each, strict=True)))
        by_property[name] = Rates(*_ratio(sums, counts))
        answers[name] = np.stack([counts[mine].sum(axis=0) for mine in members])
    return Confidences(local.classes, local.properties, cells, by_property, answers)


def _ratio(sums: Floats, counts: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """(property): the mean of all answers with its interval; an input has `counts` of them that add up to `sums`."""
    total, inputs = counts.sum(axis=0), np.maximum(np.count_nonzero(counts, axis=0), 1)
    with np.errstate(invalid="ignore"):
        mean = sums.sum(axis=0) / total
    apart = sums - np.nan_to_num(mean) * counts
    # Variance of a ratio of sums over inputs (Cochran, Sampling Techniques, 1977, section 6.4).
    variance = (apart**2).sum(axis=0) * inputs**2 / np.maximum(inputs - 1, 1) / np.maximum(total, 1) ** 2
    found = clipped(mean, bounded_arms(np.nan_to_num(mean), variance, inputs.astype(np.float64)))
    return found.rate, found.low, found.high


Counts = Array  # whole numbers, or expected counts of a table that is given and not measured


@dataclass(frozen=True)
class Rates:
    """Rates with their 95 % intervals: numbers or arrays of the same shape."""

    rate: Any
    low: Any
    high: Any

    def __repr__(self) -> str:
        if np.ndim(self.rate) == 0:
            return f"<Rates {estimate_text(self.rate, self.low, self.high)}>"
        known = self.rate[~np.isnan(self.rate)]
        ends = f"from {known.min():.3f} to {known.max():.3f}" if known.size else "unknown"
        return f"<Rates of shape {self.rate.shape}, {ends}, with intervals>"

    def at(self, place: Any) -> Rates:
        return Rates(self.rate[place], self.low[place], self.high[place])

    def numbers(self) -> Rates:
        return Rates(float(self.rate.item()), float(self.low.item()), float(self.high.item()))


@dataclass(frozen=True, eq=False)
class Local:
    """The local robustness of a model: LR_{c,p} of the Bayesian-network framework (Eqs. 1-3), severity by severity.

    >>> table = [[[[17, 3], [1, 19]]]]  # of 20 cats under fog 17 are right; of 20 dogs 19
    >>> local = Local.from_counts(["cat", "dog"], ["fog"], [[1]], table)
    >>> local.rate[:, 0, 0].tolist(), local.by_property().rate.round(3).tolist()
    ([0.85, 0.95], [0.9])
    """

    classes: tuple[str, ...]
    properties: tuple[str, ...]
    severities: tuple[tuple[int, ...], ...]  # per property, without 0
    outputs: tuple[str, ...]  # what the model may answer; begins with the classes
    confusion: Counts  # (property, severity, true class, output)
    confidence: Floats  # (class, property, severity): mean confidence, NaN where the model gives labels alone
    available: NDArray[np.int64]  # (class): how many inputs each could have given
    weights: Floats  # (class): adds up to 1; what means over classes are weighted by
    per_class: int | None = None  # how many inputs of each class were asked for; None: all
    among: str = "correct"  # sampled from the inputs the model gets right, or from "all"
    seed: int | None = None
    sampled: Sampled | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        found = self.overall()
        return (
            f"<Local of {len(self.classes):,} classes under {', '.join(self.properties)}: robustness "
            f"{estimate_text(found.rate, found.low, found.high)}, {int(self.trials.sum()):,} trials>"
        )

    def plot(self, *, dark: bool = False) -> Figure:
        """The robustness of every class under every property with its interval, as a plotly figure."""
        figure: Figure = view("local robustness as a figure")(self, dark=dark)
        return figure

    @cached_property
    def trials(self) -> Counts:
        """(class, property, severity): how many inputs were tried."""
        return np.moveaxis(self.confusion.sum(axis=-1), -1, 0)

    @cached_property
    def passes(self) -> Counts:
        """How many of them the model got right."""
        return np.moveaxis(np.diagonal(self.confusion, axis1=-2, axis2=-1)[..., : len(self.classes)], -1, 0)

    @cached_property
    def rate(self) -> Floats:
        """The local robustness."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.passes / self.trials)

    @cached_property
    def low(self) -> Floats:
        """Of 95 % intervals for new inputs like these (Wilson)."""
        return wilson(self.passes, self.trials)[0]

    @cached_property
    def high(self) -> Floats:
        return wilson(self.passes, self.trials)[1]

    @cached_property
    def measured(self) -> Bools:
        return np.asarray(self.trials > 0)

    @cached_property
    def answers(self) -> Floats:
        """(class, property, severity, output): the share of each answer, P(predicted | class, property, severity)."""
        with np.errstate(invalid="ignore"):
            return np.moveaxis(self.confusion, 2, 0) / self.trials[..., None]

    @property
    def short(self) -> dict[str, int]:
        """The classes that could not give as many inputs as were asked for, and how many they gave."""
        if self.per_class is None or self.sampled is None:
            return {}
        given = np.bincount(self.sampled.classes, minlength=len(self.classes))
        # With weights the classes give unequal numbers; one is short only where it gave all it had.
        lacking = (given < self.per_class) & (given == self.available)
        return {self.classes[place]: int(given[place]) for place in np.flatnonzero(lacking)}

    def part(self, rows: ArrayLike) -> Local:
        """The table of some of the sampled inputs, by row or mask."""
        if self.sampled is None:
            raise InputError("part: this table has counts alone; only one with the single inputs has parts")
        taken = self.sampled.part(np.asarray(rows))
        counts = count_answers(taken.predicted, taken.classes, len(self.classes), len(self.outputs))
        sure = np.full(taken.predicted.shape, np.nan) if taken.confidence is None else taken.confidence
        means = class_means(sure, taken.classes, len(self.classes))
        return replace(self, confusion=counts, confidence=means, sampled=taken, per_class=None)

    def by_class_and_property(self) -> Rates:
        """LR_{c,p} as arrays (class, property): the mean over the severities (Eq. 2)."""
        return self._means(self._shares(2), (0, 1))

    def by_property(self) -> Rates:
        """LR_p as arrays (property): the mean over the classes (Eq. 3), weighted if the classes are."""
        return self._means(self._shares(2) * self._class_shares(2), (1,))

    def by_class(self) -> Rates:
        """LR_c as arrays (class): the mean over the properties."""
        return self._means(self._shares(2) * self._shares(1, severities=False), (0,))

    def overall(self) -> Rates:
        """The mean over classes, properties and severities: the grand mean, as numbers."""
        return self._means(self.cell_weights, ()).numbers()

    @cached_property
    def cell_weights(self) -> Floats:
        """(class, property, severity): the weight of each rate in `overall`; they add up to 1."""
        return self._shares(2) * self._shares(1, severities=False) * self._class_shares((1, 2))

    def _shares(self, axis: int, *, severities: bool = True) -> Floats:
        """Equal shares along the axis for what was measured; without severities, a property counts once."""
        counted = self.measured if severities else self.measured.any(axis=2, keepdims=True)
        with np.errstate(invalid="ignore"):
            share = counted / counted.sum(axis=axis, keepdims=True)
        return np.broadcast_to(np.nan_to_num(share), self.rate.shape)

    def _class_shares(self, others: int | tuple[int, ...]) -> Floats:
        """The weights of the classes that were measured anywhere along the other axes, adding up to 1."""
        weights = np.where(self.measured.any(axis=others, keepdims=True), self.weights[:, None, None], 0.0)
        return np.broadcast_to(weights / weights.sum(axis=0, keepdims=True), self.rate.shape)

    def _means(self, weights: Floats, kept: tuple[int, ...]) -> Rates:
        """Weighted means of the cells' rates over all axes but those kept; NaN if nothing was measured."""
        shape = tuple(weights.shape[axis] for axis in kept)
        ends = np.full((3, *shape), np.nan)
        for place in np.ndindex(shape):
            at: list[Any] = [slice(None)] * 3
            for axis, index in zip(kept, place, strict=True):
                at[axis] = index
            share = np.zeros(weights.shape)
            share[tuple(at)] = weights[tuple(at)]
            if not share.any():
                continue
            arms = []
            for own in map(int, np.flatnonzero(share.any(axis=(1, 2)))):
                gradient = np.zeros((1, *share.shape[1:], len(self.outputs)))
                gradient[0, ..., own] = share[own]
                arms.append(class_arms(self, own, gradient))
            mean = float((np.nan_to_num(self.rate) * share).sum())
            down, up = together(arms)
            ends[:, *place] = mean, max(0.0, mean - float(down[0])), min(1.0, mean + float(up[0]))
        return Rates(*ends)

    @classmethod
    def from_counts(
        cls,
        classes: Sequence[str],
        properties: Sequence[str],
        severities: Sequence[Sequence[int]],
        confusion: ArrayLike,
        *,
        outputs: Sequence[str] | None = None,
        confidence: ArrayLike | None = None,
        available: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        per_class: int | None = None,
        among: str = "correct",
        seed: int | None = None,
        sampled: Sampled | None = None,
    ) -> Self:
        """A table from counts (property, severity, true class, output), checked; expected counts may be fractions."""
        outputs = tuple(map(str, classes if outputs is None else outputs))
        classes = tuple(map(str, classes))
        if not classes or outputs[: len(classes)] != classes or len(set(outputs)) < len(outputs):
            raise InputError(f"outputs: {outputs} are not accepted; all different, the classes {classes} first")
        levels = tuple(tuple(int(severity) for severity in one) for one in severities)
        if not properties or len(levels) != len(properties) or not all(levels):
            raise InputError(
                f"severities: got {len(levels)} lists for {len(properties)} properties; one each is needed"
            )
        counts = np.asarray(confusion)
        if counts.dtype.kind not in "iuf" or not np.isfinite(counts).all() or (counts < 0).any():
            raise InputError(
                f"confusion: {counts.dtype} numbers, some below 0 or none at all; counts from 0 are accepted"
            )
        counts = counts.astype(np.int64 if (counts == np.floor(counts)).all() else np.float64)
        shape = (len(properties), max(map(len, levels)), len(classes), len(outputs))
        if counts.shape != shape:
            raise InputError(f"confusion: has shape {counts.shape}; (property, severity, class, output) = {shape} fits")
        padding = np.array([[place >= len(one) for place in range(shape[1])] for one in levels])
        if counts[padding].any():
            raise InputError("confusion: has counts at severities that the property does not have; 0 is accepted there")
        if not counts.any():
            raise InputError("confusion: has no counts at all; at least one trial is needed")
        cells = (shape[2], *shape[:2])
        most = counts.sum(axis=-1).max(axis=(0, 1))
        shares = _floats("weights", np.ones(shape[2]) if weights is None else weights, cells[:1])
        if not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
            raise InputError(f"weights: {shares.tolist()} are not accepted; numbers from 0, one per class, not all 0")
        return cls(
            classes, tuple(map(str, properties)), levels, outputs, counts,
            _floats("confidence", np.full(cells, np.nan) if confidence is None else confidence, cells),
            _floats("available", most if available is None else available, cells[:1]).astype(np.int64),
            shares / shares.sum(), per_class, among, seed, sampled,
        )  # fmt: skip

    def as_dict(self) -> Record:
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_dict(cls, table: RecordLike) -> Self:
        options = dict(table)
        try:
            required = [options.pop(name) for name in ("classes", "properties", "severities", "confusion")]
            single = options.pop("sampled", None)
            if single is not None:
                types: Record = {"ids": np.intp, "classes": np.intp, "predicted": np.int32}
                if single.get("confidence") is not None:
                    types["confidence"] = np.float32  # None becomes NaN
                single = Sampled(**{name: np.array(single[name], kind) for name, kind in types.items()})
            confidence = options.pop("confidence", None)
            if confidence is not None:
                options["confidence"] = np.array(confidence, float)  # None becomes NaN
            return cls.from_counts(*required, sampled=single, **options)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"local robustness: {error!r}; accepted: what as_dict() makes") from None


def _floats(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(values, np.float64)
    if array.shape != shape:
        raise InputError(f"{name}: has shape {array.shape}; {shape} is accepted")
    return array
