"""A part of the inputs beside the others: against the joint distribution of both, and sizes that follow the trials."""

import numpy as np
import pytest

from testifai.surrogates.process.input_correlation import Independent
from testifai.surrogates.process.kernel import Prior
from testifai.surrogates.process.posterior import DeviatingPart, Deviation, Scatter, SurfacePart

PRIOR = Prior([range(4), range(3)])
PLACES = np.indices((4, 3)).reshape(2, -1).T
HALF = np.full(12, 0.5)  # the sd of a trial


def seen(part: SurfacePart, places, trials, values) -> SurfacePart:
    """The part after so many trials of each test."""
    tests = len(places)
    part.see(Independent(np.arange(tests), trials, tests), HALF[:tests], np.arange(tests))
    part.condition(part.kernel(places, places), 0.0)
    part.learn(values - part.centre(places))
    return part


def test_a_part_beside_the_others_is_the_joint_posterior():
    random = np.random.default_rng(0)
    known, own = PLACES[:9], PLACES[4:]  # tests of the others, and those of the part
    trials = random.integers(5, 50, 9).astype(float), random.integers(2, 20, 8).astype(float)
    values = random.normal(0.8, 0.2, 9), random.normal(0.5, 0.2, 8)
    others = seen(SurfacePart(PRIOR, PRIOR.mean, Scatter()), known, trials[0], values[0])
    part = seen(DeviatingPart([others], known, Scatter(), own), own, trials[1], values[1])
    found = part.centre(PLACES) + part.kernel(PLACES, own) @ part.weights
    left = (
        part.kernel(PLACES, PLACES) - (part.kernel(PLACES, own) @ part.root) @ (part.kernel(PLACES, own) @ part.root).T
    )

    def shared(rows, columns):
        return PRIOR.kernel(PRIOR.mean, rows, columns)

    deviation = Deviation(PRIOR, PRIOR.mean)
    apart = deviation.kernel(part.parameters, own, own)
    both = np.block([[shared(known, known), shared(known, own)], [shared(own, known), shared(own, own) + apart]])
    noise = np.diag(0.25 / np.concatenate(trials))
    across = np.hstack([shared(PLACES, known), shared(PLACES, own) + deviation.kernel(part.parameters, PLACES, own)])
    weights = np.linalg.solve(both + noise, np.concatenate(values))
    prior = shared(PLACES, PLACES) + deviation.kernel(part.parameters, PLACES, PLACES)
    np.testing.assert_allclose(found, across @ weights, atol=1e-8)
    np.testing.assert_allclose(left, prior - across @ np.linalg.solve(both + noise, across.T), atol=1e-8)
    np.testing.assert_allclose(part.own_variance(PLACES), np.diag(part.kernel(PLACES, PLACES)))


@pytest.mark.parametrize("axes", [1, 2])
def test_sizes_are_those_of_what_was_seen(axes):
    prior = Prior([range(4), range(3)][:axes])
    places = PLACES[:, :axes] if axes == 2 else np.arange(4)[:, None]
    deviation = Deviation(prior, prior.mean)
    noise = np.diag(np.full(len(places), 0.25 / 40))
    steps = places[:, 0] - 1.5
    like = np.exp(deviation.typical_sizes(places, np.zeros(len(places)), noise))
    moved = np.exp(deviation.typical_sizes(places, np.full(len(places), 0.4), noise))
    bent = np.exp(deviation.typical_sizes(places, 0.3 * steps, noise))
    assert moved[0] > 5 * like[0]  # the offset
    assert bent[1] > 5 * like[1]  # the first axis
    assert bent[0] < 2 * like[0]


def test_one_effect_leaves_the_other_axis_alone():
    deviation = Deviation(PRIOR, PRIOR.mean)
    noise = np.diag(np.full(12, 0.25 / 40))
    first, second = np.exp(deviation.typical_sizes(PLACES, 0.3 * (PLACES[:, 0] - 1.5), noise))[1:3]
    assert first > 5 * second
