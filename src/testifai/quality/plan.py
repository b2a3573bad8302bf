"""What `quality = …` asks for: a measure, which tests it scores, and what predicts the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from testifai.quality import resolve
from testifai.quality.base import Measure
from testifai.quality.function import FunctionMeasure
from testifai.quality.scores import PREDICTORS
from testifai.support.batches import Side
from testifai.support.checks import choice, whole
from testifai.support.named import make

# Besides tests of few perturbations some of more are measured, by chance: three together can do what no two of them
# show (benchmarks/validity.py).
EXTRA = 50


@dataclass(frozen=True)
class Plan:
    """A measure, the order up to which tests are measured (None: the usual), how many more, what predicts the rest."""

    measure: Measure
    orders: int | None = None
    extra: int = EXTRA
    predictor: str = PREDICTORS[0]


def plan(setting: Any, *, folder: str | Path = ".", side: Side = "both") -> Plan:
    """What `quality = …` asks for: a measure, or {"use": name, "orders": 3, "extra": 0, "predictor": "forest", …}.

    >>> plan({"use": "ssim", "predictor": "forest"}).measure.name
    'ssim'
    """
    if isinstance(setting, Plan):
        return setting
    options = dict(setting) if isinstance(setting, Mapping) else {"use": setting}
    # These say which tests are measured and what becomes of the others; the rest is the measure's own.
    predictor = choice("quality: predictor", options.pop("predictor", PREDICTORS[0]), PREDICTORS)
    orders = options.pop("orders", None)
    if orders is not None:
        whole("quality: orders", orders, least=1)
    extra = whole("quality: extra", options.pop("extra", EXTRA), least=0)
    use = options.get("use")
    if callable(use) and len(options) > 1:
        measure: Measure = make("quality", {**options, "use": "function"}, {"function": partial(FunctionMeasure, use)})
    else:
        measure = resolve(use if list(options) == ["use"] else options, folder=folder, side=side)
    return Plan(measure, orders, extra, predictor)
