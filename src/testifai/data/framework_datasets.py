"""Data-set objects of other libraries: torch's and torchvision's, DataLoaders, Hugging Face's, tensors.

They are recognised by their attributes; none of the libraries is imported. Images are read when a batch needs them, and
become bytes of shape (H, W) or (H, W, 3) for perturbations, also from tensors (C, H, W) in 0 … 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from testifai.data.dataset import Data, from_arrays
from testifai.data.lazy import LazyInputs
from testifai.errors import InputError, suggest
from testifai.support.fingerprints import MAX_FILES, Contents, Rows, as_numbers, hash_bytes
from testifai.support.types import Array

READ_TWICE = 8  # items that are read twice before a run, to check that they do not change
INPUTS = ("image", "img", "pixel_values", "text", "sentence")  # usual names of parts of an item
LABELS = ("label", "labels", "target", "targets", "fine_label", "y")
CHANNELS = (1, 3)


def is_dataset(given: Any) -> bool:
    """Return True for a data set, loader or tensor of another library, not for an array or a list."""
    if isinstance(given, np.ndarray | list | tuple | str | bytes | Mapping | LazyInputs):
        return _is_splits(given)
    if _is_tensor(given) or _is_loader(given) or _is_stream(given):
        return True
    own = hasattr(given, "__getitem__") and hasattr(given, "__len__")
    return own and not hasattr(given, "__array__") and not hasattr(given, "iloc")


def from_dataset(
    given: Any,
    *,
    inputs: str | int | None = None,
    labels: str | int | None = None,
    classes: Sequence[str] | None = None,
    name: str = "data",
) -> Data:
    """A data set of torch, torchvision or Hugging Face, a `DataLoader`, or a tensor, as `ta.scan` takes it.

    `inputs` and `labels` say which column, or which place in an item, holds them, where that cannot be seen: images and
    one label, one text and one label, and pairs (input, label) can. A DataLoader stands for its data set.

    Args:
        given: the data set
        inputs: the column, or the place in an item, of the inputs; None: as it can be seen
        labels: the same of the labels
        classes: names of the classes in their order
        name: for people
    """
    if _is_splits(given):
        first = "test" if "test" in given else next(iter(given))
        raise InputError(f"data: holds the splits {', '.join(map(str, given))}; hand over one, such as data[{first!r}]")
    if _is_tensor(given):
        return from_arrays(_bare(given), None, classes, name=name)
    if _is_loader(given):
        sampler = type(given.sampler).__name__
        whole = sampler in ("SequentialSampler", "RandomSampler", "NoneType")
        if not whole or getattr(given.sampler, "replacement", False):
            raise InputError(
                f"data: this DataLoader draws with {sampler}, so its inputs are not those of its data set; hand over "
                "the data set itself: loader.dataset"
            )
        return from_dataset(given.dataset, inputs=inputs, labels=labels, classes=classes, name=name)
    if _is_stream(given):
        raise InputError(
            f"data: {type(given).__name__} has no length, so no input has a number; take a part of it as a list"
        )
    if not len(given):
        raise InputError(f"{name}: has no rows; at least one input is needed")
    items = _Columns(given, inputs, labels) if hasattr(given, "column_names") else _Items(given, inputs, labels)
    names = classes if classes is not None else items.classes()
    return from_arrays(items.inputs(), items.labels(), names, name=name)


def _is_tensor(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "torch" and hasattr(given, "detach")


def _is_loader(given: Any) -> bool:
    return hasattr(given, "dataset") and hasattr(given, "sampler") and hasattr(given, "batch_size")


def _is_stream(given: Any) -> bool:
    named = any(one.__name__ in ("IterableDataset", "IterableDatasetDict") for one in type(given).__mro__)
    return named and not hasattr(given, "__len__")


def _is_splits(given: Any) -> bool:
    return isinstance(given, Mapping) and bool(given) and all(hasattr(one, "column_names") for one in given.values())


class _Items:
    """A data set with numbered items: (input, label), {"image": …, "label": …}, or inputs alone."""

    def __init__(self, given: Any, inputs: str | int | None, labels: str | int | None) -> None:
        self.given = given
        first = self._item(0)
        self.at, self.label_at = _places(first, inputs, labels)
        self.image = _part(first, self.at)
        for row in range(min(READ_TWICE, len(given))):
            read_twice = [_part(self._item(row), self.at) for _ in range(2)]
            if len({one if isinstance(one, str) else as_input(one, f"item {row}").tobytes() for one in read_twice}) > 1:
                raise InputError(
                    f"data: item {row} of {type(given).__name__} is another each time it is read; hand over the data "
                    "set without random transforms"
                )

    def _item(self, row: int) -> Any:
        try:
            return self.given[row]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"data: item {row} cannot be read: {type(error).__name__}: {reason}") from error

    def inputs(self) -> Any:
        if isinstance(self.image, str):
            return [_part(self._item(row), self.at) for row in range(len(self.given))]
        return ObjectInputs(lambda row: _part(self._item(row), self.at), len(self.given), self.image)

    def labels(self) -> Any:
        """All labels, from an attribute of the data set, else from its items."""
        if self.label_at is None:
            return None
        for kept in ("targets", "labels"):
            found = getattr(self.given, kept, None)
            usual = getattr(self.given, "target_transform", None) is None
            if usual and found is not None and not callable(found) and len(found) == len(self.given):
                return _bare(found) if _is_tensor(found) else np.asarray(found)
        labels = (_part(self._item(row), self.label_at) for row in range(len(self.given)))
        return [_bare(label).tolist() if _is_tensor(label) else label for label in labels]

    def classes(self) -> Sequence[str] | None:
        found = getattr(self.given, "classes", None)
        named = isinstance(found, list | tuple) and all(isinstance(one, str) for one in found)
        return found if named and self.label_at is not None else None


class _Columns:
    def __init__(self, given: Any, inputs: str | int | None, labels: str | int | None) -> None:
        self.given, names = given, list(given.column_names)
        for field, chosen in (("inputs", inputs), ("labels", labels)):
            if chosen is not None and chosen not in names:
                raise InputError(f"{field}: there is no column {chosen!r}; {suggest(chosen, names)}")
        self.label = labels if labels is not None else _only(names, LABELS, lambda one: self._kind(one) == "ClassLabel")
        self.chosen = [inputs] if inputs is not None else self._inputs([one for one in names if one != self.label])

    def _kind(self, column: Any) -> str:
        feature = (self.given.features or {}).get(column)
        return "text" if getattr(feature, "dtype", None) in ("string", "large_string") else type(feature).__name__

    def _inputs(self, columns: list[str]) -> list[Any]:
        """The only column of images, else the only one or two columns of texts, else the only column."""
        images, texts = ([one for one in columns if self._kind(one) == kind] for kind in ("Image", "text"))
        found, most = (images, 1) if images else (texts, 2) if texts else (columns, 1)
        if not 1 <= len(found) <= most:
            raise InputError(f"data: which of the columns {', '.join(found)} holds the inputs? Say it with inputs=…")
        return found

    def inputs(self) -> Any:
        if all(self._kind(one) == "text" for one in self.chosen):
            columns = [list(self.given[one]) for one in self.chosen]
            return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        column = self.chosen[0]
        return ObjectInputs(lambda row: self.given[row][column], len(self.given), self.given[0][column])

    def labels(self) -> Any:
        return None if self.label is None else np.asarray(self.given[self.label])

    def classes(self) -> Sequence[str] | None:
        names = getattr((self.given.features or {}).get(self.label), "names", None)
        return names if isinstance(names, list) else None


def _only(names: Iterable[str], usual: Sequence[str], fits: Callable[[str], bool]) -> str | None:
    names = list(names)
    found = [one for one in names if fits(one)]
    return found[0] if len(found) == 1 else next((one for one in usual if one in names), None)


def _places(item: Any, inputs: str | int | None, labels: str | int | None) -> tuple[Any, Any]:
    """Positions of the input (None: the whole item) and of the label (None: there is none) in an item."""
    if isinstance(item, Mapping):
        for field, chosen in (("inputs", inputs), ("labels", labels)):
            if chosen is not None and chosen not in item:
                raise InputError(f"{field}: items have no {chosen!r}; {suggest(chosen, map(str, item))}")
        label = labels if labels is not None else _only(map(str, item), LABELS, lambda one: False)
        rest = [one for one in item if one != label]
        at = inputs if inputs is not None else rest[0] if len(rest) == 1 else _only(rest, INPUTS, lambda one: False)
        if at is None:
            raise InputError(f"data: items have {', '.join(map(str, item))}; say which is the input with inputs=…")
        return at, label
    if isinstance(item, tuple | list) and len(item) in (1, 2):
        return (0 if inputs is None else inputs), (labels if labels is not None else 1 if len(item) == 2 else None)
    if isinstance(item, tuple | list):
        if inputs is None or labels is None:
            raise InputError(
                f"data: items have {len(item)} parts; say which is what with inputs=0, labels=1, for example"
            )
        return inputs, labels
    return None, None


def _part(item: Any, at: Any) -> Any:
    return item if at is None else item[at]


class ObjectInputs(LazyInputs):
    def __init__(self, item: Callable[[int], Any], length: int, first: Any) -> None:
        self._item = item
        array = as_input(first, "item 0")
        self.shape, self.dtype = (length, *array.shape), array.dtype
        if length > MAX_FILES:
            self.contents = Contents(length)

    def read(self, rows: Rows) -> Array:
        made = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for place, row in enumerate(rows.tolist()):
            array = as_input(self._item(row), f"item {row}")
            wanted = self.shape[1:]
            if array.ndim == 2 and wanted == (*array.shape, 3):  # a grey image among others in colour
                array = np.repeat(array[:, :, np.newaxis], 3, axis=2)
            if array.shape != wanted or array.dtype.kind != self.dtype.kind:
                raise InputError(
                    f"data: item {row} has shape {array.shape}, item 0 {wanted}; all inputs must have the same shape: "
                    "add a Resize to the data set's transform"
                )
            made[place] = array
        if self.contents is not None:
            self.note(rows, as_numbers(hash_bytes(one.data) for one in made))
        return made

    def called(self, row: int) -> str:
        return f"item {row}"


def as_input(given: Any, where: str) -> Array:
    """An item as an array: images as bytes, other numbers as they are."""
    if hasattr(given, "convert") and hasattr(given, "mode"):  # an image of Pillow's
        grey = given.mode in ("1", "L", "I", "I;16", "F")
        return np.asarray(given.convert("L" if grey else "RGB"), np.uint8)
    array = _bare(given) if _is_tensor(given) else np.asarray(given)
    if array.dtype.kind not in "biuf":
        raise InputError(f"data: {where} is {type(given).__name__}; accepted: images, tensors, arrays and texts")
    if array.ndim == 3:
        first = array.shape[0] in CHANNELS and (_is_tensor(given) or array.shape[2] not in CHANNELS)
        return _as_images(array, first, where)
    return _as_bytes(array, where) if array.ndim == 2 and array.dtype.kind == "f" else array


def _as_images(array: Array, channels_first: bool, where: str) -> Array:
    """Images as bytes with their channels last, or without an axis for a single channel."""
    array = np.moveaxis(array, -3, -1) if channels_first else array
    array = _as_bytes(array, where) if array.dtype.kind == "f" else array
    return np.ascontiguousarray(array[..., 0] if array.shape[-1] == 1 else array)


def _as_bytes(array: Array, where: str) -> Array:
    low, high = float(array.min(initial=0)), float(array.max(initial=0))
    if not (low >= 0 and high <= 1):  # NaN fails here too
        raise InputError(
            f"data: {where} has numbers from {low:.3g} to {high:.3g}; images are perturbed before they are normalised: "
            "leave Normalize out of the data set's transform and say mean=…, std=… to ta.models.from_torch"
        )
    return np.asarray(np.rint(array * 255), np.uint8)


def _bare(tensor: Any) -> Array:
    """A tensor as an array; a stack of images as bytes (N, H, W) or (N, H, W, 3)."""
    array = np.asarray(tensor.detach().cpu().numpy())
    return _as_images(array, array.shape[1] in CHANNELS, "the tensor") if array.ndim == 4 else array
