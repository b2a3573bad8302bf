"""Labels that are right but for their numbers: found by the assignment of classes to outputs that fits best."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.engine.subject import Subject
from testifai.identity.environment import differences, recorded
from testifai.oracles import predicted
from testifai.runs import keys
from testifai.statistics.intervals import exact
from testifai.support.types import Array, Bools, Record, RecordLike

FEWEST = 50  # clean inputs below which nothing is said
SURE = 0.9  # clean accuracy from which on labels are taken to be numbered as the outputs are
ENOUGH = 500  # from which on it need not wait for more


def near_chance(
    passes: int, trials: int, labels: Array | None, classes: int | None, *, texts: bool = False
) -> str | None:
    """One line where clean accuracy is not clearly above what guessing gives; None where it is, or cannot be told.

    Guessing is drawing a class, or always naming the most frequent one. Clearly above: the lower end of the exact
    95 % interval is.

    >>> labels = np.arange(1000) % 10
    >>> near_chance(47, 500, labels, 10)
    "clean accuracy is 0.094 on 500 inputs, not clearly above chance (0.100): check the model's \
preprocessing (scale, layout, mean, std), and that labels and classes are numbered alike"
    >>> near_chance(150, 500, labels, 10) is None
    True
    """
    countable = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iub"
    if labels is None or not countable or not classes or classes < 2 or trials < FEWEST:
        return None
    chance = max(1 / classes, float(np.bincount(labels).max() / len(labels)))
    if exact(passes, trials)[0] > chance:
        return None
    feeding = "which columns hold texts and labels" if texts else "the model's preprocessing (scale, layout, mean, std)"
    return (
        f"clean accuracy is {passes / trials:.3f} on {trials:,} inputs, not clearly above chance ({chance:.3f}): "
        f"check {feeding}, and that labels and classes are numbered alike"
    )


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
    labels: Array | None, predicted: Array, names: Sequence[str] | None, outputs: int | None
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


INPUTS = 16  # asked about, each twice
SHARE = 20  # of a budget at most one in so many inputs is asked about
NOISE = 1e-6  # of the largest number of a row: sums in another order differ by as much


@dataclass(frozen=True)
class Repeated:
    """Of so many inputs asked about twice, how many had another answer, and how many another class."""

    inputs: int
    differ: int
    decisions: int = 0

    def as_dict(self) -> dict[str, int]:
        """Plain data for JSON."""
        return asdict(self)


def affordable(inputs: int, budget: int | None) -> int:
    """How many inputs to ask about.

    >>> affordable(1000, None), affordable(5, None), affordable(1000, 100)
    (16, 5, 5)
    """
    return min(INPUTS, inputs, INPUTS if budget is None else budget // SHARE)


def ask_twice(subject: Subject, inputs: int) -> Repeated:
    """Show the model the first inputs of the visiting order, clean, and then once more."""
    places = np.arange(inputs)
    one, two = (subject.infer(subject.batch(places), 0) for _ in range(2))
    if one.shape != two.shape:
        return Repeated(inputs, inputs, inputs)
    other = _differ(one, two)
    decided = predicted(one) != predicted(two) if subject.oracle.decides_classes else np.zeros(inputs, bool)
    return Repeated(inputs, int((other | decided).sum()), int(decided.sum()))


def words(found: Record | None) -> str | None:
    """What it means that answers differ, in one line; None where they do not, or nobody asked."""
    if not found or not found["differ"]:
        return None
    classes = f", {found['decisions']} another class" if found.get("decisions") else ""
    return (
        f"the model answers differently each time: of {found['inputs']} clean inputs shown to it twice, "
        f"{found['differ']} got another answer{classes}. A run that is continued, or made again, will not end with the "
        "same numbers, and intervals allow for the choice of inputs, not for this; fix its seed or its mode if you can"
    )


def _differ(one: Array, two: Array) -> Bools:
    """Which rows differ by more than rounding."""
    rows, others = (table.reshape(len(table), -1) for table in (one, two))
    if rows.dtype.kind != "f":
        return np.asarray((rows != others).any(axis=1))
    noise = max(NOISE, 32 * float(np.finfo(rows.dtype).eps))
    largest = np.maximum(np.abs(rows), np.abs(others)).max(axis=1, keepdims=True)
    return np.asarray((np.abs(rows - others) > noise * largest).any(axis=1))


def notes(provenance: RecordLike) -> list[str]:
    """What to know of how a run was made, a line each: several versions of a library, answers that differ."""
    several = differences(recorded(provenance))
    mixed = None if several is None else f"made with different versions: {several}; outcomes of all of them are in it"
    return [line for line in (mixed, words(provenance.get(keys.ASKED_TWICE))) if line is not None]
