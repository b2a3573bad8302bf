"""Auxiliary values: what a model lets one guess about each example before anybody labels it.

One pass of the model over unlabelled data gives predicted classes, confidence and, from a named layer, activation
traces; from these comes the risk that a technique draws by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai import models
from testifai.data import Inputs
from testifai.engine.base import Threads, Workers, default_workers
from testifai.engine.inference import attempt
from testifai.errors import InputError
from testifai.models.outputs import check_outputs
from testifai.operational import surprise as surprise_measures
from testifai.operational.base import COMBINED, CONFIDENCE, FEATURES, LIKELIHOOD, NOTHING, Technique, needs_of
from testifai.oracles import confidence
from testifai.oracles import predicted as decide
from testifai.support.batches import Batch
from testifai.support.threads import one_blas_thread
from testifai.support.types import Floats
from testifai.support.validation import number

Threshold = float | str

QUANTILE = "q"
FEW = 0.01  # of all examples; fewer suspects are worth a word
# What is proposed then: the first that has enough suspects (many examples may share the highest risk).
PROPOSED = ("q0.9", "q0.8", "q0.5")


def checked(threshold: Any) -> Threshold:
    if not isinstance(threshold, str):
        return number("threshold", threshold)
    try:
        level = float(threshold.removeprefix(QUANTILE)) if threshold.startswith(QUANTILE) else 0.0
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise InputError(
            f"threshold: {threshold!r} is not accepted; a number is, or a quantile of the risks such as 'q0.9'"
        )
    return threshold


def limit(threshold: Threshold, risk: Floats) -> float:
    if isinstance(threshold, str):
        return float(np.quantile(risk, float(threshold.removeprefix(QUANTILE))))
    return threshold


def few_suspects(technique: str, risk: Floats, above: float) -> str | None:
    suspects = int(np.count_nonzero(risk > above))
    if suspects >= FEW * len(risk):
        return None
    beyond = "it" if suspects == 0 else "beyond these it"
    better = next((each for each in PROPOSED if np.mean(risk > limit(each, risk)) >= FEW), None)
    advice = f'try threshold = "{better}"' if better else "no threshold would tell the examples apart"
    return (
        f"technique {technique!r}: {suspects} of {len(risk):,} examples have a risk above its threshold {above:.6g}; "
        f"{beyond} behaves as simple random sampling; {advice}"
    )


# The batches never depend on the machine, so neither do the last digits of the scores nor what is selected by them.
BATCH_INPUTS, BATCH_BYTES = 256, 16 << 20


@dataclass(frozen=True, eq=False)
class Observed:
    """A model's view of all examples: classes (N,), confidence (N,) if it gives scores, traces (N, d) if asked for."""

    predicted: NDArray[np.int64]
    confidence: Floats | None = None
    traces: NDArray[np.float32] | None = None
    classes: int | None = None


@dataclass(frozen=True, eq=False)
class _Observing:
    model: models.Model
    inputs: Inputs
    traces: bool
    layer: str | None

    def __call__(self, rows: slice) -> Observed:
        part = self.inputs[rows]
        batch = part if isinstance(part, list) else np.asarray(part)
        said, traced = attempt(self._ask, batch)
        outputs = check_outputs(said, len(batch), self.model.name)
        columns = outputs.shape[1] if outputs.ndim == 2 and outputs.shape[1] > 1 else None
        return Observed(decide(outputs), None if columns is None else confidence(outputs), traced, columns)

    def _ask(self, batch: Batch) -> tuple[Any, Any]:
        return self.model.traced(batch, self.layer) if self.traces else (self.model(batch), None)


def observe(
    model: Any,
    inputs: Inputs,
    *,
    traces: bool = False,
    layer: str | None = None,
    progress: Callable[[int], None] | None = None,
    workers: Workers | None = None,
) -> Observed:
    """Run a model over unlabelled inputs; with `traces`, also keep what `layer` says (default: the features)."""
    model = models.wrap(model)
    if traces and not model.traces_layers:
        raise InputError(f"layer: {model.name} does not show its layers; an ONNX file or a torch module does")
    parts: list[Observed] = []
    done = 0
    # Sums of matrix products depend on the number of threads, and what is selected must not depend on the machine.
    with one_blas_thread():
        size = model.batch_size or BATCH_INPUTS
        if model.batch_size is None and not isinstance(inputs, list):
            row_bytes = int(np.prod(inputs.shape[1:])) * inputs.dtype.itemsize
            size = max(1, min(size, BATCH_BYTES // max(row_bytes, 1)))
        batches = (slice(start, start + size) for start in range(0, len(inputs), size))
        asking = _Observing(model, inputs, traces, layer)
        for part in (workers or Threads(default_workers(model))).map(asking, batches):
            parts.append(part)
            done += len(part.predicted)
            if progress is not None:
                progress(done)
    confidences = [one.confidence for one in parts if one.confidence is not None]
    rows = [one.traces for one in parts if one.traces is not None]
    return Observed(
        np.concatenate([one.predicted for one in parts]),
        np.concatenate(confidences) if confidences else None,
        np.concatenate(rows) if rows else None,
        parts[0].classes,
    )


def risk_of(technique: Technique, observed: Observed, training: Observed | None = None) -> Floats | None:
    """What the technique draws by, higher if a failure is more likely; None if it needs no such value."""
    needs = needs_of(technique)
    if needs in (NOTHING, FEATURES):
        return None
    if needs == CONFIDENCE:
        return np.asarray(1 - _confidence(technique, observed))
    check_training(technique, training)
    assert training is not None
    assert training.traces is not None
    assert observed.traces is not None
    measure = surprise_measures.lsa if needs == LIKELIHOOD else surprise_measures.dsa
    surprise = measure(training.traces, training.predicted, observed.traces, observed.predicted)
    # Surprise without bound counts as the largest that has one: a risk is a number.
    bounded = surprise[np.isfinite(surprise)]
    surprise = np.nan_to_num(surprise, nan=np.nan, posinf=bounded.max(initial=0.0), neginf=bounded.min(initial=0.0))
    return surprise_measures.combined(_confidence(technique, observed), surprise) if needs == COMBINED else surprise


def check_training(technique: Technique, training: object | None) -> None:
    if training is None:
        raise InputError(
            f"technique {technique.name!r}: measures surprise against training data; name them with --train"
        )


def _confidence(technique: Technique, observed: Observed) -> Floats:
    if observed.confidence is None:
        raise InputError(
            f"technique {technique.name!r}: needs a confidence, and the model returns labels alone; "
            "let it return scores (N, classes), or use the technique srs"
        )
    return observed.confidence
