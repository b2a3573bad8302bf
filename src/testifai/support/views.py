"""Views of results, by name: results are in lower layers than the modules that plot and export them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

VIEWS = {
    "answer as a figure": "testifai.present.plots:of_answer",
    "answer in a notebook": "testifai.present.notebook:answer_html",
    "answers by axis in a notebook": "testifai.present.notebook:by_axis_html",
    "answers in a notebook": "testifai.present.notebook:answers_html",
    "benchmark as a figure": "testifai.present.plots:of_benchmark",
    "calibrated perturbation as a figure": "testifai.present.plots:of_calibrated",
    "comparison as a figure": "testifai.present.plots:of_comparison",
    "explanation as a figure": "testifai.present.plots:of_explanation",
    "hunt as a figure": "testifai.present.plots:of_hunt",
    "local robustness as a figure": "testifai.present.plots:of_local",
    "sweep as a figure": "testifai.present.plots:of_sweep",
    "sweep as a picture": "testifai.present.figures.sweeps:draw",
    "tomogram as a data frame": "testifai.present.export:to_pandas",
    "tomogram as a dataset": "testifai.present.export:to_xarray",
    "tomogram as a figure": "testifai.present.plots:of_tomogram",
    "tomogram in a notebook": "testifai.present.notebook:tomogram_html",
}


def view(name: str) -> Callable[..., Any]:
    """Import the function of a view by its name in `VIEWS`."""
    module, _, function = VIEWS[name].partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found
