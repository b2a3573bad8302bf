"""Data sets: arrays, files and folders, read into one record.

A loader is one file and one line in `LOADERS`: its function takes a path and options and returns a `Data`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from testifai.data.arrays import Data, Inputs, from_arrays
from testifai.data.detect import detect
from testifai.data.lazy import LazyInputs
from testifai.errors import InputError, suggest

__all__ = ["LOADERS", "Data", "Inputs", "LazyInputs", "detect", "from_arrays", "load", "wrap"]

LOADERS: dict[str, str] = {
    "npz": "testifai.data.npz:load_npz",
    "idx": "testifai.data.idx:load_idx",
    "cifar": "testifai.data.cifar:load_cifar",
    "folder": "testifai.data.folder:load_folder",
    "csv": "testifai.data.tables:load_csv",
    "tsv": "testifai.data.tables:load_tsv",
    "jsonl": "testifai.data.tables:load_jsonl",
}


def load(kind: str, path: str | Path | Sequence[str | Path], *, folder: str | Path = ".", **options: Any) -> Data:
    """The data set of that kind at a path; relative paths start at `folder`."""
    if kind not in LOADERS:
        raise InputError(f"data: kind {kind!r} is not known; {suggest(kind, LOADERS)}")
    module, function = LOADERS[kind].split(":")
    loader: Callable[..., Data] = getattr(importlib.import_module(module), function)
    accepted = list(inspect.signature(loader).parameters)[1:]
    for option in options:
        if option not in accepted:
            raise InputError(f"data: {kind} has no option {option!r}; {suggest(option, accepted)}")
    if isinstance(options.get("labels"), str | Path):
        options["labels"] = Path(folder, options["labels"])
    if isinstance(path, str | Path):
        return loader(Path(folder, path), **options)
    return loader([Path(folder, one) for one in path], **options)


def wrap(data: Any) -> Data:
    """A data set from whatever a user hands over: (inputs, labels), inputs alone, a path, or a `Data`.

    >>> wrap((["good", "bad"], [1, 0])).labels.tolist()
    [1, 0]
    """
    if isinstance(data, Data):
        return data
    if isinstance(data, str | Path):
        return load(detect(data), data)
    if isinstance(data, tuple):
        if len(data) != 2:
            raise InputError(f"data: a tuple of {len(data)} is not accepted; (inputs, labels) is")
        return from_arrays(*data)
    return from_arrays(data)
