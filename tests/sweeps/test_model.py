"""`sweep_model`: models, perturbations and data through the same sweep; resuming, oracles, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.sweeps import SweepBatch, SweepError, sweep, sweep_model

N = 1500
ROWS = np.random.default_rng(0).uniform(size=(N, 2))
LABELS = (ROWS[:, 0] > 0.5).astype(int)
NOISE = ta.Perturbation(
    "test_noise", lambda x, sd, rng: x + sd * rng.normal(x.shape[1:]), [0.0, 0.6], levels=(0.0, 0.6)
)  # fmt: skip


def model(batch: Any) -> Any:
    return (batch[:, 0] > 0.5).astype(int)


def accuracy(level: float, seed: int = 0) -> float:
    """The same outcomes without the engine."""
    changed = NOISE.apply_level(ROWS, level, seed=seed, indices=np.arange(N))
    return float((model(changed) == LABELS).mean())


def run(**options: Any) -> Any:
    return sweep_model(model, (ROWS, LABELS), NOISE, **{"population": "data", **options})


def test_exact_mode_is_the_sweep_of_the_accuracy_on_all_inputs() -> None:
    found = run(curvature=128, confidence=None)
    expected = sweep(lambda level: accuracy(level * 0.6), 0, 1)
    assert np.allclose(found.levels, expected.levels * 0.6)
    assert np.allclose(found.accuracies, expected.accuracies)
    assert (found.robustness, found.bound) == (expected.robustness, expected.bound)
    assert found.inferences == N * found.evaluations
    assert found.levels[-1] == 0.6


def test_samples_agree_with_all_inputs_within_the_bound() -> None:
    truth = np.mean([accuracy(0.6 * (k + 0.5) / 500) >= 0.8 for k in range(500)])
    found = run()
    assert abs(found.robustness - truth) <= found.bound + 1 / 500
    assert found.bound <= 0.01
    complete = found.trials == N
    assert [accuracy(level) for level in found.levels[complete]] == pytest.approx(found.accuracies[complete])
    assert (found.lows[complete] == found.highs[complete]).all()
    assert found.inferences == found.trials.sum() < 20 * N


@pytest.mark.parametrize("method", ["uniform", "quad", "random"])
def test_comparators_take_all_inputs(method: str) -> None:
    found = run(method=method, points=30, seed=3)
    assert (found.trials == N).all()
    assert found.confidence is None
    assert np.isnan(found.bound)


def test_batch_size_and_workers_change_nothing() -> None:
    plain = run(seed=2).as_dict()
    assert run(seed=2, batch_size=37).as_dict() == plain
    assert run(seed=2, batch_size=200, workers=3).as_dict() == plain
    assert run(seed=3).as_dict() != plain


@pytest.mark.parametrize("oracle", ["label", "consistency"])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_killed_sweep_continues_without_repeating_an_inference(oracle: str, share: float) -> None:
    whole: list[SweepBatch] = []
    expected = run(oracle=oracle, on_batch=whole.append, batch_size=50)
    kept = whole[: int(share * len(whole))]
    np.random.default_rng(0).shuffle(kept)  # type: ignore[arg-type]
    fresh: list[SweepBatch] = []
    again = run(oracle=oracle, recorded=kept, on_batch=fresh.append, batch_size=64)
    assert again.as_dict() == expected.as_dict()

    def spent(batches: list[SweepBatch]) -> int:
        return sum(len(one.passed) if one.reference is None else len(one.reference) for one in batches)

    assert spent(kept) + spent(fresh) == spent(whole) == expected.inferences


def test_what_the_model_is_asked_is_what_is_counted() -> None:
    asked = []

    def counting(batch: Any) -> Any:
        asked.append(len(batch))
        return model(batch)

    found = sweep_model(counting, (ROWS, LABELS), NOISE, [0.7, 0.8], oracle="consistency")
    assert sum(asked) == found[0].inferences == found[1].inferences


def test_consistency_needs_no_labels_and_starts_at_one() -> None:
    found = sweep_model(model, ROWS, NOISE, oracle="consistency")
    assert found.accuracies[0] == 1.0
    assert found.robustness == pytest.approx(run().robustness, abs=0.02)


def test_levels_may_run_downwards() -> None:
    fade = ta.Perturbation("test_fade", lambda x, factor, rng: x * factor, [1.0, 0.5], levels=(1.0, 0.5))
    found = sweep_model(model, (ROWS, LABELS), fade)
    assert found.span == (1.0, 0.5)
    assert found.levels[0] == 1.0
    assert found.levels[-1] == 0.5
    assert (np.diff(found.levels) < 0).all()
    truth = np.mean([(model(ROWS * (1 - 0.5 * k / 2000)) == LABELS).mean() >= 0.8 for k in range(2000)])
    assert abs(found.robustness - truth) <= found.bound + 1 / 2000


def test_levels_on_both_sides_of_off() -> None:
    shift = ta.Perturbation("test_shift", lambda x, by, rng: x + by, [0.0, 0.4])
    found = sweep_model(model, (ROWS, LABELS), shift, levels=(-0.4, 0.4), confidence=None)
    assert found.accuracies[0] < 0.65
    assert found.accuracies[-1] < 0.65
    assert len(found.crossings) == 2
    assert found.robustness == pytest.approx(0.5, abs=0.05)


def test_whole_levels() -> None:
    seen = set()

    def quantise(x: Any, steps: float, rng: Any) -> Any:
        seen.add(steps)
        return np.floor(x * 10 + steps / 10) / 10

    steps = ta.Perturbation("test_steps", quantise, [0, 40], levels=(0, 40))
    for confidence in (None, 0.95):
        found = sweep_model(model, (ROWS, LABELS), steps, integer=True, confidence=confidence, curvature="auto")
        assert all(level.is_integer() for level in found.levels.tolist())
    assert all(float(level).is_integer() for level in seen)


def test_a_curvature_means_the_same_for_all_units() -> None:
    percent = ta.Perturbation(
        "test_noise", lambda x, sd, rng: x + sd / 100 * rng.normal(x.shape[1:]), [0.0, 60.0], levels=(0.0, 60.0)
    )  # fmt: skip
    found = sweep_model(model, (ROWS, LABELS), percent, curvature=64, confidence=None)
    assert np.allclose(found.levels / 100, run(curvature=64, confidence=None).levels)


def test_built_in_perturbation_by_name_on_images() -> None:
    images = np.random.default_rng(1).integers(0, 256, (300, 8, 8), np.uint8)
    labels = (images.mean((1, 2)) > 127).astype(int)
    found = sweep_model(lambda x: (x.mean((1, 2)) > 127).astype(int), (images, labels), "classic.brightness")
    assert found.name == "classic.brightness"
    assert found.span == (1.0, 0.1)
    assert 0 <= found.robustness < 0.5


def test_a_model_that_fails_midway_leaves_what_was_measured() -> None:
    calls = []

    def failing(batch: Any) -> Any:
        calls.append(len(batch))
        if len(calls) > 10:
            raise RuntimeError("device\nlost")
        return model(batch)

    kept: list[SweepBatch] = []
    with pytest.raises(SweepError, match=r"model: raised RuntimeError: device") as caught:
        sweep_model(failing, (ROWS, LABELS), NOISE, batch_size=64, on_batch=kept.append)
    assert "\n" not in str(caught.value)
    assert sum(len(one.passed) for one in kept) == caught.value.partial[0].inferences > 0
    assert run(recorded=kept).as_dict() == run().as_dict()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confidence": 1.0}, "confidence: must be a number, above 0 and below 1"),
        ({"target": -1}, "target: must be"),
        ({"population": "past"}, "population: must be one of data, future"),
        ({"levels": (0.1, 0.1)}, "levels: give two different numbers"),
        ({"levels": 3}, "levels: give two different numbers"),
        ({"levels": (0.0, 0.5), "integer": True}, "levels: must be whole numbers"),
        ({"threshold": 80}, "threshold: must be a number, at least 0 and at most 1, got 80"),
        ({"seed": -1}, "seed: must be"),
        ({"workers": 0}, "workers: must be"),
        ({"method": "simpson"}, "method: 'simpson' is not known"),
    ],
)
def test_mistakes_are_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        run(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_perturbation_without_levels_says_what_to_do() -> None:
    plain = ta.Perturbation("test_plain", lambda x, by, rng: x + by, [0.0, 1.0])
    with pytest.raises(InputError, match="no continuous level; give levels"):
        sweep_model(model, (ROWS, LABELS), plain)
