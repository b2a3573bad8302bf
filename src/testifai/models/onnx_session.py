"""Sessions of onnxruntime, and the roles of a graph's outputs."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from testifai.errors import InputError, suggest
from testifai.models import onnx_graph
from testifai.models.base import Model, Outputs, first_line
from testifai.support import validation
from testifai.support.files import is_inside
from testifai.support.fingerprints import fingerprint_files
from testifai.support.remote import Elsewhere, opened, portable
from testifai.support.types import Array, Record

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_NUMPY_NAMES = {"float": "float32", "double": "float64", "string": "object"}
DTYPES = {
    f"tensor({name})": np.dtype(_NUMPY_NAMES.get(name, name))
    for name in ("float", "double", "float16", "uint8", "int8", "int32", "int64", "bool", "string")
}
_FLOATS = ("tensor(float)", "tensor(float16)", "tensor(double)")
_INTEGERS = ("tensor(int64)", "tensor(int32)")
_SCORE_NAMES = ("logit", "score", "prob", "softmax", "pred", "output")
_FEATURE_NAMES = ("feature", "embedding", "penultimate", "hidden")


class ValueInfo(Protocol):
    """An input or output of a graph, as onnxruntime describes it."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def shape(self) -> Sequence[int | str | None]: ...


class NoUsableOutputError(InputError):
    """A graph whose outputs are neither labels nor scores nor values."""


def open_session(path: Path, threads: int, content: bytes | None = None) -> InferenceSession:
    """Open a session on the file or, if given, on this content instead."""
    validation.whole("model: threads", threads, least=1)
    check_file(path)
    external_files(path)  # raises if one is outside the folder, before onnxruntime reads it
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if content is not None:  # external weights are still next to the model
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    try:
        given = path if content is None else content
        return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise InputError(f"model: {path} is not a usable ONNX model ({first_line(error)})") from None


class OnnxFile(Model):
    """A model in an ONNX file with one input; `told` are the options recorded as its preprocessing."""

    thread_safe = True
    spares_batch = True

    def __init__(self, path: str | Path, told: Record, *, threads: int, **rest: object) -> None:
        self.path, self.name = Path(path), Path(path).name
        self._options: Record = {**told, "threads": threads, **rest}
        self.preprocessing = {option: value for option, value in told.items() if value is not None}
        self._session = open_session(self.path, threads)
        self._fingerprint = fingerprint_files(model_files(self.path))
        self.repeatable = not draws(self.path)
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            found = ", ".join(node.name for node in inputs)
            hint = "; a text model needs tokenizer = 'tokenizer.json'" if "input_ids" in found else ""
            raise InputError(
                f"model: {self.name} has {len(inputs)} inputs ({found}); models with one input are accepted{hint}"
            )
        self._input: ValueInfo = inputs[0]
        if self._input.type not in DTYPES:
            raise InputError(
                f"model: {self.name}: input type {self._input.type} is not accepted; {', '.join(DTYPES)} are"
            )
        self.input_shape, self.input_dtype = sizes(self._input), DTYPES[self._input.type]

    @property
    def fingerprint(self) -> str:
        """A hash of the file and its external files of weights, as they were when it was opened."""
        return self._fingerprint

    def __reduce__(self) -> tuple[Any, ...]:
        # A session of onnxruntime cannot be pickled; another process opens the file again.
        return _reopen, (type(self), portable(self.path.absolute()), self._options)


def _reopen(kind: Callable[..., OnnxFile], told: Path | Elsewhere, options: Record) -> OnnxFile:
    return kind(opened(told), **options)


def check_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"model: {path} does not exist" if not path.exists() else f"model: {path} is not a file")


def sizes(node: ValueInfo) -> tuple[int | None, ...]:
    """Return the shape of an input or output, None for axes of any size."""
    return tuple(size if isinstance(size, int) else None for size in node.shape)


def infer(session: InferenceSession, names: Sequence[str], ready: Array, name: str) -> list[Array]:
    """Return outputs for prepared inputs, run in padded parts if the graph takes a fixed number of inputs."""
    wanted = session.get_inputs()[0]
    fixed = wanted.shape[0] if wanted.shape and isinstance(wanted.shape[0], int) else None
    if fixed is None or len(ready) == fixed:
        return run(session, names, {wanted.name: ready}, f"{name}: the model failed on inputs {ready.shape}")
    parts = []
    # Even without inputs one pass is needed, for the shape of the outputs.
    for start in range(0, max(len(ready), 1), fixed):
        chunk = ready[start : start + fixed]
        padded = np.full((fixed, *ready.shape[1:]), "" if ready.dtype.kind == "O" else 0, dtype=ready.dtype)
        padded[: len(chunk)] = chunk
        made = run(session, names, {wanted.name: padded}, f"{name}: the model failed on inputs {padded.shape}")
        parts.append([one[: len(chunk)] for one in made])
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def run(session: InferenceSession, names: Sequence[str], inputs: Mapping[str, Array], failed: str) -> list[Array]:
    try:
        return [np.asarray(made) for made in session.run(list(names), dict(inputs))]
    except Exception as error:  # onnxruntime's exceptions have no common base of their own
        raise InputError(f"{failed}: {first_line(error)}") from None


def model_files(path: Path) -> dict[str, Path]:
    """Return an ONNX file, as "", and its files of weights: those it names, and the usual <name>.data."""
    usual = path.with_name(path.name + ".data")
    return {"": path, **({usual.name: usual} if usual.is_file() else {}), **external_files(path)}


def external_files(path: Path) -> dict[str, Path]:
    """Return existing files of weights by name; one outside the model's folder is refused, as it may be private."""
    try:
        named = onnx_graph.external_files(_content(path))
    except ValueError as error:  # a name that is not UTF-8 too
        raise InputError(f"model: {path} is not a usable ONNX model ({first_line(error)})") from None
    files = {location: _beside(path, location) for location in named}
    return {location: file for location, file in files.items() if file.is_file()}


def draws(path: Path) -> bool:
    return onnx_graph.draws(_content(path))


def _beside(path: Path, location: str) -> Path:
    file = path.parent / location
    # A model that is itself a link, as in a download cache, may have its weights next to the file it links to.
    homes = (path.parent.resolve(), path.resolve().parent)
    if not is_inside(location) or not any(file.resolve().is_relative_to(home) for home in homes):
        raise InputError(
            f"model: {path} names weights outside its own folder ({location!r}); "
            "put them beside it, under a relative name without '..' and without links"
        )
    return file


def _content(path: Path) -> memoryview:
    """Return a file's content, memory-mapped; nothing for a file in onnxruntime's own format."""
    with path.open("rb") as stream:
        head = stream.read(8)
        if not head or head[4:] == b"ORTM":
            return memoryview(b"")
        return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


@dataclass(frozen=True)
class GraphOutputs:
    """The outputs of a graph that contain predictions and features, and the kind of the predictions."""

    output: str
    features: str | None
    kind: Outputs
    classes: int | None

    @classmethod
    def find(cls, name: str, session: InferenceSession, output: str | None, features: str | None) -> GraphOutputs:
        nodes = {node.name: node for node in session.get_outputs()}
        found = find_output(name, nodes, output)
        dtype, shape = nodes[found].type, nodes[found].shape
        columns = shape[1] if len(shape) == 2 else None
        kind = _kind_of(dtype, columns, len(shape))
        classes = columns if kind == "scores" and isinstance(columns, int) else None
        return cls(found, _find_features(name, nodes, features, found), kind, classes)

    def flat(self, outputs: Array) -> Array:
        return outputs[:, 0] if self.kind == "labels" and outputs.ndim == 2 else outputs


def find_output(name: str, nodes: Mapping[str, ValueInfo], wanted: str | None) -> str:
    """Return the output that contains the predictions: the one named, else the likeliest."""
    described = ", ".join(f"{node.name} {node.type} {node.shape}" for node in nodes.values())
    if wanted is not None:
        if wanted not in nodes:
            raise InputError(f"model: {name} has no output {wanted!r}; {suggest(wanted, nodes)}")
        node = nodes[wanted]
        if (len(node.shape) > 2 and not _of_pixels(node)) or node.type not in _FLOATS + _INTEGERS:
            raise InputError(
                f"model: {name}: output {described} is not usable; accepted: (N,) or (N, d), label maps (N, H, W), "
                "scores of pixels (N, classes, H, W) of numbers"
            )
        return wanted
    tables = [node for node in nodes.values() if node.type in _FLOATS and len(node.shape) == 2]
    if tables:
        return str(min(tables, key=_preference).name)
    flat = [node for node in nodes.values() if node.type in _INTEGERS and _is_column(node.shape)]
    flat += [node for node in nodes.values() if node.type in _FLOATS and len(node.shape) == 1]
    # onnxruntime shows an unknown rank as no axes at all; a lone output of numbers is worth a try.
    if not flat and len(nodes) == 1:
        flat = [node for node in nodes.values() if node.type in _FLOATS + _INTEGERS and not node.shape]
    # Of several outputs of pixels, the first is the prediction: others helped to train it.
    if not flat and all(map(_of_pixels, nodes.values())):
        flat = list(nodes.values())
    if not flat:
        raise NoUsableOutputError(f"model: {name} has no output (N,) or (N, d) of numbers (its outputs: {described})")
    return str(flat[0].name)


def _is_column(shape: Sequence[object]) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


def _of_pixels(node: ValueInfo) -> bool:
    rank = len(node.shape)
    return (rank == 3 and node.type in _INTEGERS) or (rank == 4 and node.type in _FLOATS)


def _preference(node: ValueInfo) -> tuple[bool, int, float]:
    name = node.name.lower()
    rank = next((place for place, word in enumerate(_SCORE_NAMES) if word in name), len(_SCORE_NAMES))
    columns = node.shape[1]
    is_feature = any(word in name for word in _FEATURE_NAMES)
    return is_feature, rank, columns if isinstance(columns, int) else float("inf")


def _find_features(name: str, nodes: Mapping[str, ValueInfo], wanted: str | None, output: str) -> str | None:
    """Return the output that contains features: the one named, else the only one with a fitting name."""
    if wanted is not None:
        if wanted not in nodes:
            raise InputError(f"model: {name} has no output {wanted!r} for features; {suggest(wanted, nodes)}")
        return wanted
    floats = [node for node in nodes if node != output and nodes[node].type in _FLOATS]
    named = [node for node in floats if any(word in node.lower() for word in _FEATURE_NAMES)]
    return named[0] if len(named) == 1 else None


def _kind_of(dtype: str, columns: object, rank: int) -> Outputs:
    if rank > 2:
        return "maps"
    if dtype in _INTEGERS and (rank < 2 or columns == 1):
        return "labels"
    return "values" if rank == 1 or columns == 1 else "scores"
