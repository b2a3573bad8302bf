"""Sessions of onnxruntime, and which of a graph's outputs is which."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from testifai.errors import InputError, suggest
from testifai.models import onnx_graph
from testifai.models.base import Model, Outputs, first_line
from testifai.support import validation
from testifai.support.fingerprints import fingerprint_files
from testifai.support.remote import Elsewhere, opened, portable
from testifai.support.types import Array, Record

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
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
    """A session on the file or, where given, on this content in its place."""
    validation.whole("model: threads", threads, least=1)
    check_file(path)
    external_files(path)  # refuses what lies elsewhere, before onnxruntime reads it
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if content is not None:  # weights in files beside the model are still looked for there
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    try:
        return onnxruntime.InferenceSession(
            path if content is None else content, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise InputError(f"model: {path} is not a usable ONNX model ({first_line(error)})") from None


class OnnxFile(Model):
    """A model in an ONNX file with one input; another process opens the file again.

    Args:
        path: of the file
        told: options that are recorded as its preprocessing, None where not given
        rest: its other options
    """

    thread_safe = True
    spares_batch = True

    def __init__(self, path: str | Path, told: Record, *, threads: int, **rest: object) -> None:
        self.path, self.name = Path(path), Path(path).name
        self._options: Record = {**told, "threads": threads, **rest}
        self.preprocessing = {option: value for option, value in told.items() if value is not None}
        self._session = open_session(self.path, threads)
        self._fingerprint = fingerprint_files(model_files(self.path))
        self.repeatable = not draws(self.path)
        self._input = only_input(self.name, self._session.get_inputs())

    @property
    def fingerprint(self) -> str:
        """A hash of the file and of all files of weights it names, as they were when it was opened."""
        return self._fingerprint

    def __reduce__(self) -> tuple[Any, ...]:
        # A session of onnxruntime cannot be copied to another process; the file can be opened again there.
        return _reopen, (type(self), portable(self.path.absolute()), self._options)


def _reopen(kind: Callable[..., OnnxFile], told: Path | Elsewhere, options: Record) -> OnnxFile:
    return kind(opened(told), **options)


def check_file(path: Path) -> None:
    """Raise InputError if there is no file at the path."""
    if not path.is_file():
        raise InputError(f"model: {path} does not exist" if not path.exists() else f"model: {path} is not a file")


def only_input(name: str, inputs: Sequence[ValueInfo]) -> ValueInfo:
    """The one input that a graph has."""
    if len(inputs) != 1:
        found = ", ".join(node.name for node in inputs)
        hint = "; a text model needs tokenizer = 'tokenizer.json'" if "input_ids" in found else ""
        raise InputError(f"model: {name} has {len(inputs)} inputs ({found}); models with one input are accepted{hint}")
    if inputs[0].type not in DTYPES:
        raise InputError(f"model: {name}: input type {inputs[0].type} is not accepted; {', '.join(DTYPES)} are")
    return inputs[0]


def sizes(node: ValueInfo) -> tuple[int | None, ...]:
    """The shape of an input or output; None for sizes that are left open."""
    return tuple(size if isinstance(size, int) else None for size in node.shape)


def infer(session: InferenceSession, names: Sequence[str], ready: Array, name: str) -> list[Array]:
    """Outputs for inputs as the graph wants them; in parts, the last one padded, where it takes a fixed number."""
    wanted = session.get_inputs()[0]
    fixed = wanted.shape[0] if wanted.shape and isinstance(wanted.shape[0], int) else None
    if fixed is None or len(ready) == fixed:
        return _infer(session, names, ready, wanted.name, name)
    # No inputs still need one pass, to see the shape of none.
    chunks = [ready[start : start + fixed] for start in range(0, max(len(ready), 1), fixed)]
    parts = [
        [made[: len(chunk)] for made in _infer(session, names, _pad(chunk, fixed), wanted.name, name)]
        for chunk in chunks
    ]
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _infer(session: InferenceSession, names: Sequence[str], ready: Array, wanted: str, name: str) -> list[Array]:
    try:
        return [np.asarray(made) for made in session.run(list(names), {wanted: ready})]
    except Exception as error:  # onnxruntime's exceptions have no common base of their own
        raise InputError(f"{name}: the model failed on inputs {ready.shape}: {first_line(error)}") from None


def _pad(part: Array, size: int) -> Array:
    if len(part) == size:
        return part
    padded = np.full((size, *part.shape[1:]), "" if part.dtype.kind == "O" else 0, dtype=part.dtype)
    padded[: len(part)] = part
    return padded


def model_files(path: Path) -> dict[str, Path]:
    """An ONNX file, under the name "", and its files of weights: those it names, and the usual one, <name>.data."""
    usual = path.with_name(path.name + ".data")
    return {"": path, **({usual.name: usual} if usual.is_file() else {}), **external_files(path)}


def external_files(path: Path) -> dict[str, Path]:
    """The files of weights that the graph names and that exist, by the name it has for them.

    One outside the model's folder is refused: a model from elsewhere must not reach the user's other files.
    """
    try:
        named = onnx_graph.external_files(_content(path))
    except ValueError as error:  # a name that is not UTF-8 too
        raise InputError(f"model: {path} is not a usable ONNX model ({first_line(error)})") from None
    files = {location: _beside(path, location) for location in named}
    return {location: file for location, file in files.items() if file.is_file()}


def draws(path: Path) -> bool:
    """Whether the graph says that it draws random numbers."""
    return onnx_graph.draws(_content(path))


def _beside(path: Path, location: str) -> Path:
    """The file of that name in the model's folder."""
    told = PureWindowsPath(location)  # knows both separators, and drives
    file = path.parent / location
    inside = not told.root and not told.drive and ".." not in told.parts and "\0" not in location
    # A model that is itself a link, as in a cache of downloads, may have its weights beside what it links to.
    homes = (path.parent.resolve(), path.resolve().parent)
    if not inside or not any(file.resolve().is_relative_to(home) for home in homes):
        raise InputError(
            f"model: {path} names weights outside its own folder ({location!r}); "
            "put them beside it, under a relative name without '..' and without links"
        )
    return file


def _content(path: Path) -> memoryview:
    """A file's content without reading all of it; nothing for a file of another format of onnxruntime's own."""
    with path.open("rb") as stream:
        head = stream.read(8)
        if not head or head[4:] == b"ORTM":
            return memoryview(b"")
        # Unmapped once nothing looks at it any more.
        return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


def find_output(name: str, nodes: Mapping[str, ValueInfo], wanted: str | None) -> str:
    """The output that holds the model's answer: the one named, else the likeliest."""
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
    # Where there are several of pixels, the first is the answer: others helped to train it.
    if not flat and all(map(_of_pixels, nodes.values())):
        flat = list(nodes.values())
    if not flat:
        raise NoUsableOutputError(f"model: {name} has no output (N,) or (N, d) of numbers (its outputs: {described})")
    return str(flat[0].name)


def _of_pixels(node: ValueInfo) -> bool:
    """Whether an output is a label for each pixel, or scores of each."""
    rank = len(node.shape)
    return (rank == 3 and node.type in _INTEGERS) or (rank == 4 and node.type in _FLOATS)


def _preference(node: ValueInfo) -> tuple[bool, int, float]:
    name = node.name.lower()
    rank = next((place for place, word in enumerate(_SCORE_NAMES) if word in name), len(_SCORE_NAMES))
    columns = node.shape[1]
    is_feature = any(word in name for word in _FEATURE_NAMES)
    return is_feature, rank, columns if isinstance(columns, int) else float("inf")


def _is_column(shape: Sequence[object]) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


def find_features(name: str, nodes: Mapping[str, ValueInfo], wanted: str | None, output: str) -> str | None:
    """The output that holds features: the one named, else the only one whose name says so."""
    if wanted is not None:
        if wanted not in nodes:
            raise InputError(f"model: {name} has no output {wanted!r} for features; {suggest(wanted, nodes)}")
        return wanted
    named = [
        node
        for node in nodes
        if node != output and nodes[node].type in _FLOATS and any(word in node.lower() for word in _FEATURE_NAMES)
    ]
    return named[0] if len(named) == 1 else None


def kind_of(dtype: str, columns: object, rank: int) -> Outputs:
    """What an output of this type and shape is."""
    if rank > 2:
        return "maps"
    if dtype in _INTEGERS and (rank < 2 or columns == 1):
        return "labels"
    return "values" if rank == 1 or columns == 1 else "scores"
