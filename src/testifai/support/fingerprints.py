"""What identifies data, models and user code. This is the only module that decides what a fingerprint covers.

- files of a model: contents (SHA-256), and the names that the model gives them
- files of a data set: contents (BLAKE2b); a file with unchanged size, times and inode is not read again
- arrays and texts: dtype, shape and values, little-endian; UTF-8 bytes
- data sets too large to be read before a run: names and 256 inputs; the run file stores a hash of each measured input
- PyTorch modules: class, settings, parameters, buffers, children; of user-defined classes also attributes and source
- scikit-learn estimators and other objects: class and attributes, and what pickle would store of compiled parts
- functions and classes: source, defaults, closure, and the module-level values and code that they name

Code of libraries is identified by its name; their versions are recorded with the environment. Not covered are random
generators, locks, loggers, open files and iterators, whose state changes with use. If something else cannot be
identified, such as a database connection, `CodeFingerprint.unidentified_reason` names it, and the user is asked for a
`version`.
"""

from __future__ import annotations

import ast
import contextlib
import copyreg
import functools
import hashlib
import inspect
import io
import logging
import os
import random
import sys
import textwrap
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.batches import Images, Pair, Side, are_images, are_pairs
from testifai.support.files import sha256
from testifai.support.types import Array

if TYPE_CHECKING:
    import torch

# -- files of a model -------------------------------------------------------------------------------------------------


def fingerprint_files(files: Mapping[str, Path]) -> str:
    """Return the SHA-256 of one file, or of the contents of several and the names that the model gives them."""
    hashes = {name: sha256(path) for name, path in files.items()}
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    return hashlib.sha256("\0".join(f"{name}\0{found}" for name, found in hashes.items()).encode()).hexdigest()


# -- data -------------------------------------------------------------------------------------------------------------

HASH_BYTES = 16
WORDS = HASH_BYTES // 8  # of a hash, as 64-bit numbers
# Larger data sets are identified by a sample of their inputs; reading smaller ones takes some seconds at most.
MAX_BYTES = 1 << 30
MAX_FILES = 20_000
SAMPLED_INPUTS = 256
_CHUNK_BYTES = 1 << 24

Rows = NDArray[np.intp]
Hashes = NDArray[np.uint64]  # (inputs, WORDS); zeros for inputs that were not read


class ArrayLike(Protocol):
    """An array, or inputs on disk that are read by slices."""

    @property
    def dtype(self) -> np.dtype[np.generic]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> Array: ...


def fingerprint_data(
    inputs: ArrayLike | list[str] | list[Pair] | Images,
    labels: Array | None = None,
    classes: Sequence[str] = (),
    *,
    side: Side = "both",
    columns: str | None = None,
    identity: bytes | None = None,
) -> str:
    """Return BLAKE2b of inputs (or of their `identity`), labels, class names, perturbed side and table columns."""
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    if identity is not None:
        digest.update(identity)
    elif not isinstance(inputs, list):
        _add_array(digest, inputs)
    elif are_pairs(inputs):
        digest.update(f"pairs {len(inputs)} {side}\n".encode())
        for pair in inputs:
            _add_texts(digest, pair)
    elif are_images(inputs):
        digest.update(f"images {len(inputs)}\n".encode())
        for image in inputs:
            _add_array(digest, image)
    else:
        digest.update(f"texts {len(inputs)}\n".encode())
        _add_texts(digest, cast(list[str], inputs))
    _add_texts(digest, () if columns is None else (columns,))
    digest.update(b"labels\n")
    if labels is not None:
        _add_array(digest, labels)
    _add_texts(digest, classes)
    return digest.hexdigest()


def chunks(inputs: ArrayLike) -> Iterator[Array]:
    """Yield the inputs a few megabytes at a time: a memory-mapped file may not fit into memory."""
    bytes_per_row = max(1, int(np.prod(inputs.shape[1:])) * inputs.dtype.itemsize)
    step = max(1, _CHUNK_BYTES // bytes_per_row)
    for start in range(0, len(inputs), step):
        yield np.asarray(inputs[start : start + step])


def _add_texts(digest: hashlib.blake2b, texts: Iterable[str]) -> None:
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}\n".encode() + data)


def _add_array(digest: hashlib.blake2b, array: ArrayLike) -> None:
    dtype = array.dtype.newbyteorder("<")
    digest.update(f"{dtype.str} {tuple(int(size) for size in array.shape)}\n".encode())
    for chunk in chunks(array):
        digest.update(np.ascontiguousarray(chunk.astype(dtype, copy=False)).data)


def hash_bytes(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=HASH_BYTES).digest()


def as_numbers(digests: Iterable[bytes]) -> Hashes:
    """Return hashes as 64-bit numbers, one row per hash."""
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64).reshape(-1, WORDS)


def sampled(inputs: int) -> Rows:
    """Return equally spaced inputs, from the first to the last, that represent a large data set."""
    return np.unique(np.linspace(0, inputs - 1, min(inputs, SAMPLED_INPUTS)).astype(np.intp))


class Contents:
    """Hashes of the inputs of a large data set, each from the first time that the input was read."""

    def __init__(self, inputs: int) -> None:
        self.hashes: Hashes = np.zeros((inputs, WORDS), np.uint64)

    def note(self, rows: Rows, found: Hashes) -> Rows:
        """Record the hashes of inputs, and return the inputs whose hash has changed."""
        before = self.hashes[rows]
        known = before.any(axis=1)
        self.hashes[rows[~known]] = found[~known]
        changed: Rows = rows[known & (before != found).any(axis=1)]
        return changed


_MASK = (1 << 64) - 1
_STAT = 4
# A file changed within this time may change again without a change of its times: clocks of file systems are coarse.
_SETTLED = 2_000_000_000  # nanoseconds
_THREADS = 4  # reading waits, and hashing lets other threads run

Stat = tuple[int, ...]  # size, times of change of content and entry, inode
FileTable = NDArray[np.uint64]  # a row per file: size, times of change of content and entry, inode, hash in two parts


class FileHashes:
    """Hashes of files; a file is read again only if its size, times or inode changed."""

    def __init__(self) -> None:
        self._known: dict[Stat, bytes] = {}
        self._recent: set[Stat] = set()
        self.read = 0  # number of files that were read

    def recall(self, table: FileTable) -> None:
        """Use the hashes that `table` returned in an earlier process."""
        for row in np.ascontiguousarray(table, "<u8"):
            self._known.setdefault(tuple(row[:_STAT].tolist()), row[_STAT:].tobytes())

    def of(self, files: Sequence[Path]) -> list[bytes]:
        """Return the hash of each file's content."""
        stats = [stat_of(file) for file in files]
        unknown = [place for place, stat in enumerate(stats) if stat not in self._known]
        found = [self._known.get(stat, b"") for stat in stats]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="testifai") as pool:
            hashes = pool.map(_hash_file, [files[place] for place in unknown])
            for place, digest in zip(unknown, hashes, strict=True):
                found[place] = digest
                self.learn(stats[place], digest)
        return found

    def table(self, files: Sequence[Path]) -> FileTable:
        """Return the hashes of these files for `recall`."""
        stats = [stat for file in files if (stat := stat_of(file)) in self._known and stat not in self._recent]
        rows = [[*stat, *np.frombuffer(self._known[stat], "<u8").tolist()] for stat in stats]
        return np.array(rows, np.uint64).reshape(len(rows), _STAT + WORDS)

    def learn(self, stat: Stat, digest: bytes) -> None:
        """Record the hash of a file that was read, and its `stat_of` before that."""
        self.read += 1
        if stat[-1] == 0:  # a file system without inodes: two files could have the same size and times
            return
        self._known[stat] = digest
        if time.time_ns() - max(stat[1:3]) < _SETTLED:
            self._recent.add(stat)


def stat_of(file: Path | str) -> Stat:
    try:
        found = os.stat(file)
    except OSError as error:
        raise InputError(f"data: {file} cannot be read ({error.strerror})") from None
    # The entry's time too: unlike that of the content, it cannot be set back.
    return tuple(one & _MASK for one in (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino))


def _hash_file(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=HASH_BYTES)).digest()
    except OSError as error:
        raise InputError(f"data: {file} cannot be read ({error.strerror})") from None


# -- models and user code ---------------------------------------------------------------------------------------------

_MAX_VALUES = 200_000
_MAX_DEPTH = 100
_INSTALLED = frozenset({"site-packages", "dist-packages"})  # also of another environment that this one is based on
_SIMPLE = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.dtype)
# Their state changes with every use, or they hold nothing of their own.
_STATELESS = (
    logging.Logger, logging.Handler, random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator,
    io.IOBase, Iterator, type(threading.Lock()), type(threading.RLock()), threading.local, threading.Event,
)  # fmt: skip
_CHANGING_METHODS = frozenset({
    "append", "appendleft", "extend", "insert", "pop", "popleft", "popitem", "remove", "clear", "update", "setdefault",
    "add", "discard", "sort", "reverse", "move_to_end",
})  # fmt: skip


@dataclass(frozen=True)
class CodeFingerprint:
    """A hash of a callable or object and of the values it uses, and the first that could not be hashed."""

    fingerprint: str
    unidentified_reason: str | None = None


def fingerprint_code(value: object, version: str | None = None) -> CodeFingerprint:
    """Fingerprint a function, a callable object, a PyTorch module or an estimator; the same on every machine.

    A `version` given by the user identifies what cannot be hashed.
    """
    walk = _Walk()
    try:
        walk.add(value, "", 0)
    except _TooMuchError as error:
        walk.reasons.append(str(error))
    except Exception as error:  # attributes of user-defined objects may run any code
        walk.reasons.append(f"what it holds (inspecting it failed with {type(error).__name__})")
    if version is not None:
        return CodeFingerprint(hashlib.sha256(f"{walk.digest.hexdigest()} {version}".encode()).hexdigest())
    return CodeFingerprint(walk.digest.hexdigest(), next(iter(walk.reasons), None))


class _TooMuchError(Exception):
    """Too many values, or too deeply nested ones."""


class _Walk:
    """Hashes a value and all that it refers to."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.reasons: list[str] = []  # what could not be identified
        self._folders: set[str] = set()  # of user modules
        self._seen: dict[int, tuple[int, object]] = {}  # keeps values alive, so that no other gets the same id

    def add(self, value: object, where: str, depth: int) -> None:
        if isinstance(value, str | PurePath):
            # A path inside a folder of user code, which differs between machines, is hashed relative to it.
            text = str(value)
            folders = [folder for folder in self._folders if text == folder or text.startswith(folder + os.sep)]
            self._text(repr(text[len(max(folders, key=len)) :] if folders else text))
        elif isinstance(value, _SIMPLE):
            self._text(repr(value))
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            self._text(f"{value.dtype.str}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()}")
        elif id(value) in self._seen:
            self._text(f"again {self._seen[id(value)][0]}")
        elif len(self._seen) >= _MAX_VALUES or depth > _MAX_DEPTH:
            raise _TooMuchError(f"all that {where or 'it'} holds: it is too much")
        else:
            self._seen[id(value)] = len(self._seen), value
            self._text(f"{type(value).__module__}:{type(value).__qualname__}")
            self._add_parts(value, where, depth + 1)

    def _add_parts(self, value: object, where: str, depth: int) -> None:
        if type(value) in (list, tuple):
            self._all(cast(list[object], value), where, depth)
        elif type(value) is dict:
            self._named(value, where, depth)
        elif isinstance(value, set | frozenset):
            self._set(value, depth)
        elif isinstance(value, FunctionType):
            self._function(value, where, depth)
        elif isinstance(value, CodeType):
            self._all((value.co_code, value.co_names, value.co_consts), where, depth)
        elif isinstance(value, ModuleType):
            self._text(value.__name__)
        elif isinstance(value, type):
            self._class(value, where, depth)
        elif inspect.isbuiltin(value) and isinstance(value.__self__, ModuleType | type):
            self._text(f"{value.__module__}:{value.__qualname__}")
        elif (torch := sys.modules.get("torch")) is not None and isinstance(value, torch.Tensor):
            self._tensor(value)
        elif not isinstance(value, _STATELESS):
            self._object(value, where, depth)

    def _all(self, values: Iterable[object], where: str, depth: int) -> None:
        for number, value in enumerate(values):
            self._text(str(number))
            self.add(value, where, depth)

    def _named(self, values: Mapping[object, object], where: str, depth: int) -> None:
        for name, value in sorted(values.items(), key=lambda item: str(item[0])):
            self.add(name, where, depth)
            self.add(value, f"{where}.{name}".strip(".") if isinstance(name, str) else where, depth)

    def _set(self, values: Iterable[object], depth: int) -> None:
        """Add the members of a set, each hashed alone, in the order of their hashes."""
        members = []
        for value in values:
            alone = _Walk()
            alone.add(value, "", depth)
            self.reasons += alone.reasons
            members.append(alone.digest.hexdigest())
        self._text(" ".join(sorted(members)))

    # -- code ---------------------------------------------------------------------------------------------------------

    def _function(self, function: FunctionType, where: str, depth: int) -> None:
        values: list[object] = [function.__defaults__, function.__kwdefaults__, function.__dict__]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # a cell not yet filled
                values.append(cell.cell_contents)
        self._text(f"{function.__module__}:{function.__qualname__}")
        self._all(values, where, depth)
        if not is_library(function.__module__):
            self.add(_source(function) or function.__code__, where, depth)
            self._globals(function, depth)

    def _globals(self, function: FunctionType, depth: int) -> None:
        """Add what the code names in its module and, through that, in other user modules."""
        named, changed = _names(function.__code__), _changed_names(_source(function))
        file = function.__globals__.get("__file__")
        if isinstance(file, str):
            self._folders.update((str(Path(file).parent), str(Path(file).resolve().parent)))
        for name in sorted(named & function.__globals__.keys() - {"__file__", "__name__", "__doc__", "__builtins__"}):
            value = function.__globals__[name]
            if name in changed:
                self.reasons.append(f"{name}, which its code changes while it runs")
            elif isinstance(value, ModuleType) and not is_library(value.__name__):
                parts = {part: vars(value)[part] for part in named & vars(value).keys()}
                self._named({part: one for part, one in parts.items() if not _in_library(one)}, name, depth)
            elif not isinstance(value, ModuleType) and not _in_library(value):
                self._text(name)
                self.add(value, name, depth)

    def _class(self, kind: type, where: str, depth: int) -> None:
        self._text(f"{kind.__module__}:{kind.__qualname__}")
        if is_library(kind.__module__):
            return
        self._text(source := _source(kind))
        self._all([base for base in kind.__mro__[1:] if not is_library(base.__module__)], where, depth)
        for name, part in sorted(vars(kind).items()):
            function = getattr(part, "fget", None) or getattr(part, "__func__", part)
            if isinstance(function, FunctionType) and source:  # a method, whose source is in that of its class
                self._globals(function, depth)
            elif isinstance(function, FunctionType):
                self.add(function, name, depth)
            elif not name.startswith(("__", "_abc_")) and not inspect.isdatadescriptor(part):
                self._text(name)
                self.add(part, name, depth)

    # -- objects ------------------------------------------------------------------------------------------------------

    def _object(self, value: object, where: str, depth: int) -> None:
        kind, before, known = type(value), self.digest.copy(), len(self.reasons)
        self.add(kind, where, depth)
        if (torch := sys.modules.get("torch")) is not None and isinstance(value, torch.nn.Module):
            self._torch_module(value, where, depth)
        else:
            self._attributes(value, where, depth)
        if len(self.reasons) > known and is_library(kind.__module__):
            # What is left of it, such as the path it came from, may differ between machines that hold the same.
            self.digest = before
            self.reasons[known:] = [f"{where or 'it'}, a {kind.__module__}.{kind.__qualname__}"]

    def _attributes(self, value: object, where: str, depth: int) -> None:
        """Add the attributes of an object, and what pickle would store of one that hides its state."""
        attributes = getattr(value, "__dict__", None)
        if attributes:
            self._named(attributes, where, depth)
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            stored = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:
            kind = type(value)
            self.reasons.append(f"{where or 'an object'}, a {kind.__module__}.{kind.__qualname__}")
            return
        if isinstance(stored, str):  # the name of a global
            self._text(stored)
            return
        make, arguments, state, *items = (*stored, None)[:6]
        self._all([make, arguments, *(list(one) for one in items if isinstance(one, Iterator))], where, depth)
        # A class with its own __getstate__ leaves attributes out, or adds its library's version.
        if attributes is None or type(value).__getstate__ is object.__getstate__:
            self.add(state, where, depth)

    def _torch_module(self, module: torch.nn.Module, where: str, depth: int) -> None:
        """Add settings, weights and children; not whether the module is in training mode."""
        self._text(module.extra_repr())
        own = {} if is_library(type(module).__module__) else vars(module)
        parts: dict[object, object] = {
            **dict(module.named_parameters(recurse=False)),
            **dict(module.named_children()),
            **dict(module.named_buffers(recurse=False)),
            **{name: part for name, part in own.items() if not name.startswith("_") and name != "training"},
        }
        self._named(parts, where, depth)

    def _tensor(self, tensor: torch.Tensor) -> None:
        self._text(f"{tensor.dtype} {tuple(tensor.shape)}")
        try:
            values = tensor.detach().cpu().contiguous().reshape(-1).view(sys.modules["torch"].uint8)
            self._text(hashlib.sha256(values.numpy().tobytes()).hexdigest())
        except Exception:
            self.reasons.append(f"a tensor of {tensor.dtype} on {tensor.device}")

    def _text(self, text: str) -> None:
        self.digest.update(text.encode("utf-8", "surrogatepass") + b"\0")


def is_library(module: str | None) -> bool:
    """Return True if a module is part of Python, of this package or of an installed package."""
    name = (module or "").partition(".")[0]
    if name in ("testifai", "builtins") or name in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None) or getattr(sys.modules.get(name), "__file__", None)
    return file is not None and not _INSTALLED.isdisjoint(Path(file).parts)


def _in_library(value: object) -> bool:
    """Return True for functions and classes of libraries: their names are in the code that uses them."""
    if inspect.isclass(value) or (inspect.isroutine(value) and not isinstance(value, MethodType)):
        wrapped = isinstance(value, FunctionType) and value.__closure__  # made by a library around user code
        return is_library(getattr(value, "__module__", None)) and not wrapped
    return isinstance(value, np.ufunc)


def _source(value: type | FunctionType) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        return ""


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a function and its inner functions."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


@functools.lru_cache(maxsize=256)
def _changed_names(source: str) -> frozenset[str]:
    """Return the globals that the code assigns or modifies, such as counters and caches."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # a lambda's source is the line around it
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        target: ast.expr | None = None
        if isinstance(node, ast.Global):
            names.update(node.names)
        elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            target = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            target = node.func.value if node.func.attr in _CHANGING_METHODS else None
        if isinstance(target, ast.Name):
            names.add(target.id)
    return frozenset(names)
