"""Labels that are right but for their numbers: found by the assignment of classes to outputs that fits best."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.statistics.intervals import exact

Ints = NDArray[np.int64]

CONFIDENCE = 0.99  # of each of two intervals: a right numbering should hardly ever be doubted
FEWEST_EACH = 4  # inputs of a class, on average, below which no assignment can be told


@dataclass(frozen=True)
class Misnumbered:
    """Classes that seem to be numbered otherwise than the model's outputs."""

    accuracy: float
    otherwise: float  # accuracy under the assignment learned from other inputs
    inputs: int
    line: str  # to add to a spec's [data]

    def __str__(self) -> str:
        return (
            f"clean accuracy is {self.accuracy:.3f} on {self.inputs:,} inputs, but {self.otherwise:.3f} with the "
            f"classes numbered otherwise: add {self.line} under [data] if that is what the outputs mean"
        )


def misnumbered(
    labels: NDArray[Any] | None, predicted: NDArray[Any], names: Sequence[str] | None, outputs: int | None
) -> Misnumbered | None:
    """Whether another assignment of classes to outputs fits so much better that this one is most likely a mistake.

    The assignment is learned from one half of the inputs and judged on the other, and the other way round; it is
    reported where its accuracy there is above that of the given one by more than their exact 99 % intervals allow.

    >>> truth = np.arange(300) % 3
    >>> found = misnumbered(truth, (truth + 1) % 3, ["a", "b", "c"], 3)
    >>> found.accuracy, found.otherwise, found.line
    (0.0, 1.0, 'classes = ["c", "a", "b"]')
    >>> misnumbered(truth, truth, ["a", "b", "c"], 3) is None
    True
    """
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu" or predicted.shape != labels.shape:
        return None
    size = int(max(labels.max(), predicted.max(), (outputs or 0) - 1)) + 1
    if min(labels.min(), predicted.min()) < 0 or len(labels) < FEWEST_EACH * len(np.unique(labels)):
        return None
    truth, answers = labels.astype(np.int64), predicted.astype(np.int64)
    halves = np.zeros(len(truth), bool)
    halves[np.argsort(truth, kind="stable")] = np.arange(len(truth)) % 2 == 0  # of each class one half
    right = 0
    for half in (halves, ~halves):
        table = _assignment(truth[half], answers[half], size)
        right += int(np.count_nonzero(table[truth[~half]] == answers[~half]))
    as_given = int(np.count_nonzero(truth == answers))
    if exact(right, len(truth), confidence=CONFIDENCE)[0] <= exact(as_given, len(truth), confidence=CONFIDENCE)[1]:
        return None
    table = _assignment(truth, answers, size)
    return Misnumbered(as_given / len(truth), right / len(truth), len(truth), _line(table, truth, names))


def _assignment(truth: Ints, answers: Ints, size: int) -> Ints:
    """For each class the output that it is most often given, no output to two classes; in doubt its own number."""
    from scipy.optimize import linear_sum_assignment

    counts = np.zeros((size, size))
    np.add.at(counts, (truth, answers), 1.0)
    counts[np.diag_indices(size)] += 0.5
    found: Ints = linear_sum_assignment(-counts)[1].astype(np.int64)
    return found


def _line(table: Ints, truth: Ints, names: Sequence[str] | None) -> str:
    """The assignment as a line of a spec: a list where every output has a class, else a table."""
    called = list(names) if names is not None else [str(one) for one in range(len(table))]
    seen = np.unique(truth)
    if names is not None and len(called) == len(table):
        by_output = [called[int(one)] for one in np.argsort(table)]
        return f"classes = {json.dumps(by_output, ensure_ascii=False)}"
    pairs = ", ".join(f"{json.dumps(called[one], ensure_ascii=False)} = {int(table[one])}" for one in seen.tolist())
    return f"classes = {{ {pairs} }}"
