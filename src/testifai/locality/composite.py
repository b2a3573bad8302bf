"""`composite`: a composed system as a model with data of its own, to be swept or scanned like any other.

One of its inputs is a combination of inputs, one per part, on the second axis. All parts meet the same level of a
perturbation, each with its own random draws.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai import data as datasets
from testifai import models
from testifai.errors import InputError
from testifai.locality.compose import Combine, Expected, System, build
from testifai.locality.measure import known_classes
from testifai.locality.pairs import read_pairs
from testifai.models.base import Model
from testifai.oracles.classes import predicted
from testifai.perturb import Perturbation
from testifai.perturb.registry import resolve
from testifai.support.types import Array


@dataclass(frozen=True, eq=False)
class Composite:
    """A composed system: `model` and `data` to hand over, and `under` for the perturbations.

    >>> import numpy as np, testifai as ta
    >>> rows = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.5], levels=(0.0, 0.5))
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> adder = composite(model, (rows, model(rows)))
    >>> len(adder.data), adder.data.inputs.shape[1]
    (1000, 2)
    >>> found = ta.sweep_model(adder.model, adder.data, adder.under(shift), threshold=0.6)
    >>> alone = ta.sweep_model(model, (rows, model(rows)), shift, threshold=0.6)
    >>> found.robustness < alone.robustness
    True
    """

    model: Model
    data: datasets.Data
    arity: int

    def __repr__(self) -> str:
        return f"<Composite of {self.arity} parts: {len(self.data):,} combinations>"

    def under(self, perturbation: str | Perturbation) -> Perturbation:
        """A perturbation of every part, at the same severity or level."""
        one = resolve(perturbation)
        if one.table:
            raise InputError(f"perturbation '{one.name}': is for tables; a composed system takes those of arrays")
        name = f"{one.name} ({self.arity} parts)"
        each = _EachPart(one, self.arity)
        return replace(one, name=name, function=each, boxes=None, tensors=False, shows=None, smooth=None)


def composite(
    model: Any,
    data: Any,
    combine: Combine | None = None,
    arity: int = 2,
    expected: Expected | None = None,
    *,
    pairs: int | ArrayLike | None = None,
    seed: int = 0,
) -> Composite:
    """The system of `arity` parts, described as for `compose`, and combinations of the data's inputs.

    Args:
        model: what `ta.scan` takes: a function, a path, an estimator, a module
        data: what `ta.scan` takes: (inputs, labels), a path, a data set, a frame
        combine: the system, as for `compose`
        arity: how many parts the system has
        expected: what is right, as for `compose`
        pairs: number of random combinations (None: every input in one at most), or rows of `arity` input numbers
        seed: of all that is drawn
    """
    model, data = models.wrap(model), datasets.wrap(data)
    labels, names = known_classes(model, data)
    tested = np.unique(labels).tolist()
    sequence = [*tested, *(one for one in range(len(names)) if one not in set(tested))]
    system = build([names[one] for one in tested], [names[one] for one in sequence], combine, arity, expected)
    places = np.argsort(sequence)  # of the classes as the model numbers them
    number, rows = read_pairs(pairs, system.arity)
    if rows is None:
        most = len(labels) // system.arity
        wanted = number or max(most, 1)
        if wanted > most:
            raise InputError(
                f"pairs: {wanted} combinations of {system.arity} of {len(labels)} inputs; accepted: up to {most}"
            )
        order = np.random.Generator(np.random.Philox(seed)).permutation(len(labels))
        rows = order[: wanted * system.arity].reshape(-1, system.arity)
    elif rows.max() >= len(labels):
        raise InputError(f"pairs: input numbers from 0 to {len(labels) - 1} are accepted, got {rows.max()}")
    inputs = datasets.rows(data.inputs, rows.reshape(-1))
    if not isinstance(inputs, np.ndarray):
        raise InputError("data: texts, or images of different sizes; a composed system takes inputs of one shape")
    right = system.right[tuple(places[labels[rows]].T)]
    # What is expected but never answered gets a number that no answer has.
    expected_codes = np.where(right >= 0, right, system.codes.max() + 2)
    made = datasets.from_arrays(inputs.reshape(len(rows), system.arity, *inputs.shape[1:]), expected_codes)
    return Composite(CombinedModel(model, system, places), made, system.arity)


class CombinedModel(Model):
    """A model that answers for every part of a combination, and combines the answers; labels are the system's codes."""

    outputs = "labels"

    def __init__(self, base: Model, system: System, places: NDArray[np.intp]) -> None:
        self.base, self.system, self.places = base, system, places
        self.name = f"{base.name} in {system.arity} parts"
        self.batch_size = None if base.batch_size is None else max(1, base.batch_size // system.arity)
        self.thread_safe, self.spares_batch, self.repeatable = base.thread_safe, base.spares_batch, base.repeatable
        self.preprocessing = base.preprocessing

    @property
    def fingerprint(self) -> str:
        told = hashlib.blake2b(self.base.fingerprint.encode(), digest_size=16)
        told.update(str(self.system.codes.shape).encode() + self.system.codes.tobytes() + self.places.tobytes())
        return told.hexdigest()

    @property
    def unidentified_reason(self) -> str | None:
        return self.base.unidentified_reason

    @property
    def may_read_files(self) -> bool:
        return self.base.may_read_files

    def __call__(self, batch: Any) -> Array:
        arity = self.system.arity
        flat = np.asarray(batch).reshape(len(batch) * arity, *batch.shape[2:])
        answers = predicted(np.asarray(self.base(flat))).reshape(len(batch), arity)
        known = (answers >= 0) & (answers < len(self.places))
        codes = self.system.codes[tuple(self.places[np.where(known, answers, 0)].T)]
        # An answer that no class has makes no answer of the system.
        return np.asarray(np.where(known.all(axis=1), codes, self.system.codes.max() + 1), np.int64)


class _EachPart:
    def __init__(self, base: Perturbation, arity: int) -> None:
        functools.update_wrapper(self, base.function)  # whose code it is stays known
        self.base, self.arity = base, arity

    def __call__(self, batch: Array, parameter: Any, rng: Any) -> Array:
        parts = range(self.arity)
        return np.stack(
            [self.base.function(batch[:, part], parameter, rng.of_part(part, self.arity)) for part in parts], axis=1
        )
