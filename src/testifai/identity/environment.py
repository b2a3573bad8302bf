"""Library versions of a run."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata

from testifai.runs import keys
from testifai.support.types import RecordLike
from testifai.support.version import VERSION

LIBRARIES = ("numpy", "scipy", "scikit-learn", "onnxruntime", "opencv-python-headless")


def environment() -> dict[str, str]:
    """Return the versions of Python, the platform and libraries."""
    versions = {"testifai": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    for library in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions[library] = metadata.version(library)
    return versions


def recorded(provenance: RecordLike) -> list[dict[str, str]]:
    """Return the environments of a run, in the order of their use."""
    first = provenance.get(keys.ENVIRONMENT)
    return provenance.get(keys.ENVIRONMENTS) or ([first] if first else [])


def differences(environments: Sequence[Mapping[str, str]]) -> str | None:
    """Return the libraries with several versions in words, or None.

    Platforms are not compared: their names change with every update of a kernel.

    >>> differences([{"numpy": "1.26.4", "python": "3.12.1"}, {"numpy": "2.1.0", "python": "3.12.1"}])
    'numpy 1.26.4 and 2.1.0'
    """
    names = [name for name in dict.fromkeys(name for one in environments for name in one) if name != "platform"]
    seen = {name: list(dict.fromkeys(one.get(name, "none") for one in environments)) for name in names}
    return "; ".join(f"{name} {' and '.join(found)}" for name, found in seen.items() if len(found) > 1) or None
