"""The contract of quality measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from testifai.models import wrap
from testifai.quality import Measure, Reference, Score, resolve
from testifai.support.batches import Batch, take
from testifai.testing.assertions import (
    maker_of,
    require,
    require_described,
    require_flags,
    require_name,
    same,
    unchanged,
)  # fmt: skip
from testifai.testing.perturbations import example_photographs

INPUTS = 60
ROUNDING = 1e-9


def check_measure(
    measure: Any, clean: Batch | None = None, perturb: Callable[[Batch], Batch] | None = None, model: Any = None
) -> None:
    """Raise AssertionError if a quality measure breaks its contract.

    The sample must depend only on the seed and the number of inputs. Scores must be finite, deterministic and change no
    argument, and perturbed inputs must not score better than the clean ones. Inferences of the model must be declared
    and counted.

    Args:
        measure: by name or as an object
        clean: inputs to score; None: images
        perturb: degrades the inputs; None: darkens them
        model: for a measure that uses the model under test

    >>> check_measure("ssim")
    """
    clean = example_photographs(INPUTS, (28, 28)) if clean is None else clean
    perturb = _darker if perturb is None else perturb
    model = None if model is None else wrap(model)
    named = isinstance(measure, str | dict) or (callable(measure) and not isinstance(measure, type))
    make: Callable[[], Any] = (lambda: measure) if named else maker_of(measure, "reference")
    first = resolve(make())
    who = f"quality {require_name(first.name, 'quality')}"
    require_flags(first, who, "higher_is_better", "uses_model")
    require(first.sample >= 2, who, f"its sample is {first.sample!r}; at least 2 are needed")
    for name, share in (("share", first.share), ("clean_share", first.clean_share)):
        require(0 < share <= 1, who, f"{name} is {share!r}; a part of the sample is accepted")
    described = require_described(first.describe(), who)
    require(described == resolve(make()).describe(), who, "two of a kind describe themselves differently")
    reference = _reference(first, clean, model, who)
    chosen = take(clean, reference.rows)
    best, worse = _score(reference, chosen, who), _score(reference, perturb(chosen), who)
    better = best.value >= worse.value - ROUNDING if first.higher_is_better else best.value <= worse.value + ROUNDING
    require(better, who, f"perturbed inputs score {worse.value:g}, better than clean ones with {best.value:g}")
    require(abs(best.value - worse.value) > ROUNDING, who, "cannot tell perturbed inputs from clean ones")
    require(same(_score(reference, perturb(chosen), who), worse), who, "does not repeat itself")
    other = _reference(resolve(make()), clean, model, who)
    require(same(other.rows, reference.rows), who, "two with the same seed look at different inputs")
    require(same(_score(other, perturb(chosen), who), worse), who, "a score depends on those before it")
    require((reference.inferences > 0) == first.uses_model, who, "uses_model and what it hands to the model contradict")


def _reference(measure: Measure, clean: Batch, model: Any, who: str) -> Reference:
    with unchanged(who, "reference", clean):
        made = measure.reference(clean, model, seed=1)
    rows = np.asarray(made.rows)
    require(0 < len(rows) <= measure.sample, who, f"looks at {len(rows)} inputs; its sample is {measure.sample}")
    require(((rows >= 0) & (rows < len(clean))).all(), who, "looks at inputs that do not exist")
    require(len(np.unique(rows)) == len(rows), who, "looks at an input twice")
    turned = take(clean, np.arange(len(clean))[::-1])
    again = measure.reference(turned, model, seed=1)
    require(same(again.rows, made.rows), who, "its sample depends on what the inputs are")
    return made


def _score(reference: Reference, perturbed: Batch, who: str) -> Score:
    with unchanged(who, "score", perturbed):
        score = reference.score(perturbed)
    require(np.isfinite(score.value), who, f"scores {score.value}; finite numbers are needed")
    require(np.isfinite(score.error) and score.error >= 0, who, f"its standard error is {score.error}")
    return score


def _darker(batch: Batch) -> Batch:
    return (np.asarray(batch) * 0.5).astype(np.asarray(batch).dtype)
