"""The base class of quality measures, and functions and other objects as measures."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.python import PythonModel
from testifai.support.batches import Batch, own_copy, take
from testifai.support.registry import borrow
from testifai.support.types import Floats, Record
from testifai.support.validation import flag, whole


class Score(NamedTuple):
    """The quality of one test, and the standard error of that value."""

    value: float
    error: float


class Reference(Protocol):
    """The clean side of a measure, computed once: perturbed versions of `rows` are compared with it."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows of the clean inputs to perturb and pass to `score`, in this order."""

    @property
    def inferences(self) -> int:
        """The number of inputs passed to the model under test so far."""

    def score(self, perturbed: Batch) -> Score:
        """Return the quality of the clean inputs' `rows` under one configuration."""


class Measure(ABC):
    """A score of the similarity of perturbed inputs to clean ones.

    Which inputs are compared depends on the seed and on their number, never on a model's outputs.
    """

    name: str  # "kid", "ssim", …
    higher_is_better: bool = True  # a larger value means less damage (a similarity), not more (a distance)
    sample: int = 250  # clean inputs compared (all, if there are fewer): a standard error of about 0.01
    uses_model: bool = False  # passes inputs to the model under test:
    share: float = 1.0  # this part of the sample, perturbed, for each test
    clean_share: float = 1.0  # and this part unperturbed, once

    @abstractmethod
    def describe(self) -> Record:
        """Return all that determines the values, as plain data without paths: equal on every machine."""

    @abstractmethod
    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> Reference:
        """Prepare the clean inputs; raise InputError if they do not fit the measure."""


def draw(count: int, inputs: int, seed: int) -> NDArray[np.intp]:
    # The number separates this stream from others with the same seed.
    order = np.random.default_rng([seed, 0x9A11]).permutation(inputs)
    return order[:count].astype(np.intp)


SAMPLE = Measure.sample
# A standard error needs at least two values.
FEWEST = 2
_GROUPS = 10  # of inputs, left out one at a time for the error of a single number


Compare = Callable[[Batch], Floats]  # perturbed versions of all clean inputs to a value each


@dataclass(frozen=True)
class PerInputReference:
    name: str
    rows: NDArray[np.intp]
    compare: Compare
    inferences: int = 0

    def score(self, perturbed: Batch) -> Score:
        check_count(self.name, perturbed, len(self.rows))
        return mean_score(self.name, self.compare(perturbed))


class PerInputMeasure(Measure):
    """A measure with one value per input: a subclass has a `name`, `describe` and `compare`."""

    def __init__(self, *, sample: int = SAMPLE) -> None:
        self.sample = whole("quality: sample", sample, least=FEWEST)

    @abstractmethod
    def compare(self, clean: Batch, seed: int) -> Compare:
        """Prepare the comparison with clean inputs."""

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> Reference:
        rows, chosen = sample_of(self.name, clean, self.sample, seed)
        return PerInputReference(self.name, rows, self.compare(chosen, seed))


def sample_of(name: str, clean: Batch, sample: int, seed: int) -> tuple[NDArray[np.intp], Batch]:
    if len(clean) < FEWEST:
        raise InputError(f"quality: {name} needs at least {FEWEST} inputs; there are {len(clean)}")
    rows = np.sort(draw(sample, len(clean), seed))
    return rows, take(clean, rows)


def check_count(name: str, perturbed: Batch, count: int) -> None:
    if len(perturbed) != count:
        raise InputError(f"quality: {name} was handed {len(perturbed)} perturbed inputs; its sample has {count}")


def mean_score(name: str, values: Floats) -> Score:
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise InputError(f"quality: {name} is {values[row]} for input {row} of its sample; finite numbers are needed")
    return Score(float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values)))


def adapt(measure: Any) -> Measure | None:
    if isinstance(measure, Measure):
        return measure
    fits = hasattr(measure, "reference") and hasattr(measure, "describe") and not isinstance(measure, type)
    return ForeignMeasure(measure) if fits else None


class ForeignMeasure(Measure):
    """An object with describe() and reference(), and any other attributes of a measure."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = getattr(given, "name", type(given).__name__)
        borrow(given, self, keep=("describe", "reference"))

    def describe(self) -> Record:
        described: Record = self.given.describe()
        return described

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> Reference:
        made: Reference = self.given.reference(clean, model, seed=seed)
        return made


class FunctionMeasure(Measure):
    """f(clean, perturbed), which returns a value for each input, or one number for all of them.

    Larger values are better unless `higher_is_better` (here, or as an attribute of the function) is False. The error of
    one number comes from leaving out a tenth of the inputs at a time, so the function is called eleven times per test.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        higher_is_better: bool | None = None,
        sample: int = SAMPLE,
    ) -> None:
        described = PythonModel(function, name=name)
        self.function, self.name, self._fingerprint = function, described.name, described.fingerprint
        better = getattr(function, "higher_is_better", True) if higher_is_better is None else higher_is_better
        self.higher_is_better = flag("quality: higher_is_better", better)
        self.sample = whole("quality: sample", sample, least=FEWEST)

    def describe(self) -> Record:
        return {
            "use": self.name,
            "function": self._fingerprint,
            "sample": self.sample,
            "higher_is_better": self.higher_is_better,
        }

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> FunctionReference:
        rows, chosen = sample_of(self.name, clean, self.sample, seed)
        return FunctionReference(self.name, rows, self.function, chosen)


@dataclass(frozen=True)
class FunctionReference:
    name: str
    rows: NDArray[np.intp]
    function: Callable[..., Any]
    clean: Batch
    inferences: int = 0

    def score(self, perturbed: Batch) -> Score:
        check_count(self.name, perturbed, len(self.rows))
        values = self._values(self.clean, perturbed)
        if values.ndim == 1:
            return mean_score(self.name, values)
        number, count = self._finite(values), len(self.rows)  # the error is that of the delete-a-group jackknife
        groups = min(_GROUPS, count)
        group = np.random.default_rng(0).permutation(count) % groups
        left = np.empty(groups)
        for each in range(groups):
            kept = np.flatnonzero(group != each)
            left[each] = self._finite(self._values(take(self.clean, kept), take(perturbed, kept)))
        return Score(number, math.sqrt((groups - 1) * float(left.var())))

    def _values(self, clean: Batch, perturbed: Batch) -> Floats:
        try:
            made = self.function(own_copy(clean), own_copy(perturbed))
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"quality: {self.name} failed: {type(error).__name__}: {reason}") from error
        made = made.detach().cpu() if hasattr(made, "detach") else made
        try:
            values = np.asarray(made, dtype=np.float64)
        except (ValueError, TypeError):
            raise InputError(f"quality: {self.name} returned {type(made).__name__}; numbers are accepted") from None
        if values.shape not in ((), (len(clean),)):
            raise InputError(
                f"quality: {self.name} returned shape {values.shape} for {len(clean)} inputs; "
                "a value each or one number is accepted"
            )
        return values

    def _finite(self, value: Floats) -> float:
        if value.ndim or not np.isfinite(value):
            what = f"shape {value.shape} after one number" if value.ndim else f"{value}"
            raise InputError(f"quality: {self.name} returned {what}; one finite number is needed")
        return float(value)
