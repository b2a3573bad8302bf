"""A surface through values with known errors."""

import numpy as np

from testifai.surrogates.process.kernel import Prior
from testifai.surrogates.process.marginal_likelihood import JITTER, ValueSurface

GRID = np.indices((4, 3)).reshape(2, -1).T
RNG = np.random.default_rng(0)
VALUES, VARIANCES = GRID @ [0.1, 0.2] + RNG.normal(0, 0.01, len(GRID)), RNG.uniform(1e-4, 1e-3, len(GRID))


def test_predictions_are_those_of_the_joint_normal_distribution():
    prior, seen = Prior([range(4), range(3)]), np.arange(len(GRID)) % 3 > 0
    surface = ValueSurface(prior, GRID[seen], VALUES[seen], VARIANCES[seen], prior.mean, steps=5)
    kernel = prior.kernel(surface.parameters, GRID, GRID)
    among = kernel[np.ix_(seen, seen)] + np.diag(VARIANCES[seen] + JITTER)
    gain = np.linalg.solve(among, kernel[np.ix_(seen, ~seen)]).T
    mean, variance = surface.predict(GRID[~seen])
    np.testing.assert_allclose(mean, gain @ VALUES[seen], atol=1e-8)
    expected = np.diag(kernel)[~seen] - np.einsum("ij,ji->i", gain, kernel[np.ix_(seen, ~seen)])
    np.testing.assert_allclose(variance, expected, atol=1e-8)


def test_surprise_is_that_of_predictions_from_the_other_groups():
    prior = Prior([range(4), range(3)])
    surface = ValueSurface(prior, GRID, VALUES, VARIANCES, prior.mean, steps=5)
    covariance = prior.kernel(surface.parameters, GRID, GRID) + np.diag(VARIANCES + JITTER)
    groups, squares = [np.array([5, 7]), np.array([11])], []
    for group in groups:
        rest = np.setdiff1d(np.arange(len(GRID)), group)
        gain = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[np.ix_(rest, group)]).T
        left = covariance[np.ix_(group, group)] - gain @ covariance[np.ix_(rest, group)]
        squares += ((VALUES[group] - gain @ VALUES[rest]) ** 2 / np.diag(left)).tolist()
    np.testing.assert_allclose(surface.surprise(groups), np.mean(squares) ** 0.5, rtol=1e-5)
    assert surface.surprise([]) == 1


def test_more_steps_find_parameters_of_higher_evidence():
    prior = Prior([range(4), range(3)])
    evidence = [ValueSurface(prior, GRID, VALUES, VARIANCES, prior.mean, steps=n).evidence for n in (0, 5, 50)]
    assert evidence[0] < evidence[1] <= evidence[2]
