"""One property at a time: what a model answers, given class, property and severity, and how well that is known.

What is known of a row is its Dirichlet posterior: the counts of its answers and the prior. Rows hang together, as the
same inputs went through all severities of all properties. Both are kept by drawing a weight for every input and using
it in all rows that the input is in (the Bayesian bootstrap: Rubin, Annals of Statistics 9, 1981): the weights of the
inputs with one answer add up to a gamma variate of that count, so that each row by itself is a draw from its
posterior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from testifai.errors import InputError
from testifai.locality.learning import pseudo_counts, row_means
from testifai.locality.local import Local
from testifai.tomogram.context import Known
from testifai.tomogram.statements import Floats, Variable


@dataclass(frozen=True, eq=False)
class SingleTables:
    """P(answer | class, property, severity), one property on at a time.

    `answers` has the axes class, property, severity and answer; a severity that a property does not have is never met.
    """

    parents: ClassVar[tuple[str, ...]] = ("class", "property", "severity")

    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    properties: tuple[str, ...]
    severities: tuple[int, ...]  # of any property, without 0
    answers: Floats = field(repr=False)
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
    """The tables as the means of their Dirichlet posteriors, with the prior of `learn`.

    >>> local = Local.from_counts(["cat", "dog"], ["fog"], [[1]], [[[[17, 3], [1, 19]]]])
    >>> learn_single(local).answers[0, 0, 0].round(3).tolist()
    [0.833, 0.167]
    """
    severities = tuple(sorted({severity for levels in local.severities for severity in levels}))
    shape = (len(local.classes), len(local.properties), len(severities), len(local.outputs))
    answers, met = np.full(shape, 1 / shape[-1]), np.zeros(shape[1:3])
    for place, (levels, rows) in enumerate(zip(local.severities, row_means(local, prior), strict=True)):
        at = [severities.index(level) for level in levels]
        answers[:, place, at], met[place, at] = rows, 1 / len(levels)
    empty = sum(
        int((local.trials[:, place, : len(levels)] == 0).sum()) for place, levels in enumerate(local.severities)
    )
    notes = (f"{empty} rows of a class under one property have no trials: they are the prior's",) if empty else ()
    return SingleTables(local.classes, local.outputs, local.properties, severities, answers, met, local.weights, notes)


def resampled(local: Local, prior: float = 0.5, *, count: int, seed: int = 0) -> Iterator[SingleTables]:
    """So many draws of the tables from what is known of them."""
    generator = np.random.Generator(np.random.Philox(seed))
    pseudo = pseudo_counts(local, prior)
    for _ in range(count):
        counted = _weighted(local, generator) if local.sampled is not None else _gamma_counts(local, generator)
        yield learn_single(replace(local, confusion=counted + generator.gamma(pseudo, size=counted.shape)), 0)


def _weighted(local: Local, generator: np.random.Generator) -> Floats:
    """The counts (property, severity, class, answer) with a weight for every input."""
    assert local.sampled is not None
    predicted, classes = local.sampled.predicted, local.sampled.classes
    weights = generator.gamma(1.0, size=len(classes))
    rows, columns = len(local.classes), len(local.outputs)
    counts = np.zeros(local.confusion.shape)
    for which, level in np.ndindex(predicted.shape[1:]):
        said = predicted[:, which, level]
        tried = said >= 0
        sums = np.bincount(classes[tried] * columns + said[tried], weights[tried], minlength=rows * columns)
        counts[which, level] = sums.reshape(rows, columns)
    return counts


def _gamma_counts(local: Local, generator: np.random.Generator) -> Floats:
    """Counts alone do not tell which inputs are the same: the cautious way is that luck is shared by all rows."""
    from scipy.special import gammaincinv

    luck = np.broadcast_to(generator.random(local.confusion.shape[2:]), local.confusion.shape)
    counts = np.zeros(local.confusion.shape)
    some = local.confusion > 0
    counts[some] = gammaincinv(local.confusion[some], luck[some])
    return counts
