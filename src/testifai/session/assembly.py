"""From a spec to a session: loads what the spec names. Paths are relative to the spec's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from testifai import data as datasets
from testifai import models
from testifai.errors import InputError
from testifai.perturb import Perturbation, resolve
from testifai.quality.assessment import Plan, plan
from testifai.session.session import Session
from testifai.space import Space
from testifai.spec.parsing import AxisPart, Spec
from testifai.support.types import Record
from testifai.support.user_code import import_object


def session(spec: Spec, folder: Path, *, part: tuple[int, int] | None = None) -> Session:
    """Everything loaded and checked, ready to run."""
    # The space is the cheapest to check, the data the dearest.
    chosen = space(spec, folder)
    options = spec.scan.model_dump()
    inputs = data(spec.data, folder)
    options["quality"] = quality(options["quality"], folder, inputs)
    options["oracle"] = oracle(options["oracle"], folder)
    return Session(model(spec.model, folder), inputs, chosen, part=part, ask_twice=True, **options)


def quality(setting: str | Record | None, folder: Path, inputs: datasets.Data) -> Plan | None:
    """What the spec wants to know of the perturbed inputs' quality."""
    if setting is None:
        return None
    if isinstance(setting, dict) and "python" in setting:
        found, rest = _own("scan.quality", setting, folder)
        setting = {**rest, "use": found}
    return plan(setting, folder=folder, side=inputs.side)


def oracle(setting: str | Record, folder: Path) -> Any:
    """What the spec judges by: as it is named there, or a function or an object of the user's own (`python`)."""
    if not (isinstance(setting, dict) and "python" in setting):
        return setting
    found, rest = _own("scan.oracle", setting, folder)
    if not hasattr(found, "judge"):
        return {**rest, "use": "function", "function": found}
    if rest:
        raise InputError(f"scan.oracle: {', '.join(rest)}: an object with judge() takes no options; a function does")
    return found


def _own(field: str, setting: Record, folder: Path) -> tuple[Any, Record]:
    """What `python` of an entry names, and the entry's other options."""
    if "use" in setting:
        raise InputError(f"{field}: needs exactly one of use, python, got use and python")
    rest = {key: value for key, value in setting.items() if key != "python"}
    return import_object(str(setting["python"]), folder=folder, field=field), rest


def space(spec: Spec, folder: Path) -> Space:
    """The spec's axes, in the order they are written."""
    axes = {}
    for name, part in spec.axes().items():
        found = axis(name, part, folder)
        axes[name] = found if part.severities is None else (found, part.severities)
    ordered = bool(spec.space.get("order_sensitive", False))
    return Space(axes, order_sensitive=ordered, max_order=spec.max_order)


def model(part: models.ModelPart, folder: Path) -> models.Model:
    """The spec's model."""
    return models.wrap(part.load(folder))


def data(part: datasets.DataPart, folder: Path) -> datasets.Data:
    """The spec's data."""
    return datasets.wrap(part.load(folder))


def axis(name: str, part: AxisPart, folder: Path) -> Perturbation:
    """The perturbation of one of the spec's axes."""
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
    return found if part.levels is None else _at_levels(name, found, part.levels)


def _at_levels(name: str, perturbation: Perturbation, levels: list[float]) -> Perturbation:
    """The perturbation with these levels as its table, after severity 0, off."""
    if perturbation.levels is None:
        raise InputError(f"space.{name}: {perturbation.name} has no continuous level; leave out levels")
    off, strongest = perturbation.levels
    for level in levels:
        if not min(off, strongest) <= level <= max(off, strongest) or level == off:
            raise InputError(
                f"space.{name}: levels: {level:g} is not accepted; those after {off:g} to {strongest:g} are"
            )
    if not levels:
        raise InputError(f"space.{name}: levels: the list is empty; give one level for each severity from 1 on")
    return replace(perturbation, severities=[off, *levels])
