"""The spec file as pure data: read, checked, nothing loaded and nothing run."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, model_validator

from testifai.errors import InputError, suggest

Level = Annotated[int, Field(ge=0, strict=True)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelPart(_Part):
    """Where the model is and what it wants to be fed. Exactly one of onnx, transformers, encoder, python, torch."""

    onnx: str | None = None
    transformers: str | None = None
    encoder: str | None = None
    python: str | None = None
    torch: str | None = None
    head: str | None = None
    tokenizer: str | None = None
    max_length: Annotated[int, Field(ge=1, strict=True)] | None = None
    weights: str | None = None
    layout: Literal["NCHW", "NHWC", "flat"] | None = None
    scale: float | Literal["unit", "raw", "signed"] | None = None
    mean: float | list[float] | None = None
    std: float | list[float] | None = None
    output: str | None = None
    outputs: Literal["labels", "scores", "values"] | None = None
    features: str | None = None
    classes: Annotated[int, Field(ge=1)] | None = None
    threads: Annotated[int, Field(ge=1)] | None = None

    KINDS: ClassVar = ("onnx", "transformers", "encoder", "python", "torch")

    @model_validator(mode="after")
    def _one_kind(self) -> ModelPart:
        _exactly_one(self, self.KINDS)
        return self


class DataPart(_Part):
    """Where the inputs are. Exactly one of npz, idx, cifar, folder, csv, tsv, jsonl, python."""

    npz: str | None = None
    idx: str | list[str] | None = None
    cifar: str | list[str] | None = None
    folder: str | None = None
    csv: str | None = None
    tsv: str | None = None
    jsonl: str | None = None
    python: str | None = None
    text: str | list[str] | None = None
    label: str | None = None
    side: Literal["first", "second", "both"] | None = None
    x: str | None = None
    y: str | None = None
    size: list[int] | None = None
    grey: bool | None = None

    KINDS: ClassVar = ("npz", "idx", "cifar", "folder", "csv", "tsv", "jsonl", "python")

    @model_validator(mode="after")
    def _one_kind(self) -> DataPart:
        _exactly_one(self, self.KINDS)
        return self


class AxisPart(_Part):
    """One axis: a registered perturbation (`use`) or one from your own code (`python`), and chosen severities.

    `levels` replaces the table of a perturbation with a continuous level: severity s is the s-th of them.
    """

    use: str | None = None
    python: str | None = None
    severities: list[Level] | dict[str, Level] | None = None
    levels: list[float] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> AxisPart:
        _exactly_one(self, ("use", "python"))
        return self


class ScanPart(_Part):
    """The keywords of `ta.scan`."""

    strategy: str | dict[str, Any] | None = None
    surrogate: str | None = None
    stopping: str | dict[str, Any] | None = None
    budget: Annotated[int, Field(ge=1, strict=True)] | None = None
    target: Annotated[float, Field(gt=0, lt=1)] | None = None
    population: Literal["data", "future"] = "data"
    oracle: str | dict[str, Any] = "label"
    batch_size: Annotated[int, Field(ge=1, strict=True)] | None = None
    seed: Annotated[int, Field(ge=0, strict=True)] = 0
    workers: Annotated[int, Field(ge=1, strict=True)] | None = None
    keep: list[Literal["value", "predicted"]] | None = None
    quality: str | dict[str, Any] | None = None


class Gate(_Part):
    """A requirement: the lower bound (or the estimate) of a query's robustness is at least so much."""

    query: str
    at_least: Annotated[float, Field(ge=0, le=1)]
    basis: Literal["bound", "estimate"] = "bound"
    inputs: str | None = None
    name: str | None = None


class Spec(_Part):
    """A whole spec file."""

    model: ModelPart
    data: DataPart
    space: dict[str, str | AxisPart | StrictBool]
    scan: ScanPart = ScanPart()
    gate: list[Gate] = []

    @model_validator(mode="after")
    def _axes(self) -> Spec:
        for name, value in self.space.items():
            if name == "order_sensitive" and not isinstance(value, bool):
                raise ValueError("[space] order_sensitive: expected true or false; an axis needs another name")
            if isinstance(value, bool) and name != "order_sensitive":
                raise ValueError(f"[space] {name}: expected a perturbation, got {str(value).lower()}")
        if not self.axes():
            raise ValueError('[space] names no axis; add a line such as: blur = "mnist_c.motion_blur"')
        return self

    def axes(self) -> dict[str, AxisPart]:
        """The axes in the order they are written, which is the order they are applied in."""
        parts = {}
        for name, value in self.space.items():
            if isinstance(value, AxisPart):
                parts[name] = value
            elif isinstance(value, str):
                parts[name] = AxisPart(use=value)
        return parts

    def runs_code(self) -> list[str]:
        """The entries of the spec that import the user's code."""
        entries = [f"model.{kind}" for kind in ("python", "torch") if getattr(self.model, kind)]
        entries += ["data.python"] if self.data.python else []
        entries += ["scan.quality"] if _runs_code(self.scan.quality) else []
        return entries + [f"space.{name}" for name, part in self.axes().items() if part.python]


def _runs_code(quality: str | dict[str, Any] | None) -> bool:
    """Whether a measure is a function of the user's, or computes its features with one."""
    parts = [quality, quality.get("extractor")] if isinstance(quality, dict) else []
    return any(isinstance(part, dict) and not {"python", "torch"}.isdisjoint(part) for part in parts)


def read(path: str | os.PathLike[str]) -> Spec:
    """Read and check a spec file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"spec: {path} does not exist; write one with: testifai init MODEL DATA") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"spec: cannot read {path} ({error})") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path.name}: not valid TOML: {_toml_hint(str(error))}") from None
    return parse(table, path.name)


def parse(table: dict[str, Any], name: str = "spec") -> Spec:
    """Check a spec given as plain data."""
    try:
        return Spec.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{name}: {_first_problem(error)}") from None


def _exactly_one(part: BaseModel, kinds: tuple[str, ...]) -> None:
    given = [kind for kind in kinds if getattr(part, kind) is not None]
    if len(given) != 1:
        found = "none of them" if not given else " and ".join(given)
        raise ValueError(f"needs exactly one of {', '.join(kinds)}, got {found}")


def _toml_hint(message: str) -> str:
    if "overwrite" in message or "twice" in message:
        return f"{message} (is an axis or key written twice?)"
    return message


def _first_problem(error: ValidationError) -> str:
    """One line: which field, which value, what is accepted."""
    # A value that fits none of several types is reported once per type; the deepest report knows most.
    problems = [(problem, _location(problem)) for problem in error.errors()]
    problem, location = max(
        problems, key=lambda p: (p[0]["type"] == "extra_forbidden", len(p[0]["loc"]), p[0]["type"] == "value_error")
    )
    field = ".".join(location)
    if problem["type"] == "extra_forbidden":
        return f"unknown key {field!r}; {suggest(location[-1], _known(location[:-1]))}"
    if problem["type"] == "missing":
        return f"{field} is missing"
    if problem["type"] == "value_error":
        message = problem["msg"].removeprefix("Value error, ")
        return f"{field}: {message}" if field else message
    accepted = dict.fromkeys(_accepted(other["msg"]) for other, place in problems if place == location)
    return f"{field or 'everything'}: should be {', or '.join(accepted)}, got {problem['input']!r}"


def _location(problem: Any) -> list[str]:
    return [str(part) for part in problem["loc"] if not _is_type_tag(part)]


def _accepted(message: str) -> str:
    """What pydantic asks for, without its own classes and its explanations."""
    wanted = message.removeprefix("Input should be ").partition(", unable")[0]
    return wanted.partition(" or instance of")[0].replace("a valid dictionary", "a table")


def _is_type_tag(part: object) -> bool:
    """Pydantic names the member of a union in the location; that is its business, not the user's."""
    text = str(part)
    return text in {"str", "bool", "int", "float", "AxisPart", "constrained-int"} or "[" in text


def _known(location: list[str]) -> list[str]:
    parts: dict[str, type[BaseModel]] = {
        "model": ModelPart,
        "data": DataPart,
        "space": AxisPart,
        "scan": ScanPart,
        "gate": Gate,
    }
    part = parts.get(location[0]) if location else Spec
    return list((part or Spec).model_fields)
