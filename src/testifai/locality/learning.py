"""Tables of P(answer | class, severities), learned from local robustness and from scans of combinations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.locality.local import Local, count_answers, joined
from testifai.support.types import Array, Floats
from testifai.support.validation import choice, number
from testifai.tomogram import Tomogram
from testifai.tomogram.profile_parser import MOST_CELLS, Known, Variable

TOGETHER = ("product", "worst")


@dataclass(frozen=True, eq=False)
class Tables:
    """P(answer | class, severities): axes class, one per property (0 = off first), answer; the classes are first."""

    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    properties: tuple[str, ...]
    severities: tuple[tuple[int, ...], ...]  # of each property, 0 first
    answers: Floats = field(repr=False)
    trials: Array = field(repr=False)  # (class, severities): what each row was measured on, 0 if it is assumed
    notes: tuple[str, ...] = ()  # what was assumed, in words
    weights: Floats | None = field(default=None, repr=False)  # of the classes; None: all alike

    def __repr__(self) -> str:
        sizes = " × ".join(map(str, self.trials.shape))
        measured = f"{np.count_nonzero(self.trials):,} of {self.trials.size:,} measured"
        return f"<Tables of class × {' × '.join(self.properties)}, {sizes}: {measured}>"

    def __post_init__(self) -> None:
        shape = (len(self.classes), *map(len, self.severities), len(self.outputs))
        if self.answers.shape != shape or self.trials.shape != shape[:-1]:
            raise InputError(
                f"answers: shape {self.answers.shape}; accepted: (class, severities ..., answer) = {shape}"
            )
        if not (self.answers >= 0).all() or not np.allclose(self.answers.sum(axis=-1), 1, rtol=0, atol=1e-9):
            raise InputError("answers: rows that are no probabilities; accepted: from 0 up, adding up to 1")

    @property
    def parents(self) -> tuple[str, ...]:
        return ("class", *self.properties)

    def row(self, true_class: str, severities: Mapping[str, int] | None = None) -> dict[str, float]:
        """The probability of each answer; properties not named are off."""
        if true_class not in self.classes:
            raise InputError(f"class: no class {true_class!r}; {suggest(true_class, self.classes)}")
        at = [0] * len(self.properties)
        for name, severity in (severities or {}).items():
            if name not in self.properties:
                raise InputError(f"severities: no property {name!r}; {suggest(name, self.properties)}")
            place = self.properties.index(name)
            if severity not in self.severities[place]:
                accepted = ", ".join(map(str, self.severities[place]))
                raise InputError(f"severities: {name} = {severity!r}; accepted: {accepted}")
            at[place] = self.severities[place].index(severity)
        row = self.answers[(self.classes.index(true_class), *at)]
        return dict(zip(self.outputs, row.tolist(), strict=True))


def learn(local: Local, scan: Tomogram | None = None, *, prior: float = 0.5, together: str = "product") -> Tables:
    """Tables from local robustness and, for several properties together, from a scan that combined them.

    The Dirichlet prior has `prior` trials right and as many wrong, spread over the other answers: with 0.5 the rate of
    right answers has Jeffreys' prior, for any number of classes.

    Combinations that were not measured are assumed, with the weight of the prior: `together="product"` assumes that
    each property is survived independently (noisy-AND) and that failures are due to each property in proportion to its
    failures alone; `"worst"` that the most harmful property alone decides, which is optimistic. A scan that keeps
    "predicted" also tells which wrong answers were given.

    Args:
        local: the table
        scan: outcomes of combinations; None: none were measured
        prior: trials right, and as many wrong, that count before any was made
        together: how properties act together where that was not measured: "product" or "worst"

    >>> local = Local.from_counts(["cat", "dog"], ["fog", "snow"], [[1], [1]],
    ...                           [[[[18, 2], [0, 20]]], [[[15, 5], [0, 20]]]])
    >>> tables = learn(local, prior=0)
    >>> round(tables.row("cat", {"fog": 1, "snow": 1})["cat"], 3)
    0.675
    """
    check_learning(prior, together)
    levels = tuple((0, *severities) for severities in local.severities)
    shape = (len(local.classes), *map(len, levels), len(local.outputs))
    if math.prod(shape) > MOST_CELLS:
        raise InputError(
            f"properties: the table of answers has {math.prod(shape):,} numbers ({' x '.join(map(str, shape))}); "
            f"accepted: up to {MOST_CELLS:,}, with fewer properties, severities or classes at once"
        )
    scanned = None if scan is None else Scanned(local, levels, scan)
    clean = np.eye(shape[0], shape[-1])
    if scanned is not None and local.among == "all":
        clean = scanned.posterior(clean, scanned.counts(0), 2 * prior)
    alone = [np.concatenate([clean[:, None, :], rows], axis=1) for rows in row_means(local, prior)]
    answers = _product(alone) if together == "product" else _worst(alone)
    trials = np.zeros(shape[:-1], local.trials.dtype)
    for place, severities in enumerate(local.severities):
        one = tuple(slice(1, None) if other == place else 0 for other in range(len(local.severities)))
        trials[(slice(None), *one)] = local.trials[:, place, : len(severities)]
    if scanned is not None:
        for at, counts in scanned.combinations():
            here: Any = (slice(None), *at)
            answers[here] = scanned.posterior(answers[here], counts, 2 * prior)
            trials[here] += counts.sum(axis=1)
    notes = tuple(_assumptions(local, scanned, trials, together))
    return Tables(local.classes, local.outputs, local.properties, levels, answers, trials, notes, local.weights)


def _assumptions(local: Local, scanned: Scanned | None, trials: Array, together: str) -> Iterator[str]:
    if local.among == "correct":
        yield "with everything off every answer is right: only inputs that the model gets right were sampled"
    elif scanned is None:
        yield "with everything off every answer is taken to be right: it was not measured"
    orders = np.count_nonzero(np.indices(trials.shape[1:]), axis=0)  # how many properties are on
    joint = trials[:, orders >= 2]
    if joint.size:
        how = "the product of single properties" if together == "product" else "the most harmful property alone"
        assumed = int((joint == 0).sum())
        rest = f", {assumed:,} are assumed: {how}" if assumed else ""
        yield f"of {joint.size:,} rows with several properties on {joint.size - assumed:,} were measured{rest}"
    yield from _without_trials(int((trials[:, orders == 1] == 0).sum()))


def _without_trials(rows: int) -> tuple[str, ...]:
    return (f"{rows} rows of a class under one property have no trials: they are the prior's",) if rows else ()


def row_means(local: Local, prior: float) -> list[Floats]:
    """Per property (class, severity, answer): the mean of the Dirichlet posterior of P(answer | class, severity)."""
    pseudo = pseudo_counts(local, prior)
    means = []
    for place, severities in enumerate(local.severities):
        counts = np.moveaxis(local.confusion[place, : len(severities)], 1, 0) + pseudo[:, None, :]
        total = counts.sum(axis=-1, keepdims=True)
        if not (total > 0).all():
            at = np.argwhere(total[..., 0] <= 0)[0]
            raise InputError(
                f"prior: 0, but {local.classes[at[0]]} has no trials under {local.properties[place]} at severity "
                f"{severities[at[1]]}; accepted: a prior above 0"
            )
        means.append(counts / total)
    return means


def pseudo_counts(local: Local, prior: float) -> Floats:
    """(class, answer): `prior` trials that are right, and as many that are wrong, spread over the other answers."""
    own = np.eye(len(local.classes), len(local.outputs), dtype=bool)
    return np.where(own, prior, prior / max(len(local.outputs) - 1, 1))


def _spread(table: Floats, place: int, count: int) -> Floats:
    """A property's table (class, severity, ...) shaped to spread over the grid (class, severities, ...)."""
    shape = [table.shape[0], *[1] * count, *table.shape[2:]]
    shape[1 + place] = table.shape[1]
    return table.reshape(shape)


def _rights(alone: list[Floats]) -> list[Floats]:
    rates = [np.diagonal(table[:, :, : len(table)], axis1=0, axis2=2).T.copy() for table in alone]
    return [_spread(rate, place, len(alone)) for place, rate in enumerate(rates)]


def _product(alone: list[Floats]) -> Floats:
    """Noisy-AND: right answers r = r_0 Π r_i / r_0, wrong ones by each property in proportion to its failures."""
    rights = _rights(alone)
    off = rights[0][:, :1]
    # A class that is never right when nothing is on stays so.
    beyond = [rate / np.where(off > 0, off, 1) for rate in rights[1:]]
    right = np.clip(math.prod(beyond, start=rights[0]), 0, 1)
    wrong = sum(_spread(table - table[:, :1], place, len(alone)) for place, table in enumerate(alone))
    return joined(right, np.maximum(wrong + _spread(alone[0][:, :1], 0, len(alone)), 0))


def _worst(alone: list[Floats]) -> Floats:
    rights = _rights(alone)
    for place, rate in enumerate(rights):
        off: Any = (slice(None), *[0] * (place + 1))
        rate[off] = np.inf  # what is off does none
    shape = np.broadcast_shapes(*(rate.shape for rate in rights))
    worst = np.stack([np.broadcast_to(rate, shape) for rate in rights]).argmin(axis=0)
    answers = np.zeros((*shape, alone[0].shape[2]))
    for place, table in enumerate(alone):
        answers = np.where((worst == place)[..., None], _spread(table, place, len(alone)), answers)
    return answers


def check_learning(prior: float, together: str) -> None:
    number("prior", prior, least=0)
    choice("together", together, TOGETHER)


@dataclass(frozen=True, eq=False)
class SingleTables:
    """P(answer | class, property, severity), one property on at a time."""

    parents: ClassVar[tuple[str, ...]] = ("class", "property", "severity")

    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    properties: tuple[str, ...]
    severities: tuple[int, ...]  # of any property, without 0
    answers: Floats = field(repr=False)  # (class, property, severity, answer); some severities are never met
    met: Floats = field(repr=False)  # (property, severity): P(severity | property), all equally probable
    weights: Floats = field(repr=False)  # of the classes
    notes: tuple[str, ...] = ()

    def known(self) -> Known:
        """The variables that an answer depends on; a property's own is its severity where it is on, else 0."""
        for name in {"class", "property", "severity"} & set(self.properties):
            raise InputError(f"properties: one is called {name!r}, which the network uses itself; accepted: others")
        count = len(self.properties)
        variables = [
            Variable("property", self.properties, (), np.full(count, 1 / count)),
            Variable("severity", self.severities, ("property",), self.met),
            Variable("class", self.classes, (), self.weights),
        ]
        for place, name in enumerate(self.properties):
            on = np.zeros((count, len(self.severities), 1 + len(self.severities)))
            on[..., 0] = 1
            on[place] = np.eye(len(self.severities), 1 + len(self.severities), 1)
            variables.append(Variable(name, (0, *self.severities), ("property", "severity"), on))
        return Known(tuple(variables), ("severity", *self.properties))


def learn_single(local: Local, prior: float = 0.5) -> SingleTables:
    """The tables as the means of their Dirichlet posteriors, with the prior of `learn`."""
    severities = tuple(sorted({severity for levels in local.severities for severity in levels}))
    shape = (len(local.classes), len(local.properties), len(severities), len(local.outputs))
    answers, met = np.full(shape, 1 / shape[-1]), np.zeros(shape[1:3])
    for place, (levels, rows) in enumerate(zip(local.severities, row_means(local, prior), strict=True)):
        at = [severities.index(level) for level in levels]
        answers[:, place, at], met[place, at] = rows, 1 / len(levels)
    empty = sum(
        int((local.trials[:, place, : len(levels)] == 0).sum()) for place, levels in enumerate(local.severities)
    )
    notes = _without_trials(empty)
    return SingleTables(local.classes, local.outputs, local.properties, severities, answers, met, local.weights, notes)


def resampled(local: Local, prior: float = 0.5, *, count: int, seed: int = 0) -> Iterator[SingleTables]:
    generator = np.random.Generator(np.random.Philox(seed))
    pseudo, sampled, shape = pseudo_counts(local, prior), local.sampled, (len(local.classes), len(local.outputs))
    for _ in range(count):
        if sampled is None:
            counted = _gamma_counts(local, generator)
        else:
            weights = generator.gamma(1.0, size=len(sampled.classes))
            counted = count_answers(sampled.predicted, sampled.classes, *shape, weights)
        yield learn_single(replace(local, confusion=counted + generator.gamma(pseudo, size=counted.shape)), 0)


def _gamma_counts(local: Local, generator: np.random.Generator) -> Floats:
    """Draw from counts alone, which do not identify inputs: cautiously, all rows share the same chance."""
    from scipy.special import gammaincinv

    chance = np.broadcast_to(generator.random(local.confusion.shape[2:]), local.confusion.shape)
    counts = np.zeros(local.confusion.shape)
    some = local.confusion > 0
    counts[some] = gammaincinv(local.confusion[some], chance[some])
    return counts


Counts = Array  # (class, answer) if the scan kept what was predicted, else (class, wrong or right)


class Scanned:
    """A scan's outcomes on the kind of inputs that local robustness was measured on, with all other axes off."""

    def __init__(self, local: Local, levels: tuple[tuple[int, ...], ...], scan: Tomogram) -> None:
        self.local, self.levels, self.scan = local, levels, scan
        names = scan.space.names
        for name in local.properties:
            if name not in names:
                raise InputError(f"scan: has no axis {name!r}; {suggest(name, names)}")
        self._axes = [names.index(name) for name in local.properties]
        labels, known = scan.labels, local.classes
        if labels is None or labels.ndim != 1:
            raise InputError("scan: has no labels to tell classes by; accepted: a run with one label for each input")
        distinct, inverse = np.unique(labels, return_inverse=True)
        found = [scan.classes[int(label)] if scan.classes else str(label) for label in distinct.tolist()]
        if not set(found) & set(known):
            raise InputError(
                f"scan: labels ({', '.join(found[:5])}, ...) are none of the classes {', '.join(known[:5])}"
            )
        places = np.array([known.index(name) if name in known else -1 for name in found], np.intp)
        self._classes = places[inverse][scan.order]  # of every input in the run's order, -1 if it is not in the table
        if local.among == "correct":
            # Inputs that are wrong, or were not tried, when nothing is on are not of that kind.
            everything = np.arange(scan.outcomes.inputs)
            clean = scan.outcomes.attempted(0, everything) & scan.outcomes.passed(0, everything)
            self._classes = np.where(clean, self._classes, -1)
        self._predicted = self._output_places() if "predicted" in scan.outcomes.kept_names() else None

    def combinations(self) -> Iterator[tuple[tuple[int, ...], Counts]]:
        """Yield the index in the grid and the counts of every measured configuration of two or more properties."""
        ids = self.scan.estimator.measured_ids
        rows = self.scan.space.matrix(ids)[:, : len(self.scan.space.axes)]
        usable = (np.count_nonzero(rows[:, self._axes], axis=1) >= 2) & ~np.delete(rows, self._axes, axis=1).any(axis=1)
        for level, axis in zip(self.levels, self._axes, strict=True):
            usable &= np.isin(rows[:, axis], level)
        for configuration, row in zip(ids[usable].tolist(), rows[usable][:, self._axes].tolist(), strict=True):
            at = tuple(level.index(severity) for level, severity in zip(self.levels, row, strict=True))
            yield at, self.counts(configuration)

    def counts(self, configuration: int) -> Counts:
        outcomes, classes = self.scan.outcomes, self._classes
        tried = np.flatnonzero((classes >= 0) & outcomes.attempted(configuration, np.arange(outcomes.inputs)))
        if self._predicted is None:
            answers, width = outcomes.passed(configuration, tried).astype(np.intp), 2
        else:
            kept = outcomes.kept(configuration, "predicted")[tried]
            answers, width = self._predicted(kept), len(self.local.outputs)
            tried, answers = tried[answers >= 0], answers[answers >= 0]
        counts = np.zeros((len(self.local.classes), width), np.int64)
        np.add.at(counts, (classes[tried], answers), 1)
        return counts

    def posterior(self, rows: Floats, counts: Counts, strength: float) -> Floats:
        """Rows (class, answer): the Dirichlet posterior mean after these counts; `rows` weigh `strength` trials."""
        known = self._predicted is not None
        before = rows if known else np.stack([1 - np.diagonal(rows), np.diagonal(rows)], axis=1)
        total = counts.sum(axis=-1, keepdims=True) + strength
        mean = np.where(total > 0, (counts + strength * before) / np.where(total > 0, total, 1), before)
        return mean if known else joined(mean[:, 1], rows)

    def _output_places(self) -> Callable[[Array], NDArray[np.intp]]:
        outputs, names = self.local.outputs, self.scan.classes
        if names:
            known = {float(n): outputs.index(name) for n, name in enumerate(names) if name in outputs}
        else:
            known = {float(name): n for n, name in enumerate(outputs) if name.lstrip("-").isdigit()}
        return lambda kept: np.array([known.get(float(value), -1) for value in kept], np.intp)
