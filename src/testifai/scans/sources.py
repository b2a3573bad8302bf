"""What a run was made of: its model and its data, by name and by what tells them from others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testifai.errors import InputError
from testifai.runs import keys
from testifai.scans.spec import parse

MOST_NAMES, MOST_CHARACTERS = 3, 40
HASH = re.compile("[0-9a-f]{12}[0-9a-f-]*")


@dataclass(frozen=True)
class Made:
    """A model or a data set: the files and code that the spec names, and the fingerprint of the run's identity."""

    names: tuple[str, ...]
    fingerprint: str
    unnamed: str = "handed over in Python"  # what is said where there is no name

    def __str__(self) -> str:
        """In short.

        >>> str(Made(("net.onnx",), "04e19832a97320c5b194")), str(Made((), "my model"))
        ('net.onnx (04e19832a973)', 'handed over in Python (my model)')
        """
        rest = len(self.names) - MOST_NAMES
        words = ", ".join(self.names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
        known = self.fingerprint[: 12 if HASH.fullmatch(self.fingerprint) else MOST_CHARACTERS]
        return f"{words or self.unnamed} ({known})"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"named": list(self.names), "fingerprint": self.fingerprint}


def sources(provenance: Mapping[str, Any]) -> dict[str, Made]:
    """What is known of a run's `model` and `data`; what its file does not tell is left out. Nothing is loaded."""
    identity = provenance.get(keys.IDENTITY) or {}
    named = _named(provenance.get(keys.SPEC))
    return {part: Made(fingerprint=str(identity[part]), **named[part]) for part in named if part in identity}


def _named(stored: Any) -> dict[str, dict[str, Any]]:
    """The names of both parts in a stored spec, where there is one that can be read."""
    if stored is None:
        return {"model": {"names": ()}, "data": {"names": ()}}
    try:
        spec = parse(stored)
    except InputError:
        unknown = {"names": (), "unnamed": "of a spec that cannot be read here"}
        return {"model": unknown, "data": unknown}
    return {"model": {"names": tuple(spec.model.named())}, "data": {"names": tuple(spec.data.named())}}
