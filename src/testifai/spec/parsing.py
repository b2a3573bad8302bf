"""The spec file: reading and validating it, without loading anything it names."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    Field,
    PlainValidator,
    SerializeAsAny,
    StrictBool,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from testifai import data as datasets
from testifai import models
from testifai.errors import InputError, suggest
from testifai.perturb import main_names, names
from testifai.perturb.registry import SUITES
from testifai.runs import keys
from testifai.runs.reader import SPEC, kind_of
from testifai.spec.options import ScanOptions
from testifai.support.options_base import Fields, first_problem, validator
from testifai.support.types import Record

Level = Annotated[int, Field(ge=0, strict=True)]
SETTINGS = {"order_sensitive": bool, "max_order": int, "extra": bool}  # of [space], next to its axes


class AxisPart(Fields):
    """One axis: a registered perturbation (`use`) or one from your own code (`python`), and chosen severities.

    `levels` replaces the table of a perturbation with a continuous level: severity s is the s-th of them.
    """

    use: str | None = None
    """A registered perturbation, such as `mnist_c.zoom`."""
    python: str | None = None
    """A perturbation of yours, `package.module:name`."""
    severities: list[Level] | dict[str, Level] | None = None
    """Those of its severities to test, or their names and numbers; 0 is off. Default: all."""
    levels: list[float] | None = None
    """Of a continuous level: the levels of severities 1, 2, …, in the place of its table."""
    columns: list[str] | None = None
    """Of a table: the columns to change; default: all."""

    @model_validator(mode="after")
    def _one_source(self) -> AxisPart:
        if (self.use is None) == (self.python is None):
            found = "none of them" if self.use is None else "use and python"
            raise ValueError(f"needs exactly one of use, python, got {found}")
        return self


class Gate(Fields):
    """A requirement: the lower bound (or the estimate) of a query's robustness is at least so much."""

    query: str
    """The tests it is about, such as `zoom <= 1 and brightness <= 3`."""
    at_least: Annotated[float, Field(ge=0, le=1)]
    """The mean robustness that they must have."""
    basis: Literal["bound", "estimate"] = "bound"
    """What must reach it: the lower bound of the mean, or its estimate."""
    inputs: str | None = None
    """The inputs it is about, such as `label in {3, 5}`; default: all."""
    score: str | None = None
    """The score whose mean it is about; default: the pass rate."""
    name: str | None = None
    """What reports call it; default: its query."""
    because: str | None = None
    """Why it is required, in the words of who requires it; reports and failures say it."""


class Spec(Fields):
    """A whole spec file."""

    model: Annotated[SerializeAsAny[models.ModelPart], PlainValidator(validator(models.ADAPTERS, models.ModelPart))]
    """The model under test; the field that says where it is names its kind, such as `onnx`."""
    data: Annotated[SerializeAsAny[datasets.DataPart], PlainValidator(validator(datasets.LOADERS, datasets.DataPart))]
    """The inputs and their labels; the field that says where they are names their kind, such as `npz`."""
    space: dict[str, str | AxisPart | StrictBool | StrictInt]
    """The conditions to combine, one line for each axis, in the order they are applied; or the name of a suite."""
    scan: ScanOptions = ScanOptions()
    """How the space is measured."""
    gate: list[Gate] = Field(default_factory=list)
    """What must hold, as often as there is something to require."""

    @field_validator("space", mode="before")
    @classmethod
    def _suite_by_name(cls, given: Any) -> Any:
        return {"suite": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _axes(self) -> Spec:
        for name, value in self.space.items():
            wanted = SETTINGS.get(name)
            if isinstance(value, bool | int) and wanted is None:
                raise ValueError(f"[space] {name}: expected a perturbation, got {str(value).lower()}")
            if wanted is not None and type(value) is not wanted:
                accepted = "true or false" if wanted is bool else "a whole number"
                raise ValueError(f"[space] {name}: expected {accepted}; an axis needs another name")
        if "extra" in self.space and self.suite is None:
            raise ValueError('[space] extra: is about a whole suite, such as suite = "imagenet_c"')
        if not self.axes():
            raise ValueError('[space] names no axis; add a line such as: blur = "mnist_c.motion_blur"')
        return self

    def axes(self) -> dict[str, AxisPart]:
        """Return the axes in the order in which they are applied."""
        parts: dict[str, AxisPart] = {}
        for name, value in self.space.items():
            if name == "suite" and self.suite is not None:
                members = names(self.suite) if self.space.get("extra", False) else main_names(self.suite)
                parts |= {one.partition(".")[2]: AxisPart(use=one) for one in members}
            elif isinstance(value, AxisPart):
                parts[name] = value
            elif isinstance(value, str):
                parts[name] = AxisPart(use=value)
        return parts

    @property
    def suite(self) -> str | None:
        """Return the suite whose perturbations are the axes, if there is one."""
        named = self.space.get("suite")
        if not isinstance(named, str) or "." in named:  # an axis called suite
            return None
        if named not in SUITES:
            raise ValueError(f"[space] suite: {named!r} is not known; {suggest(named, SUITES)}")
        return named

    @property
    def max_order(self) -> int | None:
        """Return the largest number of combined perturbations, by default 1 for a suite."""
        given = self.space.get("max_order", None if self.suite is None else 1)
        return given if isinstance(given, int) else None

    def about(self, folder: Path) -> Record:
        """Return the entries of a run file about its spec."""
        return {
            keys.SPEC: self.model_dump(mode="json", exclude_none=True),
            keys.GATES: [gate.model_dump(mode="json", exclude_none=True) for gate in self.gate],
            keys.FOLDER: str(folder),
        }

    def own_code(self) -> dict[str, str]:
        """Return all user code that loading the spec imports, "package.module:name" by entry of the spec.

        The spec of a run file of unknown origin is only trusted with this code.
        """
        parts = {"model": self.model, "data": self.data}
        found = {f"{table}.{name}": path for table, part in parts.items() for name, path in part.own_code().items()}
        found |= _code_of_quality(self.scan.quality)
        if isinstance(self.scan.oracle, dict) and "python" in self.scan.oracle:
            found["scan.oracle"] = str(self.scan.oracle["python"])
        axes = {f"space.{name}": part.python for name, part in self.axes().items()}
        return found | {entry: path for entry, path in axes.items() if path}

    def runs_code(self) -> list[str]:
        """The entries of the spec that import the user's code."""
        return list(self.own_code())


def _code_of_quality(quality: str | Record | None) -> dict[str, str]:
    if not isinstance(quality, dict):
        return {}
    found = {"scan.quality": str(quality["python"])} if "python" in quality else {}
    extractor = quality.get("extractor")
    if isinstance(extractor, dict):
        for kind in [kind for kind in models.ADAPTERS if kind in extractor]:
            # Without validation: an invalid spec must not hide its code.
            own = models.ADAPTERS[kind].model_construct(**extractor).own_code()
            found |= {f"scan.quality.extractor.{name}": path for name, path in own.items()}
    return found


def read(path: str | os.PathLike[str]) -> Spec:
    """Read and check a spec file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"spec: {path} does not exist; write one with: testifai init MODEL DATA") from None
    except (OSError, UnicodeDecodeError) as error:
        _refuse_others(path)
        raise InputError(f"spec: cannot read {path} ({error})") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _refuse_others(path)
        twice = "overwrite" in str(error) or "twice" in str(error)
        hint = " (is an axis or key written twice?)" if twice else ""
        raise InputError(f"{path.name}: not valid TOML: {error}{hint}") from None
    except RecursionError:
        raise InputError(f"{path.name}: is nested too deeply; a spec has tables of values and lists") from None
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"{path.name}: not valid TOML: {error}") from None
    return parse(table, path.name)


def _refuse_others(path: Path) -> None:
    kind = kind_of(path)
    if kind not in (None, SPEC):
        raise InputError(f"spec: {path} is {kind}, not a spec; write one with: testifai init MODEL DATA")


def parse(table: Record, name: str = "spec") -> Spec:
    """Validate a spec given as plain data."""
    try:
        return Spec.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{name}: {first_problem(error, _known)}") from None
    except RecursionError:
        raise InputError(f"{name}: is nested too deeply; a spec has tables of values and lists") from None


def _known(location: list[str]) -> list[str]:
    parts: dict[str, type[BaseModel]] = {"space": AxisPart, "scan": ScanOptions, "gate": Gate}
    part = parts.get(location[0]) if location else Spec
    return list((part or Spec).model_fields)
