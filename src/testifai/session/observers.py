"""Observers of a run: they check the model and record how the run was made, without changing its outcomes."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome, References
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.identity.run_identity import InputHashes, contents_of, differences, environment, recorded
from testifai.oracles import predicted
from testifai.runs import keys
from testifai.runs.outcomes import VALUE, Outcomes
from testifai.runs.store import Store
from testifai.statistics.intervals import exact
from testifai.support.batches import are_texts
from testifai.support.types import Array, Bools, Record, RecordLike

log = logging.getLogger(__name__)

SAVE_EVERY = 0.25  # seconds


class Observer:
    """Base class: the methods do nothing. The store is None for a run without a file."""

    reserve = 0  # inferences of the budget that it needs

    def attach(self, store: Store, *, resumed: bool) -> None:
        """Called with a new run file, or that of a run that is resumed."""

    def before_work(self, store: Store | None) -> None:
        """Called before every round of work."""

    def measured(self, batch: BatchOutcome, store: Store | None) -> None:
        """Called with every batch, before its outcomes are recorded."""

    def recorded(self, batch: BatchOutcome, outcomes: Outcomes, store: Store | None) -> None:
        """Called with every batch, after its outcomes were recorded."""

    def finish(self, outcomes: Outcomes, store: Store | None) -> None:
        """Called after the last batch of a run that was not interrupted."""

    def close(self, outcomes: Outcomes, store: Store | None) -> None:
        """Called at the end of a run, interrupted or not."""

    def provenance(self) -> Record:
        """Return entries of the tomogram's provenance."""
        return {}


def observers(
    subject: Subject, references: References, budget: int | None, *, check_model: bool
) -> tuple[Observer, ...]:
    """Return the observers of a run, in the order in which they are called."""
    checked = affordable(len(subject.order), budget) if check_model and not subject.model.repeatable else 0
    return (
        Scores(subject),  # first: the run file must not expect outcomes that are rejected
        RunFile(subject, references),
        Environments(),
        Repeatability(subject, checked),
        CleanAccuracy(subject, check_indices=check_model),
    )


class Scores(Observer):
    """Rejects values of an oracle with a score that are not in 0..1."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def measured(self, batch: BatchOutcome, store: Store | None) -> None:
        subject, oracle = self._subject, self._subject.oracle
        if oracle.score is None:
            return
        values = batch.kept.get(VALUE)
        if values is None:
            raise InputError(f"oracle {oracle.name}: it has the score {oracle.score!r}, and gave no values")
        wrong = ~((values >= 0) & (values <= 1))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(
                f"oracle {oracle.name}: its score {oracle.score!r} is {values[at]:.9g} for input "
                f"{int(subject.order[batch.places[at]])} under "
                f"{subject.space.words(subject.space.configuration(batch.configuration))}; accepted: 0 to 1"
            )


class RunFile(Observer):
    """Writes outcomes, clean outputs and hashes of inputs to the run file."""

    def __init__(self, subject: Subject, references: References) -> None:
        self._subject, self._references, self._unidentified = subject, references, subject.model.unidentified_reason
        self._may_read_files = subject.model.may_read_files
        self._hashes: InputHashes | None = None
        self._saved = time.monotonic()

    def attach(self, store: Store, *, resumed: bool) -> None:
        data = self._subject.data
        if resumed and self._unidentified is None and self._may_read_files and not store.is_empty():
            log.warning(
                "resuming %s: changes to files that the model reads when it is called are not detected. "
                'Set version = "…" under [model] to identify them, or use another run file to measure again.',
                store.path,
            )
        if self._unidentified is not None:
            log.warning(
                "cannot fingerprint this model (%s), so changes to it will not be detected when the run is resumed. "
                'Set version = "…" under [model] to identify it.',
                self._unidentified,
            )
        self._hashes = InputHashes(data, self._subject.order)
        if resumed:
            self._hashes.take_up(store)
            self._references.values = store.load_by_place(keys.REFERENCE, len(data))
            return
        if data.labels is not None:
            store.put_array(keys.LABELS, np.asarray(data.labels))
        partly = {keys.PARTLY: True} if contents_of(data) is not None else {}
        store.put(**{keys.INPUTS: len(data), keys.CLASSES: data.classes}, **partly)

    def measured(self, batch: BatchOutcome, store: Store | None) -> None:
        if store is not None:
            # Before the outcomes are recorded, so that no interrupt saves them without their reference.
            new = self._hashes is not None and self._hashes.note(batch.places)
            store.touch(batch.configuration, batch.places, reference=batch.reference is not None, contents=new)

    def recorded(self, batch: BatchOutcome, outcomes: Outcomes, store: Store | None) -> None:
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.close(outcomes, store)

    def close(self, outcomes: Outcomes, store: Store | None) -> None:
        if store is not None:
            store.save(outcomes, self._references.values, None if self._hashes is None else self._hashes.hashes)
        self._saved = time.monotonic()


class Environments(Observer):
    """Records the library versions of a run, in the order of their use."""

    def __init__(self) -> None:
        self._now = environment()
        self.seen = [self._now]

    def attach(self, store: Store, *, resumed: bool) -> None:
        known = {key: store.get(key) for key in (keys.ENVIRONMENT, keys.ENVIRONMENTS)}
        self.seen = [self._now] if store.is_empty() else recorded(known)
        store.put(**{keys.ENVIRONMENT: self.seen[0]})

    def measured(self, batch: BatchOutcome, store: Store | None) -> None:
        # The run file must name this environment before its first outcome.
        if store is None or self._now in self.seen:
            return
        self.seen = [*self.seen, self._now]
        store.put(**{keys.ENVIRONMENTS: self.seen})
        if (several := differences(self.seen)) is not None:
            log.warning(
                "run file: %s: resumed with different library versions than it was started with: %s",
                store.path,
                several,
            )

    def provenance(self) -> Record:
        return {keys.ENVIRONMENT: self.seen[0], keys.ENVIRONMENTS: self.seen}


# -- clean accuracy: chance level and class indices -------------------------------------------------------------------

FEWEST = 50  # clean inputs below which accuracy is not compared with chance
FEWEST_DOUBTFUL = 10  # clean inputs below which class indices are not checked: a gate may need few
SURE = 0.9  # clean accuracy above which class indices are assumed to match
ENOUGH = 500  # clean inputs after which accuracy is checked during the run


class CleanAccuracy(Observer):
    """Warns once if clean accuracy is not above chance, or if class indices do not match the model's outputs."""

    def __init__(self, subject: Subject, *, check_indices: bool) -> None:
        self._subject, self._check_indices = subject, check_indices
        self.found: str | None = None

    def recorded(self, batch: BatchOutcome, outcomes: Outcomes, store: Store | None) -> None:
        if batch.configuration == 0 and outcomes.counts([0])[1][0] >= ENOUGH:
            self._warn(outcomes)

    def finish(self, outcomes: Outcomes, store: Store | None) -> None:
        self._warn(outcomes)
        if store is not None and self.found != store.get(keys.CLEAN_WARNING):
            store.put(**{keys.CLEAN_WARNING: self.found})

    def provenance(self) -> Record:
        return {keys.CLEAN_WARNING: self.found}

    def warning(self, outcomes: Outcomes) -> str | None:
        """Return a warning about the outcomes of the clean test, or None."""
        subject = self._subject
        if not subject.oracle.needs_labels:
            return None
        passes, trials = (int(counts[0]) for counts in outcomes.counts([0]))
        doubtful = trials >= FEWEST_DOUBTFUL and exact(passes, trials)[1] < SURE
        if self._check_indices and doubtful and self._mismatch is not None:
            return str(self._mismatch)
        return near_chance(passes, trials, subject.labels, subject.classes, texts=are_texts(subject.data.inputs))

    def _warn(self, outcomes: Outcomes) -> None:
        if self.found is None and (found := self.warning(outcomes)) is not None:
            self.found = found
            log.warning("%s", found)

    @cached_property
    def _mismatch(self) -> ClassIndexMismatch | None:
        """Compare labels and outputs of some clean inputs, which do not count as outcomes."""
        subject = self._subject
        if not subject.oracle.decides_classes or subject.labels is None:
            return None
        places = np.arange(min(len(subject.data), ENOUGH))
        outputs = subject.ask(subject.batch(places), "clean inputs")
        labels = subject.labels[subject.order[places]]
        return class_index_mismatch(labels, predicted(outputs), subject.data.classes, subject.classes)


def near_chance(
    passes: int, trials: int, labels: Array | None, classes: int | None, *, texts: bool = False
) -> str | None:
    """Return a warning if the exact 95 % interval of clean accuracy is not above chance; else None.

    Chance is the accuracy of a random class, or of always predicting the most frequent one.
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

CONFIDENCE = 0.99  # of each of two intervals: matching indices should hardly ever be doubted
MOST_ASSIGNED = 4096  # classes, of which all pairs are counted
FEWEST_EACH = 4  # inputs of a class, on average, below which no assignment can be determined


@dataclass(frozen=True)
class ClassIndexMismatch:
    """Classes whose indices probably do not match the model's outputs."""

    accuracy: float
    otherwise: float  # cross-validated accuracy of another assignment
    inputs: int
    line: str  # to add to a spec's [data]

    def __str__(self) -> str:
        return (
            f"clean accuracy is {self.accuracy:.3f} on {self.inputs:,} inputs, but {self.otherwise:.3f} with the "
            f"classes numbered otherwise: add {self.line} under [data] if that is what the outputs mean"
        )


def class_index_mismatch(
    labels: Array | None, predicted: Array, names: Sequence[str] | None, outputs: int | None
) -> ClassIndexMismatch | None:
    """Find an assignment of classes to outputs that is significantly better than the given one.

    It is learned on one half of the inputs and evaluated on the other, and vice versa. The lower bound of its accuracy
    (exact, 99 %) must exceed the upper bound of that of the given one.
    """
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu" or predicted.shape != labels.shape:
        return None
    size = int(max(labels.max(), predicted.max(), (outputs or 0) - 1)) + 1
    if size > MOST_ASSIGNED or min(labels.min(), predicted.min()) < 0:
        return None
    if len(labels) < FEWEST_EACH * len(np.unique(labels)):
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
    return ClassIndexMismatch(as_given / len(truth), right / len(truth), len(truth), _line(table, truth, names))


def _assignment(truth: Ints, answers: Ints, size: int) -> Ints:
    """Assign each class another output, such that most answers are right; if equal, prefer its own index."""
    from scipy.optimize import linear_sum_assignment

    counts = np.zeros((size, size))
    np.add.at(counts, (truth, answers), 1.0)
    counts[np.diag_indices(size)] += 0.5
    found: Ints = linear_sum_assignment(-counts)[1].astype(np.int64)
    return found


def _line(table: Ints, truth: Ints, names: Sequence[str] | None) -> str:
    """Return the assignment as a line of a spec: a list if every output has a class, else a table."""
    called = list(names) if names is not None else [str(one) for one in range(len(table))]
    if names is not None and len(called) == len(table):
        by_output = [called[int(one)] for one in np.argsort(table)]
        return f"classes = {json.dumps(by_output, ensure_ascii=False)}"
    seen = np.unique(truth).tolist()
    pairs = ", ".join(f"{json.dumps(called[one], ensure_ascii=False)} = {int(table[one])}" for one in seen)
    return f"classes = {{ {pairs} }}"


# -- repeatability ----------------------------------------------------------------------------------------------------

INPUTS = 16  # shown to the model twice, and once more if answers differ
SHARE = 30  # at most three in this many inferences of a budget go to the check
NOISE = 1e-6  # of the largest number of a row: sums in another order differ by as much
BATCH_NOISE = 1e-3  # libraries compute batches of other sizes with other algorithms


class Repeatability(Observer):
    """Shows a model some inputs again in other batches before a run, unless it is known to be deterministic."""

    def __init__(self, subject: Subject, inputs: int) -> None:
        self._subject, self.inputs, self.reserve = subject, inputs, 3 * inputs
        self.found: Record | None = None

    def attach(self, store: Store, *, resumed: bool) -> None:
        self.found = store.get(keys.ASKED_TWICE)

    def before_work(self, store: Store | None) -> None:
        if self.found is not None or not self.inputs:
            return
        self.found = check_repeatability(self._subject, self.inputs)
        if store is not None:
            store.put(**{keys.ASKED_TWICE: self.found})
        for line in not_repeatable(self.found):
            log.warning("%s", line)

    def provenance(self) -> Record:
        return {keys.ASKED_TWICE: self.found}


def affordable(inputs: int, budget: int | None) -> int:
    """Return the number of inputs to show again."""
    return min(INPUTS, inputs, INPUTS if budget is None else budget // SHARE)


def check_repeatability(subject: Subject, inputs: int) -> Record:
    """Show the model some clean inputs in one batch, and again in reverse order in batches of two.

    Where answers differ, the first batch is shown once more: if they differ again, the model is not deterministic, else
    they depend on the batch. Counts such inputs, those whose class differs and those whose outcome does.
    """
    places = np.arange(inputs)
    one, other = subject.infer(subject.batch(places), 0), np.zeros(inputs, bool)
    pieces = np.array_split(places[::-1], max(1, inputs // 2))
    split = np.concatenate([subject.infer(subject.batch(piece), 0) for piece in pieces])[::-1]
    if not (_differ(one, split, NOISE) | _decided_otherwise(subject, one, split)).any():
        return _counts(inputs, other, other, other, other)
    two = subject.infer(subject.batch(places), 0)
    decided = _decided_otherwise(subject, one, two)
    if (differ := _differ(one, two, NOISE) | decided).any():
        return _counts(inputs, differ, decided, other, other)
    passed = [subject.judged_clean(outputs, one, places) for outputs in (one, split)]
    differ = _differ(one, split, BATCH_NOISE) | _decided_otherwise(subject, one, split)
    return _counts(inputs, other, other, differ, differ & (passed[0] != passed[1]))


def _counts(inputs: int, differ: Bools, decided: Bools, by_batch: Bools, flipped: Bools) -> Record:
    named = {"differ": differ, "decisions": decided, "batch_differ": by_batch, "batch_flips": flipped}
    return {"inputs": inputs, **{name: int(rows.sum()) for name, rows in named.items()}}


def _differ(one: Array, two: Array, noise: float) -> Bools:
    """Return which rows of outputs differ by more than a share of their largest number."""
    if one.shape != two.shape:
        return np.ones(len(one), bool)
    rows, others = (table.reshape(len(table), -1) for table in (one, two))
    if rows.dtype.kind != "f":
        return np.asarray((rows != others).any(axis=1))
    noise = max(noise, 32 * float(np.finfo(rows.dtype).eps))
    largest = np.maximum(np.abs(rows), np.abs(others)).max(axis=1, keepdims=True)
    return np.asarray((np.abs(rows - others) > noise * largest).any(axis=1))


def _decided_otherwise(subject: Subject, one: Array, two: Array) -> Bools:
    """Return which classes differ."""
    return np.asarray(predicted(one) != predicted(two)) if subject.oracle.decides_classes else np.zeros(len(one), bool)


def not_repeatable(found: RecordLike | None) -> list[str]:
    """Return a warning if answers differed each time, or with the batch."""
    if found and found["differ"]:
        classes = f", {found['decisions']} another class" if found.get("decisions") else ""
        return [
            f"the model is not deterministic: of {found['inputs']} clean inputs shown to it twice, {found['differ']} "
            f"got another answer{classes}. A run that is resumed, or made again, will not end with the same numbers, "
            "and intervals allow for the choice of inputs, not for this; fix its seed or its mode if you can"
        ]
    if found and found.get("batch_differ"):
        return [
            f"the model's answers depend on the batch: of {found['inputs']} clean inputs shown to it in other batches, "
            f"{found['batch_differ']} got another answer, and {found['batch_flips']} another outcome. All numbers "
            "depend on batch_size then; let each answer depend on its own input alone (for example model.eval()), or "
            "set batch_size as in deployment"
        ]
    return []


def notes(provenance: RecordLike) -> list[str]:
    """Return warnings about how a run was made: library versions, a model that is not repeatable, clean accuracy."""
    several = differences(recorded(provenance))
    mixed = None if several is None else f"made with different versions: {several}; outcomes of all of them are in it"
    found = (mixed, *not_repeatable(provenance.get(keys.ASKED_TWICE)), provenance.get(keys.CLEAN_WARNING))
    return [line for line in found if line is not None]
