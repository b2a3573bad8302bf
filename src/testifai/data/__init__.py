"""Data sets: arrays, files and folders, read into one record.

A reader is a `DataPart`, which declares the options in a spec and recognises the reader's files, and one line in
`LOADERS`, or an entry point of another package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from testifai.data.dataset import Data, DataPart, Inputs, from_arrays
from testifai.data.framework_datasets import from_dataset, is_dataset
from testifai.data.lazy import LazyInputs
from testifai.data.tabular import from_columns, from_frame, is_frame
from testifai.errors import InputError
from testifai.support.batches import Batch, take
from testifai.support.options_base import make_part
from testifai.support.registry import Registry
from testifai.support.remote import RemoteFolder, is_address, place
from testifai.support.user_code import import_object

__all__ = [
    "LOADERS",
    "Data",
    "DataPart",
    "Inputs",
    "LazyInputs",
    "from_arrays",
    "from_columns",
    "from_dataset",
    "from_frame",
    "load",
    "recognise",
    "rows",
    "wrap",
]

# `recognise` tries them in this order: the more specific ones come first.
LOADERS = Registry(
    "data",
    "testifai.data",
    {
        "npz": "testifai.data.array_files:NpzPart",
        "coco": "testifai.data.boxed_images:CocoPart",
        "yolo": "testifai.data.boxed_images:YoloPart",
        "folder": "testifai.data.image_files:FolderPart",
        "masks": "testifai.data.image_files:MasksPart",
        "cifar": "testifai.data.array_files:CifarPart",
        "idx": "testifai.data.array_files:IdxPart",
        "table": "testifai.data.tabular:TablePart",
        "csv": "testifai.data.text_tables:CsvPart",
        "tsv": "testifai.data.text_tables:TsvPart",
        "jsonl": "testifai.data.text_tables:JsonlPart",
        "python": "testifai.data:PythonDataPart",
    },
)


def load(kind: str, path: str | Path | Sequence[str | Path], *, folder: str | Path = ".", **options: Any) -> Data:
    """The data set of that kind at a path; relative paths start at `folder`.

    Args:
        kind: as a spec names it: "npz", "folder", "csv", …
        path: of the file or folder, or of several files
        folder: where relative paths start
        options: those of the kind, as in a spec's [data]
    """
    return wrap(make_part(LOADERS, kind, path, options).load(Path(folder)))


def recognise(path: str | Path) -> str:
    """The name of the reader for a file or folder, in `LOADERS`; a folder at an address is one of images.

    Built-in readers are asked first, then those of other packages.

    Args:
        path: a file or folder, or an address
    """
    found = place(path) if isinstance(path, str) and is_address(path) else Path(path)
    if isinstance(found, RemoteFolder):
        return "folder"
    if not found.exists():
        raise InputError(f"data: {found} does not exist")
    readers: dict[str, type[DataPart]] = {name: LOADERS[name] for name in LOADERS if LOADERS.problem(name) is None}
    for name, reader in readers.items():
        if reader.recognises(found):
            return name
    suffixes = dict.fromkeys(suffix for reader in readers.values() for suffix in reader.suffixes)
    raise InputError(
        f"data: cannot recognise {found}; accepted: files that end in {', '.join(suffixes)}, MNIST IDX (also .gz), or "
        "a folder of images: in class folders, with boxes in COCO's .json, or images/ and labels/ as YOLO has them"
    )


def rows(inputs: Inputs, numbers: NDArray[np.intp]) -> Batch:
    """The inputs of these numbers.

    Args:
        inputs: of a data set
        numbers: which of them

    >>> rows(["good", "bad"], np.array([1]))
    ['bad']
    """
    if isinstance(inputs, list):
        return take(inputs, numbers)
    picked: Batch = inputs[numbers]
    return picked


def wrap(data: Any) -> Data:
    """A data set from whatever a user hands over: (inputs, labels), inputs alone, a path, or a `Data`.

    Inputs may be an array, texts, pairs of texts, a frame of pandas or polars (see `from_frame`), a data set of torch,
    torchvision or Hugging Face, or a `DataLoader` (see `from_dataset`).

    Args:
        data: what was handed over

    >>> wrap((["good", "bad"], [1, 0])).labels.tolist()
    [1, 0]
    """
    if isinstance(data, Data):
        return data
    if isinstance(data, str | Path):
        return load(recognise(data), str(data))
    if isinstance(data, tuple):
        if len(data) != 2:
            raise InputError(f"data: a tuple of {len(data)} is not accepted; (inputs, labels) is")
        inputs, labels = data
        if is_frame(inputs):
            return from_frame(inputs, labels)
        return from_arrays(from_dataset(inputs).inputs if is_dataset(inputs) else inputs, labels)
    if is_frame(data):
        return from_frame(data)
    return from_dataset(data) if is_dataset(data) else from_arrays(data)


class PythonDataPart(DataPart):
    """Whatever `data.wrap` accepts, or a function that makes it."""

    python: str
    """Your data set, or a function that makes it, `package.module:name`."""

    CODE: ClassVar = ("python",)

    def load(self, folder: Path) -> Data:
        made = import_object(self.python, folder=folder, field="data.python")
        if callable(made):
            try:
                made = made()
            except (InputError, KeyboardInterrupt):
                raise
            except BaseException as error:
                reason = " ".join(str(error).split())[:200]
                raise InputError(f"data.python: {self.python!r}() failed: {type(error).__name__}: {reason}") from error
        return wrap(made)
