"""Sweeps: robustness over one continuous level, with a bound (ASAP), and severities placed from it.

    sweep(accuracy, low, high, threshold=0.8, curvature=128, points=1024, method="asap",
          *, integer=False, seed=0, repetitions=1, name="") -> Sweep
    sweep_model(model, data, perturbation, threshold=0.8, curvature="auto", points=1024, method="asap",
          *, levels=None, integer=False, confidence=0.95, target=0.01, population="data", oracle="label",
          batch_size=None, seed=0, repetitions=1, workers=None, executor=None, recorded=(), on_batch=None) -> Sweep
    calibrate(model, data, perturbation, drops=(0.01, 0.05, 0.1, 0.2, 0.4), *, …the same…) -> Calibrated

With several thresholds, a list, the first two return a tuple with a `Sweep` for each; they share what was measured.
`Sweep.as_dict()` is plain data for JSON, `Sweep.plot(path)` a picture. Every mistake is an InputError. A curve or model
that fails midway raises `SweepError`, an InputError whose `partial` holds a `Sweep` per threshold of what was measured
(none where nothing was).

To keep a long sweep: `on_batch` is called in the caller's thread with every `SweepBatch` (level or None for clean
inputs, start, passed, reference); all of them handed back as `recorded`, in any order, make the same call continue
where it stopped, without repeating an inference and with the same result. That needs the same model, data, oracle and
seed; thresholds, curvature, points, confidence and population may change: what was measured stays valid.
"""

from __future__ import annotations

from testifai.sweeps.calibrate import Calibrated, calibrate
from testifai.sweeps.curve import sweep
from testifai.sweeps.model import sweep_model
from testifai.sweeps.probe import SweepBatch
from testifai.sweeps.result import Sweep, SweepError

__all__ = ["Calibrated", "Sweep", "SweepBatch", "SweepError", "calibrate", "sweep", "sweep_model"]
