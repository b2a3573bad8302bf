"""What a run is made with."""

from __future__ import annotations

import platform
from importlib import metadata

from testifai.support.version import VERSION

LIBRARIES = ("numpy", "scipy", "scikit-learn", "onnxruntime", "opencv-python-headless")


def environment() -> dict[str, str]:
    """What a run was made with."""
    versions = {"testifai": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return versions
