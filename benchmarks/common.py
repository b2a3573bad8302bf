"""What the benchmarks share: where the data are, and how a figure is printed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FOLDER = Path(os.environ.get("TESTIFAI_DATA", "../shared"))
ROUNDING = 1e-9  # an interval that closed on the truth holds it


def need(*names: str) -> list[Path]:
    """The files, or the end of the benchmark with a line that says what is missing."""
    paths = [FOLDER / name for name in names]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        print(f"skipped: {', '.join(missing)} not found (set TESTIFAI_DATA)")
        sys.exit(0)
    return paths


def report(name: str, value: float, unit: str, limit: float | None = None) -> bool:
    """Print one figure beside what is required of it; whether it was reached."""
    reached = limit is None or value <= limit
    required = "" if limit is None else f"   (required: at most {limit:g} {unit}: {'reached' if reached else 'MISSED'})"
    print(f"{name:58s} {value:10.3f} {unit}{required}")
    return reached


def held(truth: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.bool_]:
    """Which intervals hold the truth."""
    return (np.asarray(low) <= np.add(truth, ROUNDING)) & (truth <= np.add(high, ROUNDING))


def seconds(task: Callable[[], Any], turns: int = 5) -> float:
    """The shortest processor time of some turns: other programs on the machine do not count."""
    times = []
    for _ in range(turns):
        begin = time.process_time()
        task()
        times.append(time.process_time() - begin)
    return min(times)
