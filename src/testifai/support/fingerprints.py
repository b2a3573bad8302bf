"""What a callable of the user's computes with: everything it can reach, told apart by content.

The source of a function says little about a model that keeps its weights in a global, a closure or an attribute. Here
all that is followed: what a function's code names in its module, what it was closed over, what an object holds. Code
of libraries is not looked into, their versions are told elsewhere; the objects they make are, as far as they show what
they hold. What does not show it is named, so that the user can be told.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import hashlib
import inspect
import io
import logging
import os
import random
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import CodeType, MethodType, ModuleType
from typing import Any

import numpy as np

from testifai.support.user_code import fingerprint, source_of

MOST = 200_000  # values looked at
DEEPEST = 100  # values within each other
SHALLOW = 4  # how deep version 0.1.0 looked
INSTALLED = frozenset({"site-packages", "dist-packages"})  # also of another environment that this one is laid upon

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
# Things without content of their own, and those whose state is not what they are: it changes with every use.
_EMPTY = (
    logging.Logger, logging.Handler, random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator,
    io.IOBase, Iterator, type(threading.Lock()), type(threading.RLock()), threading.local, threading.Event,
)  # fmt: skip
# Methods that change a list, a table or a set.
_CHANGING = frozenset({
    "append", "appendleft", "extend", "insert", "pop", "popleft", "popitem", "remove", "clear", "update", "setdefault",
    "add", "discard", "sort", "reverse", "move_to_end",
})  # fmt: skip


@dataclass(frozen=True)
class Told:
    """How something of the user's is told from another.

    `former` is what version 0.1.0 told it by, which saw the source and the values it was built with; `untold` says in
    words what could not be told.
    """

    fingerprint: str
    former: str
    untold: str | None


def tell(value: Any, version: str | None = None) -> Told:
    """What tells a callable from another, the same on every machine; with what the user says of its version.

    >>> told = tell(lambda batch: batch + 1)
    >>> told.fingerprint == told.former, told.untold
    (True, None)
    """
    former = fingerprint(value)
    more, untold = reached(value)
    texts = [former, more or "", "" if version is None else f"version {version}"]
    found = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest() if any(texts[1:]) else former
    return Told(found, former, untold if version is None else None)


def reached(value: Any) -> tuple[str | None, str | None]:
    """A digest of all that is reachable, None where the source tells it all; and what could not be told."""
    walk = _Walk()
    try:
        walk.visit(value, "", 0)
    except _TooMuchError:
        pass
    except Exception as error:  # whatever an object of others does when it is looked at
        walk.cannot_tell(f"what it holds (looking at it failed with {type(error).__name__})")
    return walk.digest.hexdigest() if walk.more else None, walk.untold


class _TooMuchError(Exception):
    """More than will be looked at."""


class _Walk:
    """One walk; `more` once it came by something that the source does not tell."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.more = False
        self._untold: list[str] = []
        self._folders: set[str] = set()  # of modules of the user's
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # what was made on the way must not make room for another of the same id

    @property
    def untold(self) -> str | None:
        """The first thing that could not be told."""
        return self._untold[0] if self._untold else None

    def visit(self, value: Any, where: str, depth: int) -> None:
        if isinstance(value, np.generic) and not isinstance(value, _PLAIN):
            value, depth = np.asarray(value), max(depth, SHALLOW + 1)
        if isinstance(value, _PLAIN):
            self._tell(repr(self._moved(value) if isinstance(value, str) else value), depth)
            return
        if id(value) in self._seen:
            self._tell(f"again {self._seen[id(value)]}", 0)
            return
        if len(self._seen) >= MOST or depth > DEEPEST:
            self.cannot_tell(f"all that {where or 'it'} holds: it is too much")
            raise _TooMuchError
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        self._tell(f"{type(value).__module__}:{type(value).__qualname__}", 0)
        self._kind(value, where, depth)

    def _kind(self, value: Any, where: str, depth: int) -> None:
        if isinstance(value, np.ndarray):
            self._array(value, where, depth)
        elif _is_tensor(value):
            self._tensor(value)
        elif isinstance(value, list | tuple):
            self._all(enumerate(value), where, depth)
        elif isinstance(value, Mapping):
            depth = depth if isinstance(value, dict) else max(depth, SHALLOW + 1)
            self._all(sorted(value.items(), key=lambda item: str(item[0])), where, depth)
        elif isinstance(value, set | frozenset):
            self._set(value, depth)
        elif isinstance(value, bytearray | memoryview | range | slice):
            self._new(bytes(value).hex() if isinstance(value, bytearray | memoryview) else str(value))
        elif isinstance(value, PurePath):
            self._new(self._moved(str(value)))
        elif isinstance(value, functools.partial):
            self._all(zip(("func", "args", "keywords"), (value.func, value.args, value.keywords), strict=True),
                      where, depth)  # fmt: skip
        elif isinstance(value, MethodType):
            self._all([("", value.__func__), ("", value.__self__)], where, depth)
        elif inspect.isfunction(value):
            self._function(value, where, depth)
        elif isinstance(value, ModuleType):
            self._tell(value.__name__, depth)
        elif inspect.isclass(value):
            self._class(value, where, depth)
        elif inspect.isroutine(value):  # of a library, or of C
            self._tell(f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}", depth)
        elif isinstance(value, property | staticmethod | classmethod):
            parts = (getattr(value, name, None) for name in ("fget", "__func__"))
            self._all(enumerate(part for part in parts if part is not None), where, depth)
        elif not isinstance(value, (*_EMPTY, Iterator)):  # what an iterator still has to give changes with its use
            self._object(value, where, depth)

    # -- values with parts ----------------------------------------------------------------------------------------

    def _all(self, parts: Iterable[tuple[Any, Any]], where: str, depth: int) -> None:
        for name, part in parts:
            self._tell(str(name), depth)
            self.visit(part, f"{where}.{name}".strip(".") if isinstance(name, str) else where, depth + 1)

    def _set(self, values: Any, depth: int) -> None:
        """Of sets, whose order is none: what their members are by themselves."""
        members = []
        for value in values:
            alone = _Walk()
            alone.visit(value, "", 1)
            self._untold += alone._untold
            members.append(alone.digest.hexdigest())
        self._new(" ".join(sorted(members)))

    def _function(self, function: Any, where: str, depth: int) -> None:
        library = is_library(function.__module__)
        self._tell(f"{function.__module__}:{function.__qualname__}", depth)
        self._tell("" if library else source_of(function), depth)
        values: list[Any] = [(function.__defaults__, function.__kwdefaults__)]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # a cell not yet filled
                values.append(cell.cell_contents)
        self._all(enumerate(values), where, depth)
        if function.__dict__:
            self._all(sorted(function.__dict__.items()), where, max(depth, SHALLOW + 1))
        if not library:
            self._globals(function, where, depth)

    def _globals(self, function: Any, where: str, depth: int) -> None:
        """What the code names in its module, and by way of it in other modules of the user's."""
        named, assigned = _names(function.__code__)
        assigned |= _edited(function)
        if isinstance(file := function.__globals__.get("__file__"), str):
            self._folders.update((str(Path(file).parent), str(Path(file).resolve().parent)))
        for name in sorted(named & function.__globals__.keys() - {"__file__", "__name__", "__doc__", "__builtins__"}):
            value = function.__globals__[name]
            if name in assigned:
                self.cannot_tell(f"{name}, which its code changes while it runs")
            elif isinstance(value, ModuleType):
                if not is_library(value.__name__):
                    own = {part: vars(value)[part] for part in named & vars(value).keys()}
                    told = [(part, own[part]) for part in sorted(own) if not _of_library(own[part])]
                    self._all(told, name, SHALLOW + 1)
            elif not _of_library(value):
                self._tell(name, SHALLOW + 1)
                self.visit(value, name, max(depth, SHALLOW) + 1)

    def _class(self, kind: type, where: str, depth: int) -> None:
        self._tell(f"{kind.__module__}:{kind.__qualname__}", depth)
        if is_library(kind.__module__):
            return
        self._tell(source_of(kind), depth)
        for base in kind.__mro__[1:]:
            if not is_library(base.__module__):
                self.visit(base, where, max(depth, SHALLOW) + 1)
        for name, part in sorted(vars(kind).items()):
            if inspect.isfunction(part):
                # The source of a method is in that of its class; what it names is not.
                self._globals(part, where, depth)
            elif isinstance(part, property | staticmethod | classmethod):
                inner = getattr(part, "fget", None) or getattr(part, "__func__", None)
                if inspect.isfunction(inner):
                    self._globals(inner, where, depth)
            elif (
                not name.startswith(("__", "_abc_"))
                and not inspect.isdatadescriptor(part)
                and not isinstance(part, _PLAIN)
            ):
                self.visit(part, name, max(depth, SHALLOW) + 1)

    def _object(self, value: Any, where: str, depth: int) -> None:
        before, known = self.digest.copy(), len(self._untold)
        self._held(value, where, depth)
        if len(self._untold) > known and is_library(type(value).__module__):
            # What is left of it, such as the path it came from, may differ between machines that hold the same.
            self.digest = before
            self._untold[known:] = [f"{where or 'it'}, a {type(value).__module__}.{type(value).__qualname__}"]

    def _held(self, value: Any, where: str, depth: int) -> None:
        kind = type(value)
        self.visit(kind, where, depth + 1)
        if _is_module_of_torch(value):
            self._torch_module(value, where, depth)
            return
        held = vars(value) if hasattr(value, "__dict__") else None
        slots = {name: getattr(value, name) for name in _slots(kind) if hasattr(value, name)}
        if held:
            self._all(sorted(held.items(), key=lambda item: str(item[0])), where, depth + 1)
        if slots:
            self._all(sorted(slots.items()), where, max(depth, SHALLOW) + 1)
        if _hides(kind, held is not None):
            self._state(value, where, depth)

    def _state(self, value: Any, where: str, depth: int) -> None:
        """What an object of a compiled class would hand over to be copied, if it can be."""
        try:
            made = value.__reduce_ex__(4)
        except Exception:
            made = None
        if isinstance(made, str):  # the name under which it is found
            self._tell(made, depth)
            return
        if not isinstance(made, tuple):
            kind = type(value)
            self.cannot_tell(f"{where or 'an object'}, a {kind.__module__}.{kind.__qualname__}")
            return
        parts = [list(part) if isinstance(part, Iterator) else part for part in made[1:]]
        self._all(enumerate(parts), where, max(depth, SHALLOW) + 1)

    # -- numbers --------------------------------------------------------------------------------------------------

    def _array(self, array: Any, where: str, depth: int) -> None:
        if array.dtype.hasobject:
            self._tell(str(array.shape), depth)
            self.visit(array.tolist(), where, max(depth, SHALLOW) + 1)
            return
        self._tell(f"{array.dtype.str}{array.shape}", depth)
        self._tell(hashlib.sha256(np.ascontiguousarray(array).data).hexdigest(), depth)

    def _tensor(self, tensor: Any) -> None:
        self._new(f"{tensor.dtype} {tuple(tensor.shape)}")
        try:
            self._new(hashlib.sha256(tensor_bytes(tensor)).hexdigest())
        except Exception:
            self.cannot_tell(f"a tensor of {tensor.dtype} on {tensor.device}")

    def _torch_module(self, module: Any, where: str, depth: int) -> None:
        """Weights, buffers and whatever else a module was given; not whether it is just being trained."""
        named = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
        own = {name: value for name, value in vars(module).items() if name != "training" and not name.startswith("_")}
        self._all(sorted(named.items()), where, max(depth, SHALLOW) + 1)
        self._all(sorted(own.items()), where, max(depth, SHALLOW) + 1)
        for name, child in sorted(module.named_children()):
            self._tell(name, SHALLOW + 1)
            self.visit(child, where, max(depth, SHALLOW) + 1)

    # -- telling --------------------------------------------------------------------------------------------------

    def _moved(self, text: str) -> str:
        """A path below a folder of code as seen from there: the folder may lie elsewhere on another machine."""
        folders = [folder for folder in self._folders if text == folder or text.startswith(folder + os.sep)]
        return text[len(max(folders, key=len)) :] if folders else text

    def _tell(self, text: str, depth: int) -> None:
        """A text; new where version 0.1.0 did not look so deep."""
        self.more = self.more or depth > SHALLOW
        self.digest.update(text.encode("utf-8", "surrogatepass") + b"\0")

    def _new(self, text: str) -> None:
        self._tell(text, SHALLOW + 1)

    def cannot_tell(self, what: str) -> None:
        self._untold.append(what)


def is_library(module: str | None) -> bool:
    """Whether a module came with Python, was installed, or is part of this package."""
    name = (module or "").partition(".")[0]
    if name in ("testifai", "builtins") or name in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None) or getattr(sys.modules.get(name), "__file__", None)
    return file is not None and (
        not INSTALLED.isdisjoint(Path(file).parts) or any(Path(file).is_relative_to(place) for place in _installed())
    )


@functools.cache
def _installed() -> tuple[Path, ...]:
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()}
    places.update(site.getsitepackages())
    return tuple(Path(place) for place in sorted(places))


def tensor_bytes(tensor: Any) -> bytes:
    """The numbers of a torch tensor, wherever it lies."""
    import torch

    data: bytes = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return data


def _of_library(value: Any) -> bool:
    """Functions and classes of libraries: their names are in the code that uses them."""
    if inspect.isclass(value) or (inspect.isroutine(value) and not isinstance(value, MethodType)):
        wrapped = inspect.isfunction(value) and value.__closure__  # made by a library around code of the user's
        return is_library(getattr(value, "__module__", None)) and not wrapped
    return type(value).__module__ == "numpy" and isinstance(value, np.ufunc)


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """What a function's code, and code within it, names in its module, attributes among it; and what it assigns."""
    named, assigned = set(code.co_names), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            assigned.add(str(instruction.argval))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            more, also = _names(constant)
            named, assigned = named | more, assigned | also
    return named, assigned


def _edited(function: Any) -> set[str]:
    """Names whose contents the code changes: counters, caches. What is in them is not what the function is."""
    try:
        tree = ast.parse(source_of(function))
    except (SyntaxError, ValueError, RecursionError):  # a lambda's source is the line around it
        return set()
    targets: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            targets.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            targets.append(node.func.value)
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _slots(kind: type) -> list[str]:
    found = []
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _hides(kind: type, has_dict: bool) -> bool:
    """Whether objects of a class keep things where Python does not show them: compiled classes, and those built on one.

    A class written in Python has a table of attributes or names them in slots, a pointer each, and nothing else.
    """
    if not has_dict and not any("__slots__" in vars(base) for base in kind.__mro__):
        return True
    written_in_python = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made at run time
    if any(base is not object and not base.__flags__ & written_in_python for base in kind.__mro__):
        return True
    pointers = 2 + len(_slots(kind))  # attributes, weak references
    return kind.__basicsize__ > object.__basicsize__ + 8 * pointers or kind.__itemsize__ > 0


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_module_of_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
