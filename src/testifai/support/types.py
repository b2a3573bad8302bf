"""Short names for the types that many signatures share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # any dtype
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Record = dict[str, Any]  # names to plain values: what JSON, TOML and run files contain
RecordLike = Mapping[str, Any]  # the same, read only
