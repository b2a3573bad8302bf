"""DeepEST's published figures (Guerriero et al., ICSE 2021), and the variant that its text words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.operational_subjects import SUBJECTS

# Table II: mean and standard deviation of the failures among 200 tests, 30 repetitions.
FAILURES = {
    "SRS": ((1.90, 1.52), (2.77, 2.06), (37.93, 6.47), (12.60, 3.33), (57.33, 6.53)),
    "CES": ((2.23, 1.57), (2.03, 1.16), (33.77, 3.92), (13.03, 3.49), (55.77, 6.62)),
    "CS": ((44.57, 0.68), (65.13, 0.86), (106.10, 7.26), (85.00, 4.86), (131.17, 7.35)),
    "DSA": ((30.17, 4.03), (37.57, 5.12), (98.33, 4.62), (16.80, 3.02), (78.20, 6.62)),
    "LSA": ((22.43, 3.29), (24.10, 3.74), (38.07, 6.61), (14.77, 3.14), (67.47, 3.68)),
    "C": ((11.93, 3.06), (24.07, 4.15), (70.77, 7.09), (24.90, 4.97), (108.70, 4.45)),
}
# Table III (a) to (e), last columns: the mean squared error of SRS over that of the technique. The other pairs are
# quotients of these.
PRECISION = {
    "SRS": (1.0, 1.0, 1.0, 1.0, 1.0),
    "CES": (0.8929, 2.4766, 1.0522, 0.9106, 0.8323),
    "CS": (0.8127, 0.6344, 0.6312, 0.1381, 0.2998),
    "DSA": (1.3150, 0.8470, 0.2116, 0.2194, 0.2378),
    "LSA": (2.5054, 1.7053, 0.9594, 1.0380, 0.2346),
    "C": (7.8624, 16.8140, 2.8126, 0.5084, 0.6892),
}
REPETITIONS = 30
TESTS = 200


def failures(technique: str, subject: str) -> tuple[float, float]:
    """Mean and standard deviation."""
    return FAILURES[technique][SUBJECTS.index(subject)]


def precision(technique: str, subject: str) -> float:
    """Relative to SRS; above 1 is better than SRS."""
    return PRECISION[technique][SUBJECTS.index(subject)]


def failures_as_worded(
    risk: NDArray[np.float64], above: float, failed: NDArray[np.bool_], repetitions: int
) -> NDArray[np.float64]:
    """Failures found where links are weighted as the text has it: those that begin at a suspicious example.

    Then the weighted draw is proportional to the risk of all examples left, once a suspicious one was drawn.
    """
    found = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        arrivals = rng.exponential(size=len(risk)) / np.maximum(risk, 1e-12)
        hunted, shuffled = iter(np.argsort(arrivals).tolist()), iter(rng.permutation(len(risk)).tolist())
        weighted, active = (rng.random(TESTS) < 0.8).tolist(), False
        taken: set[int] = set()
        for turn in weighted:
            order = hunted if turn and active else shuffled
            chosen = next(each for each in order if each not in taken)
            taken.add(chosen)
            active = active or bool(risk[chosen] > above)
        found.append(failed[list(taken)].sum())
    return np.array(found, float)
