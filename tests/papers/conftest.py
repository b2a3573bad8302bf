"""The page of the papers' evaluations lives in `benchmarks`, which is no package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
