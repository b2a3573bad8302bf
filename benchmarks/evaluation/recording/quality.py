"""The quality of all 1,296 tests of the five tasks: quality_TASK.npz, with values and standard errors.

    python -m evaluation.recording.quality OUT DATA [TASK ...]      # within benchmarks

KID for images, by the features of the model under test (its penultimate layer; of the detector the mean of each channel
of its backbone): half of the sample stays clean, the other half is perturbed. BERTScore F1 for questions, by a MiniLM
encoder. The publications' Inception network is not to be had offline. Samples are such that a task takes about five
minutes of one core at most.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from validity import LEVELS, composites

from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS, Task
from evaluation.validity_quality import Quality
from evaluation.validity_subjects import clean_inputs, measure_of, model_under_test, perturbations
from testifai.support.batches import take

SEED = 0
# Inputs of each task's measure.
SAMPLES = {"mnist": 2000, "cifar10": 200, "gtsrb": 200, "driving": 40, "qqp": 60}


def record(out: Path, data: Path, device: str, inputs: int | None = None) -> None:
    """The tables of all tasks, or of so many inputs at most, on the processor whatever the device."""
    setting, missing = Setting(out, data), []
    for task in TASKS:
        try:
            record_task(task, setting, inputs)
        except MissingFileError as error:
            missing.append(f"{task.name}: {error}")
    if missing:
        raise MissingFileError("; ".join(missing))


def record_task(task: Task, setting: Setting, inputs: int | None = None) -> None:
    """One task's table; raises MissingFileError."""
    begin = time.process_time()
    sample = SAMPLES[task.name] if inputs is None else min(inputs, SAMPLES[task.name])
    measure, clean = measure_of(task, setting, sample), clean_inputs(task, setting)
    reference = measure.reference(clean, model_under_test(task, setting) if measure.uses_model else None, seed=SEED)
    values, errors = np.empty((2, *(LEVELS,) * len(task.axes)))
    for sigma, perturbed in composites(perturbations(task), take(clean, reference.rows), reference.rows):
        values[sigma], errors[sigma] = reference.score(perturbed)
    path = setting.grids / f"quality_{task.name}.npz"
    Quality(task, measure.name, min(sample, len(clean)), len(reference.rows), values, errors).write(path)
    print(f"{path.name}: {time.process_time() - begin:.0f} s of processor time; {path.stat().st_size / 1e3:.0f} kB")


def main() -> None:
    out, data, *names = sys.argv[1:]
    for task in TASKS:
        if not names or task.name in names:
            record_task(task, Setting(Path(out), Path(data)))


if __name__ == "__main__":
    main()
