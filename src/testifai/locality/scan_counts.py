"""Answers under combinations of properties, counted by class in a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.locality.local import Local
from testifai.support.types import Array, Floats
from testifai.tomogram import Tomogram

Counts = Array


class Scanned:
    """A scan's outcomes on the same kind of inputs as local robustness was measured on, axes it does not know off.

    Counts are (class, answer) where the scan kept what was predicted, else (class, wrong or right).
    """

    def __init__(self, local: Local, levels: tuple[tuple[int, ...], ...], scan: Tomogram) -> None:
        self.local, self.levels, self.scan = local, levels, scan
        names = scan.space.names
        for name in local.properties:
            if name not in names:
                raise InputError(f"scan: has no axis {name!r}; {suggest(name, names)}")
        self._axes = [names.index(name) for name in local.properties]
        self._classes = self._class_places()
        if local.among == "correct":
            # Inputs that are wrong, or were not tried, when nothing is on are not of that kind.
            everything = np.arange(scan.outcomes.inputs)
            clean = scan.outcomes.attempted(0, everything) & scan.outcomes.passed(0, everything)
            self._classes = np.where(clean, self._classes, -1)
        self._predicted = self._output_places() if "predicted" in scan.outcomes.kept_names() else None

    def combinations(self) -> Iterator[tuple[tuple[int, ...], Counts]]:
        """Of every measured configuration with two or more of the properties on: its place in the grid, and counts."""
        ids = self.scan.estimator.measured_ids
        rows = self.scan.space.matrix(ids)[:, : len(self.scan.space.axes)]
        usable = (np.count_nonzero(rows[:, self._axes], axis=1) >= 2) & ~np.delete(rows, self._axes, axis=1).any(axis=1)
        for level, axis in zip(self.levels, self._axes, strict=True):
            usable &= np.isin(rows[:, axis], level)
        for configuration, row in zip(ids[usable].tolist(), rows[usable][:, self._axes].tolist(), strict=True):
            at = tuple(level.index(severity) for level, severity in zip(self.levels, row, strict=True))
            yield at, self.counts(configuration)

    def counts(self, configuration: int) -> Counts:
        """The answers under one configuration."""
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
        """Rows (class, answer) after these counts: the mean of a Dirichlet posterior, `rows` weighing so many trials.

        Where only right and wrong are known, wrong answers are shared out as before.
        """
        if counts.shape == rows.shape and self._predicted is not None:
            return _mean(rows, counts, strength)
        right = rows[np.arange(len(rows)), np.arange(len(rows))]
        both = _mean(np.stack([1 - right, right], axis=1), counts, strength)
        return joined(both[:, 1], np.where(np.eye(*rows.shape, dtype=np.bool_), 0.0, rows))

    def _class_places(self) -> NDArray[np.intp]:
        """For every place of the run's order the number of its class, -1 for one that local robustness has not."""
        labels, known = self.scan.labels, self.local.classes
        if labels is None or labels.ndim != 1:
            raise InputError("scan: has no labels to tell classes by; accepted: a run with one label for each input")
        distinct, inverse = np.unique(labels, return_inverse=True)
        names = [self.scan.classes[int(label)] if self.scan.classes else str(label) for label in distinct.tolist()]
        if not set(names) & set(known):
            raise InputError(
                f"scan: labels ({', '.join(names[:5])}, ...) are none of the classes {', '.join(known[:5])}"
            )
        places = np.array([known.index(name) if name in known else -1 for name in names], np.intp)
        return places[inverse][self.scan.order]

    def _output_places(self) -> Callable[[Array], NDArray[np.intp]]:
        """From kept numbers of answers to places among the outputs, -1 for those that are none."""
        outputs, names = self.local.outputs, self.scan.classes
        if names:
            known = {float(n): outputs.index(name) for n, name in enumerate(names) if name in outputs}
        else:
            known = {float(name): n for n, name in enumerate(outputs) if name.lstrip("-").isdigit()}
        return lambda kept: np.array([known.get(float(value), -1) for value in kept], np.intp)


def joined(right: Floats, wrong: Floats) -> Floats:
    """Rows with these rates of right answers, the rest shared out like `wrong`, evenly where that is all 0.

    >>> joined(np.array([0.9, 0.8]), np.array([[0, 1, 3], [0, 0, 0]])).round(3).tolist()
    [[0.9, 0.025, 0.075], [0.1, 0.8, 0.1]]
    """
    classes, outputs = wrong.shape[0], wrong.shape[-1]
    own = np.eye(classes, outputs, dtype=np.bool_).reshape(classes, *[1] * (wrong.ndim - 2), outputs)
    total = wrong.sum(axis=-1, keepdims=True)
    share = np.where(total > 0, wrong / np.where(total > 0, total, 1), ~own / max(outputs - 1, 1))
    return np.asarray(np.where(own, right[..., None], share * (1 - right)[..., None]))


def _mean(rows: Floats, counts: Counts, strength: float) -> Floats:
    total = counts.sum(axis=-1, keepdims=True) + strength
    return np.asarray(np.where(total > 0, (counts + strength * rows) / np.where(total > 0, total, 1), rows))
