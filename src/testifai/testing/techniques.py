"""The contract of operational techniques."""

from __future__ import annotations

from typing import Any

import numpy as np

from testifai.operational.base import Flags, Frame, Indices, Sample, draw
from testifai.testing.assertions import maker_of, require, require_name, same, unchanged

SIZE, TESTS, SEED = 300, 60, 5


def check_technique(technique: Any) -> None:
    """Raise AssertionError if a technique breaks its contract.

    It must request labels of existing examples only, within its budget, use no other labels, select the same examples
    with the same seed, and change no argument. Its interval must contain the estimate and be in 0..1, also for the
    first part of a sample, and be right if every example fails or none does.

    Args:
        technique: a technique, or a function that makes one

    >>> from testifai.operational.random_sampling import SimpleRandom
    >>> check_technique(SimpleRandom())
    """
    make = maker_of(technique, "plan")
    who = f"technique {require_name(make().name, 'technique')}"
    frame, failed = example_frame()
    sample = _draw(make(), frame, failed, who)
    require(same(sample, _draw(make(), frame, failed, who)), who, "chooses other examples with the same seed")
    hidden = failed.copy()
    hidden[np.setdiff1d(np.arange(SIZE), sample.selected)] ^= True
    require(same(sample, _draw(make(), frame, hidden, who)), who, "looks at labels that it did not ask for")
    whole = _estimate(make(), frame, sample, who)
    require(same(whole, _estimate(make(), frame, sample, who)), who, "estimates differently from the same sample")
    _estimate(make(), frame, sample.first(TESTS // 2), who)
    for every in (True, False):
        outcome = np.full(SIZE, every)
        accuracy, low, high = _estimate(make(), frame, _draw(make(), frame, outcome, who), who)
        right = accuracy < 0.1 and low < 0.1 if every else accuracy > 0.9 and high > 0.9
        require(right, who, f"estimates an accuracy of {accuracy:.2f} where {'every' if every else 'no'} example fails")


def example_frame() -> tuple[Frame, Flags]:
    """Return examples, and which of them fail: more often those with a high risk."""
    random = np.random.default_rng(0)
    risk = random.beta(1, 4, SIZE)
    features = np.stack([risk + random.normal(0, 0.1, SIZE), random.normal(size=SIZE)], axis=1)
    return Frame(SIZE, risk, features, random.integers(0, 3, SIZE)), random.uniform(size=SIZE) < risk


def _draw(technique: Any, frame: Frame, failed: Flags, who: str) -> Sample:
    asked: set[int] = set()

    def label(batch: Indices) -> Flags:
        require(((batch >= 0) & (batch < frame.size)).all(), who, f"asks about none of the {frame.size} examples")
        asked.update(batch.tolist())
        return failed[batch]

    with unchanged(who, "plan", frame):
        sample = draw(technique, frame, TESTS, np.random.default_rng(SEED), label)
    require(0 < len(asked) <= TESTS, who, f"asks for {len(asked)} labels of at most {TESTS}")
    for name, values in sample.facts.items():
        count = len(sample.selected)
        require(len(values) == count, who, f"its {name} has {len(values)} facts about {count} draws")
    return sample


def _estimate(technique: Any, frame: Frame, sample: Sample, who: str) -> tuple[float, float, float]:
    with unchanged(who, "estimate", frame, sample):
        accuracy, low, high = technique.estimate(frame, sample)
    require(np.isfinite([accuracy, low, high]).all(), who, f"estimates {accuracy} in [{low}, {high}]")
    require(0 <= low <= high <= 1, who, f"its interval is [{low}, {high}]; one within 0..1 is accepted")
    # An estimator without bias may overshoot what an accuracy can be; its interval may not.
    held = low - 1e-9 <= min(max(accuracy, 0.0), 1.0) <= high + 1e-9
    require(held, who, f"its estimate {accuracy} is outside [{low}, {high}]")
    return accuracy, low, high
