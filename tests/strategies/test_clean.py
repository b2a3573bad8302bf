"""The clean test's share, and bounds of regions that hold a clean test which speaks for itself."""

import numpy as np
import pytest

from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.strategies import Balanced, Progress
from testifai.strategies.adaptive import Adaptive
from testifai.strategies.base import clean_trials, region_of
from testifai.surrogates.process import Process

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, range(4))
SPACE = Space({"a": KEEP, "b": KEEP})


@pytest.mark.parametrize("budget", [2, 3, 99, 1500, 1999, 2001, 20_000, 10**6])
@pytest.mark.parametrize("inputs", [1, 700, 5000])
def test_the_share_is_what_the_guide_says(budget, inputs):
    found = clean_trials(budget, inputs, 10_000)
    assert found == min(inputs, max(1000, budget // 10), budget // 2)


@pytest.mark.parametrize("strategy", [Adaptive(), Balanced()])
@pytest.mark.parametrize(
    ("budget", "expected"), [(None, 5000), (60_000, 5000), (20_000, 2000), (3000, 1000), (100, 50)]
)
def test_strategies_give_the_clean_test_its_share_first(strategy, budget, expected):
    work = strategy.propose(Progress(SPACE, Outcomes(5000), budget=budget))
    assert work.configurations[0] == 0
    assert len(work.places[0]) == expected


def test_a_region_adds_the_half_widths_of_the_clean_test_and_of_the_others():
    process = Process().fit(SPACE.matrix(np.arange(16)), [90 - 3 * i for i in range(16)], [100] * 16)

    def region(chosen, clean):
        return region_of(process, SPACE, np.array(chosen), clean)

    _, low, high = process.region(SPACE.matrix([1, 2, 3]))
    assert region([0, 1, 2, 3], (0.9, 0.94)) == pytest.approx(((3 * low + 0.9) / 4, (3 * high + 0.94) / 4))
    assert region([0, 1, 2, 3], None) == process.region(SPACE.matrix(np.arange(4)))[1:]
    assert region([0], (0.9, 0.94)) == (0.9, 0.94)
    assert region([2], (0.9, 0.94)) == process.region(SPACE.matrix([2]))[1:]
