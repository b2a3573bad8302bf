"""Making a session from a spec or from the keywords of `ta.scan`: loading and checking its components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from testifai import data as datasets
from testifai import models
from testifai.data import Data
from testifai.engine import EXECUTORS, backend
from testifai.engine.base import Executor, Interrupts
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models import Model
from testifai.oracles import Oracle
from testifai.perturb import Perturbation, resolve
from testifai.quality.assessment import Assessment, plan
from testifai.runs.outcomes import visiting_order
from testifai.session import compatibility
from testifai.session.observers import observers
from testifai.session.session import Session
from testifai.space import Space
from testifai.spec.options import ScanKeywords, ScanOptions, choose, with_options
from testifai.spec.parsing import AxisPart, Spec
from testifai.support.progress import bar
from testifai.support.types import Array, Record
from testifai.support.user_code import import_object
from testifai.tomogram import Tomogram


@with_options(ScanKeywords)
def scan(model: object, data: object, space: Space, **keywords: Any) -> Tomogram:
    """Test a model over a space of conditions; the tomogram answers queries about all of them.

    docs/supported.md lists the supported models and data, `testifai list plugins` the components with a name.

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"shift": shift}), strategy="full")
    >>> tomogram.estimate.tolist()
    [1.0, 0.9, 0.525]
    """
    store, progress = keywords.pop("store", None), keywords.pop("progress", False)
    made = session_of(model, data, space, **keywords)
    if progress is True:
        with bar() as show:
            return made.run(store, show)
    return made.run(store, progress or None)


def session_of(
    model: object, data: object, space: Space, *, part: tuple[int, int] | None = None, **options: Any
) -> Session:
    """Make a session from a model, data and the keywords of `ta.scan`."""
    checked = ScanOptions.of(options)
    if not isinstance(space, Space):
        raise InputError(f"space: expected a testifai.Space, got {type(space).__name__}")
    wrapped = datasets.wrap(data)
    return assemble(models.wrap(model, wrapped.schema), wrapped, space, checked, part=part, check_model=False)


def session(spec: Spec, folder: Path, *, part: tuple[int, int] | None = None) -> Session:
    """Make a session from a spec, whose paths are relative to a folder."""
    chosen = space(spec, folder)  # first: it is the cheapest to check
    parts = load(spec, folder)
    quality = parts.options.quality
    if isinstance(quality, dict) and "python" in quality:
        found, rest = _user_code("scan.quality", quality, folder)
        quality = {**rest, "use": found}
    if quality is not None:
        quality = plan(quality, folder=folder, side=parts.data.side)
    return assemble(parts.model, parts.data, chosen, parts.options.model_copy(update={"quality": quality}), part=part)


@dataclass(frozen=True)
class LoadedParts:
    """The loaded model, data and options of a spec."""

    model: Model
    data: Data
    options: ScanOptions


def load(spec: Spec, folder: Path) -> LoadedParts:
    """Load the model, the data and the oracle of a spec."""
    data = load_data(spec, folder)
    options = spec.scan.model_copy(update={"oracle": _oracle(spec.scan.oracle, folder)})
    return LoadedParts(load_model(spec, folder, data), data, options)


def load_data(spec: Spec, folder: Path) -> Data:
    return datasets.wrap(spec.data.load(folder))


def load_model(spec: Spec, folder: Path, data: Data | None = None) -> Model:
    """Load the model of a spec, for tables with the columns of these data."""
    return models.wrap(spec.model.load(folder), None if data is None else data.schema)


def assemble(
    model: Model,
    data: Data,
    space: Space,
    options: ScanOptions,
    *,
    part: tuple[int, int] | None = None,
    check_model: bool = True,
) -> Session:
    """Make a session; raise InputError if its components do not fit together.

    With `check_model`, the run spends a few inferences on whether the model is deterministic and on class indices.
    """
    data, oracle = compatibility.judged(model, data, options.oracle)
    executor, workers = options.placed()
    placed = backend.choose(executor, options.device, options.precision or "float32", model, data, oracle.moves)
    compatibility.check_tables(placed.model, data, space, options.seed)
    methods = choose(options, space, parts=part is not None)
    compatibility.check(options.score, oracle)
    subject = Subject(
        data,
        space,
        visiting_order(len(data), options.seed),
        options.seed,
        model=placed.model,
        oracle=oracle,
        labels=_labels(placed.model, data, oracle),
        classes=_class_count(placed.model, data, oracle),
        keep=compatibility.kept(options.keep, oracle, scores=methods.takes_scores),
    )
    assessment = None
    if options.quality is not None:
        wanted = plan(options.quality, side=data.side)
        assessment = Assessment(subject, wanted, every_test=methods.strategy.name == "full")
        if options.budget is not None and assessment.reserve >= options.budget:
            raise InputError(
                f"quality: {assessment.measure.name} on {len(assessment.wanted):,} tests may need "
                f"{assessment.reserve:,} inferences of the model, and the budget is {options.budget:,}; give it a "
                "smaller sample, or raise the budget"
            )
    interrupts = Interrupts()
    made: Executor = EXECUTORS.make(
        placed.executor,
        subject=subject,
        batch_size=options.batch_size,
        workers=workers,
        interrupted=interrupts,
        **placed.options,
    )
    if part is not None:
        own, parts = part
        if not 1 <= own <= parts:
            raise InputError(f"part: expected I/N with I from 1 to N, got {own}/{parts}")
        if methods.stopping is not None:
            raise InputError("part: a stopping rule needs all outcomes of a test in one place; use stopping = 'none'")
        if not methods.strategy.splits:
            raise InputError(
                f"part: strategy {methods.strategy.name!r} gives every test inputs of its own; use 'full' or 'ordered'"
            )
    watching = observers(subject, made.references, options.budget, check_model=check_model)
    how: Record = {"backend": placed.identity, "observers": watching, "assessment": assessment, "part": part}
    return Session(subject, made, interrupts, methods, options, **how)


def _labels(model: Model, data: Data, oracle: Oracle) -> Array | None:
    """Return the labels with the model's class indices; raise InputError if they do not fit the oracle."""
    if not oracle.needs_labels:
        return data.labels
    oracle.check(data.labels, None)
    assert data.labels is not None
    labels = models.align_labels(data.labels, data.classes, model.class_values)
    oracle.check(labels, model.classes)
    return labels


def _class_count(model: Model, data: Data, oracle: Oracle) -> int | None:
    if not oracle.decides_classes:
        return None
    if model.classes is not None or data.classes is not None:
        return model.classes or len(data.classes or ())
    labels = data.labels
    # A single label does not show the number of classes.
    countable = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu" and len(np.unique(labels)) > 1
    return int(labels.max()) + 1 if labels is not None and countable else None


# -- components of a spec ---------------------------------------------------------------------------------------------


def _oracle(setting: object, folder: Path) -> object:
    """Load an oracle that is a function or an object of the user (`python`)."""
    if not (isinstance(setting, dict) and "python" in setting):
        return setting
    found, rest = _user_code("scan.oracle", setting, folder)
    if not hasattr(found, "judge"):
        return {**rest, "use": "function", "function": found}
    if rest:
        raise InputError(f"scan.oracle: {', '.join(rest)}: an object with judge() takes no options; a function does")
    return found


def _user_code(field: str, setting: Record, folder: Path) -> tuple[object, Record]:
    """Import user code; return it with the other options."""
    if "use" in setting:
        raise InputError(f"{field}: needs exactly one of use, python, got use and python")
    rest = {key: value for key, value in setting.items() if key != "python"}
    return import_object(str(setting["python"]), folder=folder, field=field), rest


def space(spec: Spec, folder: Path) -> Space:
    """Make the space of a spec."""
    axes = {}
    for name, part in spec.axes().items():
        found = axis(name, part, folder)
        axes[name] = found if part.severities is None else (found, part.severities)
    ordered = bool(spec.space.get("order_sensitive", False))
    return Space(axes, order_sensitive=ordered, max_order=spec.max_order)


def axis(name: str, part: AxisPart, folder: Path) -> Perturbation:
    """Make the perturbation of one axis of a spec."""
    if part.python is not None:
        found = import_object(part.python, folder=folder, field=f"space.{name}")
        if not isinstance(found, Perturbation):
            raise InputError(
                f"space.{name}: {part.python!r} is a {type(found).__name__}, not a perturbation; "
                "decorate the function with @testifai.perturbation(name, severities=[…])"
            )
    else:
        found = resolve(part.use or "")
    if part.columns is not None:
        found = found.on(*part.columns)
    if part.levels is None:
        return found
    if found.levels is None:
        raise InputError(f"space.{name}: {found.name} has no continuous level; leave out levels")
    off, strongest = found.levels
    for level in part.levels:
        if not min(off, strongest) <= level <= max(off, strongest) or level == off:
            raise InputError(
                f"space.{name}: levels: {level:g} is not accepted; those after {off:g} to {strongest:g} are"
            )
    if not part.levels:
        raise InputError(f"space.{name}: levels: the list is empty; give one level for each severity from 1 on")
    return replace(found, severities=[off, *part.levels])
