"""What a quality measure is, and measures by name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.models.base import Model
from testifai.support.batches import Batch
from testifai.support.batches import Side as Side
from testifai.support.named import make

# Where each is: torch, transformers and the like are imported only when a measure that needs them is asked for.
MEASURES = {
    "bertscore": "testifai.quality.bertscore:Bertscore",
    "bleu": "testifai.quality.bleu:Bleu",
    "edit_similarity": "testifai.quality.edit_similarity:EditSimilarity",
    "kid": "testifai.quality.kid:Kid",
    "ssim": "testifai.quality.ssim:Ssim",
}


class Score(NamedTuple):
    """The quality of one test, and the standard error of that value."""

    value: float
    error: float


class Reference(Protocol):
    """The clean side of a measure, computed once: perturbed versions of `rows` are compared with it."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """Which rows of the clean inputs are to be perturbed and handed to `score`, in this order."""
        ...

    @property
    def inferences(self) -> int:
        """How many inputs were handed to the model under test so far."""
        ...

    def score(self, perturbed: Batch) -> Score:
        """The quality of the clean inputs' `rows` under one configuration."""
        ...


class Measure(Protocol):
    """A way to score how much perturbed inputs still look like clean ones.

    Which inputs are compared depends on the seed and on how many there are, never on what a model made of them.
    """

    @property
    def name(self) -> str:
        """What it is called: "kid", "ssim", …"""
        ...

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value means less damage (a similarity) or more (a distance)."""
        ...

    @property
    def sample(self) -> int:
        """How many clean inputs it looks at; all, where there are fewer."""
        ...

    @property
    def uses_model(self) -> bool:
        """Whether it hands inputs to the model under test."""
        ...

    def describe(self) -> dict[str, Any]:
        """What decides its values, as plain data without paths: the same on every machine."""
        ...

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> Reference:
        """The clean inputs made ready; what does not fit the measure is an InputError before anything is run."""
        ...


def resolve(given: Any, *, folder: str | Path = ".", side: Side = "both") -> Measure:
    """A measure by name, by {"use": name, option: value}, as an object, or as a function f(clean, perturbed).

    Such a function returns a value for each input, or one number. Relative paths start at `folder`; `side` says
    which texts of pairs are perturbed.

    >>> resolve({"use": "kid", "sample": 200}).sample
    200
    """
    if isinstance(given, str | Mapping):
        return _named(given, {"folder": folder, "side": side})
    if isinstance(given, type):
        raise InputError(f"quality: {given.__name__} is a class; hand over an instance, a function or a name")
    if hasattr(given, "reference") and hasattr(given, "describe"):
        return cast(Measure, given)
    if callable(given):
        from testifai.quality.function import FunctionMeasure

        return FunctionMeasure(given)
    names = ", ".join(MEASURES)
    raise InputError(f"quality: {type(given).__name__} is not accepted; a function f(clean, perturbed) or {names} is")


def _named(given: str | Mapping[str, Any], context: dict[str, Any]) -> Measure:
    """What a name stands for; options that were not given and depend on the spec or the data come from `context`."""
    options = {"use": given} if isinstance(given, str) else dict(given)
    name = options.get("use")
    if not isinstance(name, str) or name not in MEASURES:
        what = f"{name!r} is not known" if "use" in options else f"{options!r} has no 'use'"
        raise InputError(f"quality: {what}; {suggest(name or '', MEASURES)}")
    module, kind = MEASURES[name].split(":")
    maker: Callable[..., Measure] = getattr(importlib.import_module(module), kind)
    parameters = inspect.signature(maker).parameters
    known = {option: value for option, value in context.items() if option in parameters}
    return make("quality", {**known, **options}, {name: maker})


def whole_number(option: str, value: Any, least: int) -> int:
    """An option that must be a whole number.

    >>> whole_number("sample", 0, 2)
    Traceback (most recent call last):
    testifai.errors.InputError: quality: sample = 0 is not accepted; a whole number from 2 is
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"quality: {option} = {value!r} is not accepted; a whole number from {least} is")
    return int(value)


def draw(count: int, inputs: int, seed: int) -> NDArray[np.intp]:
    """So many rows out of `inputs`, or all, in a random order of the seed's own.

    >>> sorted(draw(5, 3, seed=0).tolist())
    [0, 1, 2]
    """
    # The number sets these draws apart from others made with the same seed.
    order = np.random.default_rng([seed, 0x9A11]).permutation(inputs)
    return order[:count].astype(np.intp)
