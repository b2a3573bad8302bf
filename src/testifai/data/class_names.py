"""The user's mapping of labels to outputs of the model: a list of names, or a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from testifai.data.dataset import Data
from testifai.errors import InputError, suggest
from testifai.support.options_base import Words

# The types in a spec; Python callers may also pass tuples and arrays.
ClassNames = dict[str, int | str] | Words
Classes = Sequence[str] | Mapping[str, int | str] | None


def numbered(data: Data, classes: Classes) -> Data:
    """Return the data with labels numbered as the outputs of the model.

    A list names the outputs in their order: classes of the data are found in it by name, and numeric labels get these
    names. A table has the output, or its name, for each class of the data.

    >>> from testifai.data.dataset import from_arrays
    >>> birds = from_arrays(np.zeros((3, 2)), ["owl", "crow", "owl"])
    >>> numbered(birds, ["owl", "gull", "crow"]).labels.tolist(), numbered(birds, {"owl": 4, "crow": 0}).labels.tolist()
    ([0, 2, 0], [4, 0, 4])
    """
    if classes is None:
        return data
    if data.labels is None or data.labels.ndim != 1 or data.labels.dtype.kind not in "iu":
        raise InputError("classes: these data have no class per input to name")
    names = data.classes or tuple(map(str, range(int(data.labels.max()) + 1)))
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
    return _renumbered(data, [_place(name, listed) for name in names], listed)


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


def _place(name: str, listed: Sequence[str]) -> int:
    folded = [one.casefold() for one in listed]
    if name not in listed and name.casefold() not in folded:
        raise InputError(f"classes: the data's class {name!r} is not listed; {suggest(name, listed)}")
    return listed.index(name) if name in listed else folded.index(name.casefold())
