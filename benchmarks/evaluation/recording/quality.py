"""The quality of all 1,296 tests of the five tasks: quality_TASK.npz, with values and standard errors.

    python -m evaluation.recording.quality OUT DATA [TASK ...]      # within benchmarks

KID for images, by the features of the model under test (its penultimate layer; of the detector the mean of each channel
of its backbone) of a half of the sample that stays clean and another that is perturbed. BERTScore F1 for questions, by
a MiniLM encoder. The publications' Inception network and RoBERTa are not to be had offline. A task takes ten minutes of
one core at most.
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
# Half of the images stay clean. There are 80 photographs.
SAMPLES = {"mnist": 2000, "cifar10": 200, "gtsrb": 400, "driving": 80, "qqp": 100}


def record(out: Path, data: Path, device: str, tasks: tuple[Task, ...] = TASKS) -> None:
    """All tasks whose data are there, on the CPU whatever the device."""
    setting = Setting(out, data)
    for task in tasks:
        try:
            record_task(task, setting)
        except MissingFileError as missing:
            print(f"quality_{task.name}: not recorded: {missing} not found", flush=True)


def record_task(task: Task, setting: Setting) -> None:
    """One task's table."""
    begin = time.process_time()
    measure, clean = measure_of(task, setting, SAMPLES[task.name]), clean_inputs(task, setting)
    reference = measure.reference(clean, model_under_test(task, setting) if measure.uses_model else None, seed=SEED)
    values, errors = np.empty((2, *(LEVELS,) * len(task.axes)))
    for sigma, perturbed in composites(perturbations(task), take(clean, reference.rows), reference.rows):
        values[sigma], errors[sigma] = reference.score(perturbed)
    path = setting.grids / f"quality_{task.name}.npz"
    sample = min(measure.sample, len(clean))
    Quality(task, measure.name, sample, len(reference.rows), values, errors).write(path)
    print(f"{path.name}: {time.process_time() - begin:.0f} s of processor time; {path.stat().st_size / 1e3:.0f} kB")


def main() -> None:
    out, data, *names = sys.argv[1:]
    record(Path(out), Path(data), "cpu", tuple(task for task in TASKS if not names or task.name in names))


if __name__ == "__main__":
    main()
