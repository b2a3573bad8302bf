"""Options of a scan: the keywords of `ta.scan` and the keys of a spec's [scan]."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from pydantic import ConfigDict, ValidationError, ValidationInfo, field_validator

from testifai import strategies, surrogates
from testifai.engine import stopping as stopping_rules
from testifai.engine.backend import PRECISIONS
from testifai.engine.stopping import StoppingRule
from testifai.errors import InputError, suggest
from testifai.space import Space
from testifai.strategies import Strategy
from testifai.support import validation
from testifai.support.options_base import Fields
from testifai.support.progress import Step
from testifai.support.types import Record, RecordLike
from testifai.surrogates import Surrogate

POPULATIONS = ("data", "future")
KEEP = ("value", "predicted", "detections")
LEAST = {"budget": 2, "batch_size": 1, "workers": 1, "seed": 0}  # a budget buys a clean and a perturbed input
MOST = {"seed": 2**63 - 1, "workers": 1024, "batch_size": 2**31 - 1}

# Type and meaning of each option, for help; the types of components are open, as they may be objects.
PART = "a name, a table with 'use', or an object"
MEANINGS = {
    "model": (
        "a function, a path or an object",
        "makes labels or scores of a batch: also an .onnx file, a Hugging Face folder, an estimator, a torch module",
    ),
    "data": ("a pair, a path or an object", "inputs with labels (X, y), a data set, a frame, or `ta.data.from_…`"),
    "space": ("a Space", "the conditions, and how they are combined"),
    "strategy": (
        PART,
        "which tests get how many inputs: 'adaptive' (default), 'balanced', 'full', 'ordered', 'random'",
    ),
    "surrogate": (
        PART,
        "what estimates every test from the outcomes of all; default: the strategy's; 'none': raw rates",
    ),
    "stopping": (PART, "when a test has had enough inputs: 'interval', 'window' (as published); default: none"),
    "budget": ("a whole number", "most inferences to spend"),
    "target": (
        "above 0, below 1",
        "wanted half-width of all tests' 95 % intervals; the run ends there or at its budget",
    ),
    "population": (
        "'future' or 'data'",
        "whether answers are about new inputs like these, the default, or about exactly these inputs",
    ),
    "oracle": (PART, "when an input passes: 'label' (default), 'consistency' (needs no labels), 'tolerance', …"),
    "batch_size": ("a whole number", "inputs handed to the model at once; default: what is quickest"),
    "seed": ("a whole number", "of all that is drawn; one seed gives one run, whatever the batch size and the workers"),
    "workers": ("a whole number, 'ray' or 'ray:ADDRESS'", "how many work side by side here, or on whose machines"),
    "keep": (f"a list of {', '.join(KEEP)}", "what to store of every trial besides whether it passed"),
    "quality": (PART, "how plausible perturbed inputs are, to be asked for in queries: 'kid', 'ssim', 'bertscore', …"),
    "score": ("a name", "plan the run for the mean of this score of the oracle, such as 'f1', not for the pass rate"),
    "executor": (PART, "where trials are run; default: on this machine"),
    "device": ("'cpu', 'cuda', …", "where torch models run and images are perturbed; default: where the model is"),
    "precision": (" or ".join(PRECISIONS), "of a torch model on a device; default: float32"),
    "store": ("a path", "a run file: outcomes are kept as they come, and the same call continues an interrupted run"),
    "progress": ("True or a function", "show a bar, or call this with every step"),
}


def _whole(field: str, value: Any) -> int:
    number = validation.whole(field, value, least=LEAST[field])
    return validation.whole(field, number, most=MOST[field]) if field in MOST else number


def _workers(field: str, value: Any) -> int | str:
    if not isinstance(value, str):
        return _whole(field, value)
    if value != "ray" and not value.startswith("ray:"):
        raise InputError(
            f"workers: must be a number, 'ray', 'ray:auto', 'ray:HOST:6379' or 'ray://HOST:10001', got {value!r}"
        )
    return value


def _kept(field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"keep: must be a list of {', '.join(KEEP)}, got {value!r}")
    return tuple(str(validation.choice(field, name, KEEP)) for name in value)


CHECKS: dict[str, Callable[[str, Any], object]] = {
    **dict.fromkeys(LEAST, _whole),
    "workers": _workers,
    "target": lambda field, value: validation.number(field, value, above=0, below=1),
    "population": lambda field, value: str(validation.choice(field, value, POPULATIONS)),
    "device": lambda field, value: str(value),  # also a torch.device
    "precision": lambda field, value: str(validation.choice(field, value, PRECISIONS)),
    "keep": _kept,
}

Keywords = ParamSpec("Keywords")
Result = TypeVar("Result")


class ScanOptions(Fields):
    """How a scan is made. Parts are given by name, as {"use": name, option: value} or, in Python, as objects."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    strategy: Any = None
    surrogate: Any = None
    stopping: Any = None
    budget: int | None = None
    target: float | None = None
    population: str = "future"
    oracle: Any = "label"  # for a model that answers with one number, tolerance
    batch_size: int | None = None
    seed: int = 0
    workers: int | str | None = None  # so many here, or "ray" and an address
    keep: Sequence[str] | None = None
    quality: Any = None
    score: str | None = None  # whose mean the run is planned for; None: the pass rate
    executor: Any = None  # None: on this machine
    device: str | None = None  # of torch; None: where the model is
    precision: str | None = None  # None: float32

    @field_validator("strategy", "surrogate", "stopping", "oracle", "quality", "executor", mode="before")
    @classmethod
    def _named(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool | int | float | list):
            raise InputError(f"{info.field_name}: must be a name or a table with 'use', got {value!r}")
        return value

    @field_validator(*CHECKS, mode="before")
    @classmethod
    def _checked(cls, value: Any, info: ValidationInfo) -> Any:
        field = info.field_name or ""
        return None if value is None and field not in ("population", "seed") else CHECKS[field](field, value)

    def placed(self) -> tuple[Any, int | None]:
        """Return the executor, possibly named by `workers`, and the number of workers, if given."""
        if not isinstance(self.workers, str):
            return self.executor, self.workers
        if self.executor is not None:
            raise InputError(f"workers: {self.workers!r} names an executor, and so does executor; give one of them")
        address = self.workers if self.workers.startswith("ray://") else self.workers.removeprefix("ray").lstrip(":")
        return {"use": "ray", **({"address": address} if address else {})}, None

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """Return the meaning of each option, as in `help(ta.scan)`."""
        told = {name: MEANINGS[name][1].rstrip(".") for name in cls.model_fields}
        return {name: f"{meaning[:1].upper()}{meaning[1:]}." for name, meaning in told.items()}

    @classmethod
    def of(cls, given: RecordLike) -> ScanOptions:
        """Validate keywords; raise InputError."""
        for name in given:
            if name not in cls.model_fields:
                raise InputError(f"scan: no option {name!r}; {suggest(name, cls.model_fields)}")
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(str(first["msg"]).removeprefix("Value error, ")) from None


class ScanKeywords(ScanOptions):
    """All keywords of `ta.scan`."""

    store: str | os.PathLike[str] | None = None
    progress: bool | Callable[[Step], None] = False


@dataclass(frozen=True)
class Methods:
    """The components of a scan, which fit together."""

    strategy: Strategy
    surrogate: str | Surrogate | None  # as it was given, or the strategy's own
    told_rule: StoppingRule | None  # as given
    stopping: StoppingRule | None  # as given, or for a target
    takes_scores: bool  # whether the surrogate learns from scores

    def describe(self) -> Record:
        """Return the part of a run's identity that is about its methods; a target may change."""
        rule = stopping_rules.describe(self.told_rule)
        if rule is not None:
            rule.pop("target", None)
        surrogate = self.surrogate if isinstance(self.surrogate, str | dict | None) else type(self.surrogate).__name__
        return {"strategy": self.strategy.describe(), "surrogate": surrogate, "stopping": rule}


def strategy_of(options: ScanOptions, *, parts: bool = False) -> Strategy:
    """Make the strategy, by default one that fits the other options."""
    if options.strategy is not None:
        return strategies.resolve(options.strategy)
    return strategies.resolve(strategies.default(surrogate=options.surrogate, stopping=options.stopping, parts=parts))


def choose(options: ScanOptions, space: Space, *, parts: bool = False) -> Methods:
    """Make strategy, surrogate and stopping rule; raise InputError if they do not fit together."""
    stopping, target = options.stopping, options.target
    strategy = strategy_of(options, parts=parts)
    surrogate = strategy.surrogate if options.surrogate is None else options.surrogate
    resolved = surrogates.resolve(surrogate, options.seed, [axis.severities for axis in space.axes])
    if space.order_sensitive and resolved is not None and resolved.plain_only:
        raise InputError(
            f"surrogate: {surrogate!r} does not fit a space in which the order of application counts; "
            "use surrogate = 'process', or strategy = 'ordered' with surrogate = 'forest'"
        )
    told = stopping_rules.resolve(stopping, target)
    if strategy.uses_target and told is not None:
        raise InputError(
            f"stopping: strategy {strategy.name!r} decides itself how many inputs a test gets; "
            "leave stopping out, or use strategy = 'ordered' or 'full'"
        )
    # A target without a rule implies the rule "interval", unless the strategy itself uses the half-widths.
    by_target = stopping is None and target is not None and not strategy.uses_target
    rule = stopping_rules.resolve("interval", target) if by_target else told
    return Methods(strategy, surrogate, told, rule, isinstance(resolved, surrogates.PoolingSurrogate))


def with_options(
    options: Callable[Keywords, ScanOptions],
) -> Callable[[Callable[..., Result]], Callable[Concatenate[Any, Any, Space, Keywords], Result]]:
    """Document the **keywords of a function as these options, for help, editors and type checkers."""

    def dress(function: Callable[..., Result]) -> Callable[Concatenate[Any, Any, Space, Keywords], Result]:
        own = inspect.signature(function)
        positional = [one for one in own.parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        listed = [*positional, *inspect.signature(options).parameters.values()]
        function.__signature__ = own.replace(parameters=listed)  # type: ignore[attr-defined]
        meanings = (f"    {one.name} ({MEANINGS[one.name][0]}): {MEANINGS[one.name][1]}" for one in listed)
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "Args:", *meanings])
        return cast("Callable[Concatenate[Any, Any, Space, Keywords], Result]", function)

    return dress
