"""Sweeps: robustness over one continuous level, with a bound (ASAP), and severities placed from it.

With a list of thresholds, `sweep` and `sweep_model` return a `Sweep` for each; they share what was measured.
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
from testifai.sweeps.curve import sweep, sweep_model
from testifai.sweeps.probe import SweepBatch
from testifai.sweeps.result import Sweep, SweepError

__all__ = ["Calibrated", "Sweep", "SweepBatch", "SweepError", "calibrate", "sweep", "sweep_model"]
