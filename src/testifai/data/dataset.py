"""A data set in memory or on disk: inputs, labels if there are any, class names."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from mmap import mmap
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from testifai.data.labels import MOST_CLASSES, read_labels
from testifai.data.lazy import LazyInputs, MappedInputs
from testifai.data.table_columns import Table, unnamed
from testifai.errors import InputError, suggest
from testifai.support import validation
from testifai.support.batches import SIDES, Images, Pair, Side, are_images, are_pairs
from testifai.support.fingerprints import chunks, fingerprint_data, sampled
from testifai.support.options_base import Part, Words
from testifai.support.types import Array


class DataPart(Part):
    """Options of a data reader in a spec's [data] table; each reader has its own subclass.

    A reader that `recognise` should find by path sets `suffixes`, or overrides `recognises`.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()  # lower-case, with the dot

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Return True for an existing path that this reader reads, judging by its name and at most its first bytes."""
        return path.suffix.lower() in cls.suffixes and path.is_file()

    @abstractmethod
    def load(self, folder: Path) -> Data:
        """Return the data; relative paths and modules are searched in the folder first."""


class FilePart(DataPart):
    """A reader whose first field is the file or folder that `read` gets, followed by the other options."""

    read: ClassVar[Callable[..., Data]]

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        return type(self).read(options.pop(self.FILES[0]), **options)


def visible_files(folder: Path) -> list[Path]:
    """The files of a folder, sorted, without hidden ones; none if it is not a folder."""
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [entry for entry in entries if entry.is_file() and not entry.name.startswith(".")]


Inputs = Array | list[str] | list[Pair] | Images | LazyInputs


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs (first axis = input), their labels and the names of the classes.

    `side` is the text of each pair that is perturbed. `schema` describes the columns of a table with names, whose
    missing values are NaN.
    """

    inputs: Inputs
    labels: Array | None = None
    classes: tuple[str, ...] | None = None
    name: str = "data"
    side: Side = "both"
    schema: Table | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def sizes(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        inputs = self.inputs
        if isinstance(inputs, LazyInputs):
            return inputs.sizes(rows)
        if are_images(inputs):
            return np.array([inputs[row].shape[:2] for row in rows.tolist()], np.intp).reshape(-1, 2)
        return np.tile(np.array(np.shape(inputs)[1:3], np.intp), (len(rows), 1))

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_data(
            self.inputs,
            self.labels,
            self.classes or (),
            side=self.side,
            columns=None if self.schema is None else self.schema.identity(),
            identity=self.inputs.identity() if isinstance(self.inputs, LazyInputs) else None,
        )

    @cached_property
    def table(self) -> Table | None:
        """The columns of a table, from `schema` or from an array of rows; None for other inputs."""
        inputs = self.inputs
        if self.schema is not None or isinstance(inputs, list) or inputs.ndim != 2 or inputs.dtype.kind not in "biuf":
            return self.schema
        return unnamed(inputs[sampled(len(inputs))] if isinstance(inputs, LazyInputs) else inputs)


def from_arrays(
    inputs: Any, labels: Any = None, classes: Sequence[str] | None = None, *, name: str = "data", side: Side = "both"
) -> Data:
    """A data set from arrays or lists, checked. A list of pairs of strings is a data set of pairs of texts.

    Args:
        inputs: an array whose first axis is the input, or a list of strings, of pairs of strings or of images
        labels: for each input a class, a number, a 0/1 row, boxes or a label map; None: there are none
        classes: names of the classes in their order
        name: for people
        side: which text of a pair is perturbed

    >>> data = from_arrays(np.zeros((2, 28, 28), np.uint8), ["seven", "two"])
    >>> len(data), data.labels.tolist(), data.classes
    (2, [0, 1], ('seven', 'two'))
    """
    checked = _read_inputs(inputs)
    if len(checked) == 0:
        raise InputError(f"{name}: has no rows; at least one input is needed")
    names = tuple(str(one) for one in classes) if classes is not None else None
    array: Array | None = None
    if labels is not None:
        array, names = read_labels(labels, len(checked), names)
    validation.choice(f"{name}: side", side, SIDES)
    if side != "both" and not are_pairs(checked):
        raise InputError(f"{name}: side {side!r} is for pairs of texts; these inputs are none")
    return Data(checked, array, names, name, side)


def _read_inputs(inputs: Any) -> Inputs:
    if _is_file(inputs):
        inputs = MappedInputs.of(inputs)
    if isinstance(inputs, LazyInputs):
        if inputs.dtype.kind == "f" and inputs.contents is None:  # else each is checked when it is read
            _check_finite(inputs)
        return inputs
    if isinstance(inputs, str | bytes | dict | set | frozenset):
        raise InputError(f"inputs: {type(inputs).__name__} is not accepted; an array or a list of strings is")
    if isinstance(inputs, list | tuple) and inputs:
        if isinstance(inputs[0], str):
            if not all(isinstance(text, str) for text in inputs):
                # NumPy would convert a number, or a missing value, to a string.
                place = next(place for place, text in enumerate(inputs) if not isinstance(text, str))
                kind = type(inputs[place]).__name__
                raise InputError(f"inputs: row {place} is a {kind}; a string is accepted, as before it")
            return list(inputs)
        if _holds_text(inputs[0]):
            return _pairs(inputs)
    try:
        array: Array = np.asanyarray(inputs)
    except ValueError:
        if isinstance(inputs, list | tuple) and isinstance(inputs[0], np.ndarray):
            return _images(inputs)
        raise InputError("inputs: rows have different shapes; all inputs must have the same shape") from None
    if array.ndim == 0:
        raise InputError("inputs: a single value is not accepted; the first axis is the input")
    if array.dtype.kind in "USO":
        return _texts(array)
    if array.dtype.kind not in "biuf":
        raise InputError(f"inputs: dtype {array.dtype} is not accepted; numbers or strings are")
    if array.dtype.kind == "f":
        _check_finite(array)
    return array


def _images(rows: Sequence[Any]) -> Images:
    for place, row in enumerate(rows):
        kind = row.dtype if isinstance(row, np.ndarray) and row.ndim in (2, 3) and row.size else None
        if kind != np.uint8 or row.shape[2:] != rows[0].shape[2:]:
            found = f"{row.dtype} {row.shape}" if isinstance(row, np.ndarray) else type(row).__name__
            raise InputError(
                f"inputs: row {place} is {found}; rows of different shapes have to be images, uint8 (height, width) or "
                "(height, width, 3), all grey or all in colour"
            )
    return list(rows)


def _is_file(inputs: Any) -> bool:
    """Return True for a whole array in a file, as from `np.load(…, mmap_mode="r")`."""
    if not isinstance(inputs, np.memmap) or inputs.mode != "r":
        return False
    base: Any = inputs.base  # the array, if this is a part of one
    there = isinstance(base, mmap) and inputs.filename is not None and os.path.isfile(inputs.filename)
    return there and inputs.size > 0 and inputs.dtype.kind in "biuf"


def _holds_text(row: Any) -> bool:
    return isinstance(row, list | tuple) and any(isinstance(text, str) for text in row)


def _pairs(rows: Sequence[Any]) -> list[Pair]:
    pairs = [tuple(row) if isinstance(row, list | tuple) else (row,) for row in rows]
    for place, pair in enumerate(pairs):
        if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], str):
            found = ", ".join(type(one).__name__ for one in pair[:4]) or "nothing"
            raise InputError(f"inputs: row {place} holds {found}; a pair of strings is accepted, (first, second)")
    return cast(list[Pair], pairs)


def _texts(array: Array) -> list[str] | list[Pair]:
    if array.ndim == 2 and array.shape[1] == 2:
        return _pairs(_decoded(array))
    if array.ndim != 1:
        raise InputError(
            f"inputs: texts have shape {array.shape}; a list of strings or of pairs (first, second) is accepted"
        )
    if array.dtype.kind == "O" and len(array) and _holds_text(array[0]):
        return _pairs(array.tolist())
    words = _decoded(array)
    for row, word in enumerate(words):
        if not isinstance(word, str):
            raise InputError(f"inputs: row {row} is a {type(word).__name__}; numbers or strings are accepted")
    return words


def _decoded(array: Array) -> list[Any]:
    try:
        words = [word.decode() if isinstance(word, bytes) else word for word in array.ravel().tolist()]
    except UnicodeDecodeError:
        raise InputError("inputs: byte strings that are not UTF-8 text") from None
    return words if array.ndim == 1 else list(zip(words[::2], words[1::2], strict=True))


def _check_finite(array: Array | LazyInputs) -> None:
    bad, first, row = 0, -1, 0
    for chunk in chunks(array):
        finite = np.isfinite(chunk).reshape(len(chunk), -1).all(axis=1)
        if not finite.all():
            first = row + int(np.argmin(finite)) if first < 0 else first
            bad += int((~finite).sum())
        row += len(chunk)
    if bad:
        raise InputError(f"inputs: {bad} of {len(array)} hold NaN or infinity (the first is row {first})")


# The types in a spec; Python callers may also pass tuples and arrays.
ClassNames = dict[str, int | str] | Words
Classes = Sequence[str] | Mapping[str, int | str] | None


def numbered(data: Data, classes: Classes) -> Data:
    """Number labels as the outputs, which a list names in their order and a table assigns to the data's classes."""
    if classes is None:
        return data
    if data.labels is None or data.labels.ndim != 1 or data.labels.dtype.kind not in "iu":
        raise InputError("classes: these data have no class per input to name")
    highest = int(data.labels.max())
    if highest >= MOST_CLASSES:
        raise InputError(f"classes: expected labels below {MOST_CLASSES:,}, got {highest}")
    names = data.classes or tuple(map(str, range(highest + 1)))
    if isinstance(classes, Mapping):
        return _by_table(data, names, classes)
    listed = [str(one) for one in classes]
    if len(set(listed)) < len(listed):
        twice = next(one for one in listed if listed.count(one) > 1)
        raise InputError(f"classes: {twice!r} is listed twice; each output has one name")
    if data.classes is None:
        if len(listed) < len(names):
            raise InputError(f"classes: {len(listed)} names for the labels 0 … {len(names) - 1}; name every output")
        return replace(data, classes=tuple(listed))
    folded = [one.casefold() for one in listed]
    for name in names:
        if name not in listed and name.casefold() not in folded:
            raise InputError(f"classes: the data's class {name!r} is not listed; {suggest(name, listed)}")
    places = [listed.index(name) if name in listed else folded.index(name.casefold()) for name in names]
    return _renumbered(data, places, listed)


def _by_table(data: Data, names: Sequence[str], table: Mapping[str, int | str]) -> Data:
    unknown = [one for one in table if one not in names]
    if unknown:
        raise InputError(f"classes: there is no class {unknown[0]!r} in the data; {suggest(unknown[0], names)}")
    missing = [one for one in names if one not in table]
    if missing:
        raise InputError(
            f"classes: says nothing of {', '.join(map(repr, missing[:5]))}; name an output for every class"
        )
    outputs = [table[name] for name in names]
    if all(isinstance(one, str) for one in outputs):
        listed = list(dict.fromkeys(map(str, outputs)))
        return _renumbered(data, [listed.index(str(one)) for one in outputs], listed)
    if any(isinstance(one, bool) or not isinstance(one, int) or one < 0 for one in outputs):
        raise InputError("classes: accepted: an output, counted from 0, for every class; or the model's name for each")
    places = [int(one) for one in outputs]
    called: dict[int, list[str]] = {}
    for name, place in zip(names, places, strict=True):
        called.setdefault(place, []).append(name)
    return _renumbered(data, places, ["/".join(called.get(place, [str(place)])) for place in range(max(places) + 1)])


def _renumbered(data: Data, places: Sequence[int], names: Sequence[str]) -> Data:
    table: Any = np.asarray(places, np.int64)
    return replace(data, labels=table[data.labels], classes=tuple(names))
