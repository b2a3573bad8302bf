"""Measurement of local robustness, with the same engine and into the same kind of run file as a scan.

The run's visiting order is random, so the first inputs of a class in that order are a random sample of the class, and
a larger sample contains a smaller one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai import data as datasets
from testifai import models
from testifai.engine.plan import Work
from testifai.errors import InputError, suggest
from testifai.locality.local import Local, Sampled, class_means, count_answers
from testifai.oracles import Label, Outcome, confidence
from testifai.runs import keys
from testifai.runs.outcomes import Ids, Outcomes, Places, visiting_order
from testifai.session.assembly import session_of
from testifai.session.stored_runs import open_run, reading
from testifai.space import Space
from testifai.strategies.base import Progress, Strategy
from testifai.support.bits import pack
from testifai.support.progress import Step, bar
from testifai.support.types import Array, Bools, Record, RecordLike
from testifai.support.validation import choice, number, whole
from testifai.tomogram import Tomogram

AMONG = ("correct", "all")


@dataclass(frozen=True, eq=False)
class PerClass(Strategy):
    """The clean test on all candidates, then every single perturbation on a sample of each class."""

    labels: NDArray[np.intp]  # of all inputs, as the model numbers the classes
    names: Mapping[int, str]
    per_class: int | None = 200
    among: str = "correct"
    weights: Mapping[int, float] | None = None  # class number to test -> share; None: equally many inputs of each
    candidates: Bools | None = None  # the inputs that may be sampled

    name = "per_class"
    surrogate = None
    splits = False

    @property
    def classes(self) -> list[int]:
        if self.weights is not None:
            return sorted(self.weights)
        return [int(one) for one in np.unique(self.labels if self.candidates is None else self.labels[self.candidates])]

    def propose(self, progress: Progress) -> Work | None:
        everyone = self._candidates(progress.seed)
        if self.among == "correct" and not progress.outcomes.attempted(0, everyone).all():
            return Work(np.array([0]), everyone)
        places = self.sample(progress.outcomes, progress.seed)[0]
        tests = single_ids(progress.space)
        tests = tests if self.among == "correct" else np.concatenate([[0], tests])
        done = all(progress.outcomes.attempted(int(test), places).all() for test in tests)
        return None if done else Work(tests, places)

    def expected(self, progress: Progress) -> int:
        everyone = self._candidates(progress.seed)
        numbers = self.labels[visiting_order(progress.inputs, progress.seed)[everyone]]
        most = sum(self._wanted({one: int((numbers == one).sum()) for one in self.classes}).values())
        clean = len(everyone) if self.among == "correct" else most
        return clean + most * len(single_ids(progress.space))

    def describe(self) -> Record:
        weights = None if self.weights is None else [[one, self.weights[one]] for one in self.classes]
        chosen = None if self.candidates is None else hashlib.sha256(pack(self.candidates).tobytes()).hexdigest()
        told = {"per_class": self.per_class, "among": self.among, "weights": weights, "candidates": chosen}
        return {"use": self.name, **told}

    def sample(self, outcomes: Outcomes, seed: int) -> tuple[Places, dict[int, int]]:
        """The places of the sampled inputs, ascending, and how many inputs each class could have given."""
        places = self._candidates(seed)
        if self.among == "correct":
            places = places[outcomes.passed(0, places)]
        numbers = self.labels[visiting_order(outcomes.inputs, seed)[places]]
        own = {one: places[numbers == one] for one in self.classes}
        available = {one: len(mine) for one, mine in own.items()}
        for one, count in available.items():
            if count == 0:
                what = "input that the model gets right" if self.among == "correct" else "input"
                raise InputError(
                    f"class {self.names[one]!r}: has no {what}, so its local robustness cannot be measured; "
                    "accepted: at least 1; leave the class out with weights, or check the model's preprocessing"
                )
        wanted = self._wanted(available)
        return np.sort(np.concatenate([mine[: wanted[one]] for one, mine in own.items()])), available

    def _candidates(self, seed: int) -> Places:
        order = visiting_order(len(self.labels), seed)
        fit = np.isin(self.labels, self.classes)
        return np.flatnonzero((fit if self.candidates is None else fit & self.candidates)[order])

    def _wanted(self, available: Mapping[int, int]) -> dict[int, int]:
        if self.per_class is None:
            return dict(available)
        if self.weights is None:
            return {one: min(self.per_class, count) for one, count in available.items()}
        shares = allocate(self.per_class * len(available), [self.weights[one] for one in self.classes])
        return {one: min(share, available[one]) for one, share in zip(self.classes, shares, strict=True)}


def allocate(total: int, weights: list[float]) -> list[int]:
    """Whole shares of a total in proportion to the weights, at least 1 each, by largest remainders."""
    exact = np.array(weights) / sum(weights) * total
    shares = np.maximum(1, np.floor(exact).astype(int))
    left = max(0, total - int(shares.sum()))
    shares[np.argsort(shares - exact, kind="stable")[:left]] += 1
    return [int(share) for share in shares]


def class_weights(given: Any, labels: NDArray[np.intp], names: Mapping[int, str]) -> dict[int, float] | None:
    if given is None:
        return None
    if isinstance(given, str) and given == "data":
        numbers, counts = np.unique(labels, return_counts=True)
        return {int(one): float(count) for one, count in zip(numbers, counts, strict=True)}
    if not isinstance(given, Mapping):
        raise InputError(f"weights: {given!r} is not accepted; None, 'data', or a mapping from class to weight is")
    numbers_of = {name: one for one, name in names.items() if one in set(np.unique(labels).tolist())}
    weights = {}
    for name, weight in given.items():
        if str(name) not in numbers_of:
            raise InputError(f"weights: {name!r} is not a class of the data; {suggest(name, numbers_of)}")
        checked = number(f"weights: {name!r}", weight, least=0)
        if checked > 0:
            weights[numbers_of[str(name)]] = checked
    if not weights:
        raise InputError(f"weights: {dict(given)!r} leaves no class; at least one above 0 is needed")
    return weights


def candidate_mask(inputs: int, exclude: Any = None, only: Any = None) -> Bools | None:
    if exclude is None and only is None:
        return None
    mask = np.full(inputs, only is None)
    for field, given, value in (("inputs", only, True), ("exclude", exclude, False)):
        if given is None:
            continue
        numbers = np.asarray(given).reshape(-1)
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= inputs):
            outside = numbers[(numbers < 0) | (numbers >= inputs)] if numbers.dtype.kind in "iu" else numbers
            wrong = repr(outside[0].item())
            raise InputError(f"{field}: input numbers from 0 to {inputs - 1} are accepted, got {wrong}")
        mask[numbers.astype(np.intp)] = value
    return mask


def single_ids(space: Space) -> Ids:
    alone = np.eye(len(space.axes), dtype=int)
    return space.ids(np.concatenate([np.outer(axis.severities[1:], alone[i]) for i, axis in enumerate(space.axes)]))


def local(
    model: Any,
    data: Any,
    properties: RecordLike | Space,
    per_class: int | None = 200,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    *,
    among: str = "correct",
    weights: Any = None,
    exclude: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
    batch_size: int | None = None,
    workers: int | str | None = None,
    progress: bool | Callable[[Step], None] = False,
) -> Local:
    """The local robustness of every class under every property and severity, with Wilson intervals.

    Args:
        model: what `ta.scan` takes: a function, a path, an estimator, a module
        data: what `ta.scan` takes: (inputs, labels), a path, a data set, a frame
        properties: written as the axes of a space
        per_class: inputs drawn from each class; None: all
        seed: of all that is drawn
        store: a run file to keep what is measured in, and to go on from; None: nothing is kept
        among: inputs that the model gets right, "correct", or "all"
        weights: shares of the classes: "data", or a mapping from each class to test to its weight; None: all equal
        exclude: numbers of inputs never to draw
        inputs: the only ones to draw from; None: all
        batch_size: inputs handed to the model at once; None: what is quickest
        workers: how many work side by side here, or 'ray' and 'ray:ADDRESS'; None: as the model allows
        progress: True for a bar, or a function that is called with every step

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 400)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.25])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> found = local(model, (rows, model(rows)), {"shift": shift}, per_class=None)
    >>> found.rate[:, 0].tolist(), found.available.tolist()
    ([[0.8, 0.5], [1.0, 1.0]], [200, 200])
    """
    per_class = None if per_class is None else whole("per_class", per_class, least=1)
    choice("among", among, AMONG)
    model, data = models.wrap(model), datasets.wrap(data)
    space = properties if isinstance(properties, Space) else Space(properties)
    labels, names = known_classes(model, data)
    numbered = dict(enumerate(names))
    shares, candidates = class_weights(weights, labels, numbered), candidate_mask(len(data.inputs), exclude, inputs)
    sampling = PerClass(labels, numbered, per_class, among, shares, candidates)
    session = session_of(
        model, data, space, strategy=sampling, oracle=Confident(), seed=seed, batch_size=batch_size, workers=workers,
        keep=("value", "predicted"),
    )  # fmt: skip
    notes = {
        "names": names,
        "numbers": sorted({(int(a), int(b)) for a, b in zip(np.asarray(data.labels), labels, strict=True)}),
        "weights": None if sampling.weights is None else [[one, sampling.weights[one]] for one in sampling.classes],
        "per_class": per_class,
        "among": among,
        # Of inputs the model gets right, the outcomes say how many there are.
        "available": sorted(sampling.sample(session.outcomes, seed)[1].items()) if among == "all" else None,
    }
    with bar() if progress is True else nullcontext(progress or None) as show:
        session.run(store, show, {keys.LOCALITY: notes})
    places, _ = sampling.sample(session.outcomes, seed)
    return SampleRecord(space, session.outcomes, session.subject.order, labels, seed, notes).table(places)


def from_run(run: str | os.PathLike[str] | Tomogram) -> Local:
    """The local robustness in a run file: of `local`, or of any scan with labels that kept the predicted classes.

    Of a scan, inputs count that passed the clean test and were tried under a single perturbation.

    Args:
        run: a run file, or the tomogram of one that is open
    """
    tomogram = run if isinstance(run, Tomogram) else open_run(run)
    path, notes = tomogram.provenance.get("path", "of this tomogram"), tomogram.provenance.get(keys.LOCALITY)
    outcomes, labels = tomogram.outcomes, tomogram.labels
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iub":
        raise InputError(f"run file: {path} has no single label per input; local robustness is by class")
    if "predicted" not in outcomes.kept_names():
        raise InputError(
            f"run file: {path} did not keep the predicted classes; run it again with keep = ['predicted'] under [scan]"
        )
    numbers = labels.astype(np.intp)
    if notes is None:
        names = list(tomogram.classes or map(str, range(int(labels.max()) + 1)))
        notes = dict.fromkeys(("numbers", "weights", "per_class", "available")) | {"names": names, "among": "correct"}
    else:
        with reading(path, keys.LOCALITY):
            table = dict(notes["numbers"])
            numbers = np.array([table[int(label)] for label in labels], np.intp)
    record = SampleRecord(tomogram.space, outcomes, tomogram.order, numbers, tomogram.settings.seed, notes)
    everyone = np.arange(outcomes.inputs)
    tried = np.any([outcomes.attempted(int(test), everyone) for test in single_ids(tomogram.space)], axis=0)
    places = np.flatnonzero(tried & record.fit)
    if not len(places):
        raise InputError(f"run file: {path} has no input that was tried under a single perturbation and is right clean")
    for test in map(int, single_ids(tomogram.space)):
        tried_here = outcomes.attempted(test, places)
        right = outcomes.kept(test, "predicted")[places] == numbers[tomogram.order[places]]
        if (right != outcomes.passed(test, places))[tried_here].any():
            raise InputError(
                f"run file: {path} was judged by another oracle than label, or labels and classes are numbered "
                "differently; measure it with testifai.locality.local"
            )
    with reading(path, keys.LOCALITY):
        return record.table(places)


def tells_confusions(tomogram: Tomogram, most: int) -> bool:
    """Whether a run says which class was taken for which, of so many classes at most."""
    labels = tomogram.labels
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iub":
        return False
    return "predicted" in tomogram.outcomes.kept_names() and len(np.unique(labels)) <= most


@dataclass(frozen=True, eq=False)
class SampleRecord:
    """What a run says of single inputs; `labels` are as the model numbers its classes, notes as `local` wrote them."""

    space: Space
    outcomes: Outcomes
    order: NDArray[np.intp]
    labels: NDArray[np.intp]
    seed: int
    notes: RecordLike

    @property
    def fit(self) -> Bools:
        everyone = np.arange(self.outcomes.inputs)
        return self.outcomes.passed(0, everyone) if self.notes["among"] == "correct" else everyone >= 0

    def table(self, places: NDArray[np.intp]) -> Local:
        """The outcomes of single perturbations on these inputs; classes in the order of their numbers."""
        severities = [axis.severities[1:] for axis in self.space.axes]
        tried_in = self.labels[self.order[places]]
        if self.notes["available"] is not None:
            available = dict(self.notes["available"])
        else:
            own = self.labels[self.order]
            available = {int(one): int((self.fit & (own == one)).sum()) for one in np.unique(tried_in)}
        # (input, property, severity); -1 and NaN where an input was not tried
        shape = (len(places), len(severities), max(map(len, severities)))
        predicted, sure = np.full(shape, -1, np.int32), np.full(shape, np.nan)
        measured = self.notes["numbers"] is not None and "value" in self.outcomes.kept_names()
        cells = [(which, level) for which, levels in enumerate(severities) for level in range(len(levels))]
        for test, cell in zip(single_ids(self.space).tolist(), cells, strict=True):
            tried = self.outcomes.attempted(test, places)
            predicted[tried, *cell] = self.outcomes.kept(test, "predicted")[places[tried]]
            if measured:
                sure[tried, *cell] = self.outcomes.kept(test, "value")[places[tried]]
        names = list(self.notes["names"])
        names += [str(one) for one in range(len(names), int(predicted.max()) + 1)]
        # Columns: the tested classes first, then the others.
        tested = sorted(available)
        sequence = [*tested, *(one for one in range(len(names)) if one not in available)]
        columns = np.empty(len(names), np.int32)
        columns[sequence] = np.arange(len(names))
        predicted = np.where(predicted >= 0, columns[predicted], -1).astype(np.int32)
        classes = columns[tried_in].astype(np.intp)
        weights = dict(self.notes["weights"] or {})
        return Local.from_counts(
            [names[one] for one in tested], self.space.names, severities,
            count_answers(predicted, classes, len(tested), len(names)),
            outputs=[names[one] for one in sequence], confidence=class_means(sure, classes, len(tested)),
            available=[available[one] for one in tested], weights=[weights.get(one, 1.0) for one in tested],
            per_class=self.notes["per_class"], among=self.notes["among"], seed=self.seed,
            sampled=Sampled(self.order[places], classes, predicted, sure.astype(np.float32)),
        )  # fmt: skip


class Confident(Label):
    """Correct label; the value is how sure the model was of its answer, not the margin."""

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        judged = super().judge(outputs, expected, clean)
        sure = confidence(outputs).astype(np.float32) if outputs.ndim == 2 and outputs.shape[1] > 1 else None
        return Outcome(judged.passed, sure)

    def describe(self) -> Record:
        return {"use": self.name, "value": "confidence"}


def known_classes(model: models.Model, data: datasets.Data) -> tuple[NDArray[np.intp], list[str]]:
    Label().check(data.labels, None)
    assert data.labels is not None
    if data.labels.ndim != 1:
        raise InputError("labels: several labels per input; local robustness is by class and needs one label each")
    values = model.class_values
    labels = np.asarray(models.align_labels(data.labels, data.classes, values), np.intp)
    if values is not None:
        return labels, [str(value) for value in values]
    names = list(data.classes or ())
    most = max(int(labels.max()) + 1, model.classes or 0)
    return labels, names + [str(one) for one in range(len(names), most)]
