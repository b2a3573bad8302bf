"""What was skipped and what to install, in one line at the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

MISSING = re.compile(r"could not import '(?P<module>[\w.]+)'|needs (?P<package>[\w.]+)$|no (?P<program>Chromium)")
REMEDIES = {
    ("torch", "triton", "transformers", "tokenizers", "torchmetrics", "sacrebleu", "safetensors", "datasets", "PIL"):
        "PyTorch and text: make test-torch",
    ("Chromium",): "a browser: apt-get install chromium",
    ("mlflow",): "MLflow: pip install mlflow-skinny",
}  # fmt: skip
DATA = "data that are not in the project: set TESTIFAI_DATA"
DEVELOPMENT = "libraries of the development environment: pip install -e '.[dev]'"
HERE = "for other machines or settings"


def summary(reasons: Iterable[str]) -> str:
    """One line for the reasons of all tests that were skipped."""
    counts = Counter(remedy(reason) for reason in reasons)
    return f"skipped {counts.total()}: " + "; ".join(f"{count} {what}" for what, count in counts.most_common())


def remedy(reason: str) -> str:
    """What would have let a test run that was skipped for this reason."""
    found = MISSING.search(reason)
    if found is None:
        return DATA if "TESTIFAI_DATA" in reason else HERE
    library = next(name for name in found.groups() if name).partition(".")[0]
    return next((text for names, text in REMEDIES.items() if library in names), DEVELOPMENT)
