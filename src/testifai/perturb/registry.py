"""What a perturbation is, and the names under which perturbations are found."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError, suggest
from testifai.perturb.rng import Rng
from testifai.rows import Batch

Function = Callable[[Any, Any, Rng], Any]

# A built-in suite is one file and one line here; it is imported when a name with its prefix is asked for.
SUITES = {"mnist_c": "testifai.perturb.mnist_c"}

_registered: dict[str, Perturbation] = {}


@dataclass(frozen=True, eq=False)
class Perturbation:
    """A label-preserving change of inputs with a table of severities.

    `function(batch, parameter, rng)` returns the changed batch; `severities[s]` is the parameter of severity
    s. Severity 0 is "off": its parameter is never handed to the function.

    >>> fade = Perturbation("fade", lambda batch, factor, rng: batch * factor, [1.0, 0.8, 0.6])
    >>> fade.apply(np.array([10.0, 20.0]), 2)
    array([ 6., 12.])
    """

    name: str
    function: Function
    severities: Sequence[Any]
    summary: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"perturbation name: {self.name!r} is not accepted; give a non-empty string")
        if not callable(self.function):
            raise InputError(
                f"perturbation '{self.name}': function is {self.function!r}; "
                "it must be callable as f(batch, parameter, rng)"
            )
        if isinstance(self.severities, str | dict) or not isinstance(self.severities, Iterable):
            raise InputError(
                f"perturbation '{self.name}': severities is {self.severities!r}; give a list of parameters"
            )
        table = tuple(self.severities)
        if len(table) < 2:
            raise InputError(
                f"perturbation '{self.name}': severities has {len(table)} of at least 2 parameters "
                "(the first belongs to severity 0, off)"
            )
        object.__setattr__(self, "severities", table)

    def check_severity(self, severity: int) -> int:
        """The severity as a plain int, or an InputError."""
        known = isinstance(severity, int | np.integer) and not isinstance(severity, bool)
        if not known or not 0 <= severity < len(self.severities):
            raise InputError(
                f"perturbation '{self.name}': severity {severity!r} does not exist; "
                f"accepted: whole numbers 0 to {len(self.severities) - 1}"
            )
        return int(severity)

    def apply(
        self,
        batch: Batch,
        severity: int,
        *,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
    ) -> Batch:
        """The batch at this severity; the batch handed in stays as it is.

        `indices` are the inputs' numbers in the data set (default: 0, 1, 2, …): an input's random draws
        follow its number. `occurrence` tells apart several uses of one perturbation on the same inputs.
        """
        severity = self.check_severity(severity)
        count = check_batch(batch)
        if severity == 0:
            return batch
        rng = Rng(check_seed(seed), self.name, severity, check_indices(indices, count), occurrence)
        result = self._call(batch, severity, rng)
        return self._checked(result, batch, severity)

    def _call(self, batch: Batch, severity: int, rng: Rng) -> Any:
        try:
            return self.function(_protected(batch), self.severities[severity], rng)
        except InputError as error:
            raise InputError(f"perturbation '{self.name}': {error}") from error
        except Exception as error:
            if isinstance(error, ValueError) and "read-only" in str(error):
                raise InputError(f"perturbation '{self.name}' must not change its argument; work on a copy") from error
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"perturbation '{self.name}' failed at severity {severity}: {reason}") from error

    def _checked(self, result: Any, batch: Batch, severity: int) -> Batch:
        wrong = f"perturbation '{self.name}' at severity {severity} returned"
        if isinstance(batch, list):
            if not isinstance(result, list) or not all(isinstance(text, str) for text in result):
                raise InputError(f"{wrong} {_kind(result)}; expected a list of strings")
            if len(result) != len(batch):
                raise InputError(f"{wrong} {len(result)} texts for {len(batch)} inputs")
            return result
        if not isinstance(result, np.ndarray):
            raise InputError(f"{wrong} {_kind(result)}; expected an array")
        if result.dtype.kind == batch.dtype.kind == "f":
            # Draws are float64; a sum with float32 inputs should not be a mistake.
            result = result.astype(batch.dtype, copy=False)
        if result.shape != batch.shape or result.dtype != batch.dtype:
            raise InputError(
                f"{wrong} {result.dtype} of shape {result.shape}; "
                f"expected {batch.dtype} of shape {batch.shape}, as given"
            )
        checked: NDArray[Any] = result if result.flags.writeable else result.copy()
        return checked


def perturbation(name: str, severities: Sequence[Any], summary: str = "") -> Callable[[Function], Perturbation]:
    """Register a function f(batch, parameter, rng) as a perturbation.

    >>> @perturbation("doc_fade", severities=[1.0, 0.8, 0.6])
    ... def doc_fade(batch, factor, rng):
    ...     return batch * factor
    >>> get("doc_fade") is doc_fade
    True
    """

    def register(function: Function) -> Perturbation:
        made = Perturbation(name, function, severities, summary or _first_line(function))
        suite = name.partition(".")[0]
        if "." in name and suite in SUITES and getattr(function, "__module__", None) != SUITES[suite]:
            raise InputError(f"perturbation name '{name}': the prefix '{suite}.' belongs to a built-in suite")
        taken = _registered.get(name)
        if taken is not None and not _same_source(taken.function, function):
            raise InputError(f"perturbation name '{name}' is taken by another function; choose another name")
        _registered[name] = made
        return made

    return register


def get(name: str) -> Perturbation:
    """The perturbation registered under a name.

    >>> get("mnist_c.zoom").severities
    (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
    """
    if isinstance(name, str) and name not in _registered:
        _load(name.partition(".")[0])
    if not isinstance(name, str) or name not in _registered:
        raise InputError(f"perturbation {name!r} is not known; {suggest(name, names())}")
    return _registered[name]


def names(suite: str | None = None) -> list[str]:
    """All registered names, or those of one suite, in alphabetical order.

    >>> "mnist_c.zoom" in names("mnist_c")
    True
    """
    for known in SUITES if suite is None else [suite]:
        _load(known)
    if suite is None:
        return sorted(_registered)
    found = sorted(name for name in _registered if name.startswith(f"{suite}."))
    if not found:
        suites = {name.partition(".")[0] for name in _registered if "." in name} | set(SUITES)
        raise InputError(f"suite {suite!r} is not known; {suggest(suite, suites)}")
    return found


def resolve(given: str | Perturbation) -> Perturbation:
    """A perturbation from its name or from itself."""
    return given if isinstance(given, Perturbation) else get(given)


def describe(given: Perturbation) -> dict[str, Any]:
    """A perturbation as JSON-able data: enough to find it again and to notice that it has changed.

    >>> describe(get("mnist_c.rotate"))
    {'name': 'mnist_c.rotate', 'severities': [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]}
    """
    return {"name": given.name, "severities": [_plain(parameter) for parameter in given.severities]}


def rebuild(description: dict[str, Any]) -> Perturbation:
    """The registered perturbation that `describe` wrote down; an InputError where its table has changed."""
    found = get(description["name"])
    stored, current = description.get("severities"), describe(found)["severities"]
    if stored is not None and stored != current:
        raise InputError(f"perturbation '{found.name}': severities were {stored} and are {current} now")
    return found


def check_batch(batch: Batch) -> int:
    """The number of inputs of a batch, or an InputError when there is none or it is no batch."""
    if isinstance(batch, np.ndarray):
        if batch.ndim == 0:
            raise InputError("batch: a single number is not accepted; give an array whose first axis is the input")
    elif not isinstance(batch, list) or not all(isinstance(text, str) for text in batch):
        raise InputError(f"batch: {_kind(batch)} is not accepted; give an array or a list of strings")
    if len(batch) == 0 or (isinstance(batch, np.ndarray) and batch.size == 0):
        raise InputError("batch: it holds no inputs; at least one is needed")
    return len(batch)


def check_seed(seed: int) -> int:
    """The seed as a plain int, or an InputError."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(f"seed: {seed!r} is not accepted; give a whole number")
    return int(seed)


def check_indices(indices: ArrayLike | None, count: int) -> NDArray[np.integer[Any]]:
    """The inputs' numbers as an integer array of the right length, or an InputError."""
    if indices is None:
        return np.arange(count)
    numbers = np.asarray(indices)
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu" or numbers.min() < 0:
        raise InputError(
            f"indices: {numbers.dtype} of shape {numbers.shape} is not accepted; "
            f"give one whole number ≥ 0 for each of the {count} inputs"
        )
    return numbers


def _load(suite: str) -> None:
    if suite in SUITES:
        importlib.import_module(SUITES[suite])


def _protected(batch: Batch) -> Batch:
    """What a user's function gets to see: writing to it cannot reach the caller's batch."""
    if isinstance(batch, list):
        return list(batch)
    view = batch.view()
    view.flags.writeable = False
    return view


def _same_source(one: Function, other: Function) -> bool:
    """Whether this is one piece of source run again, as in a notebook."""
    place = [(getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (one, other)]
    unnamed = place[0][1] is None or place[0][1].endswith("<lambda>")
    return one is other or (place[0] == place[1] and not unnamed)


def _first_line(function: Function) -> str:
    return next(iter((getattr(function, "__doc__", None) or "").strip().splitlines()), "")


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
