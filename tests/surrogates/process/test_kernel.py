"""The prior covariance of pairs of configurations."""

import numpy as np
import pytest

from testifai.surrogates.process import kernel as module
from testifai.surrogates.process.kernel import Prior


@pytest.mark.parametrize("sizes", [(6,) * 8, (6, 3, 3, 2, 6, 1, 4, 6, 2)])
def test_pairs_of_configurations_of_many_axes_have_the_covariance_of_the_formula(sizes):
    random = np.random.default_rng(0)
    prior = Prior([list(range(size)) for size in sizes])
    parameters = prior.mean + random.normal(size=len(prior.mean)) / 3
    rows, columns = (np.column_stack([random.integers(size, size=n) for size in sizes]) for n in (40, 30))
    smooth, rough = prior.weights(parameters)
    expected = np.full((40, 30), 4.0)
    for weights, table in (
        (smooth, lambda j: module.AxisKernel.of(parameters[prior.slices[j]]).table),
        (rough, lambda j: module.unrelated(sizes[j])),
    ):
        factors = [table(j)[rows[:, j]][:, columns[:, j]] for j in prior.active]
        terms = module.symmetric(factors, prior.orders)
        expected += sum(weight * term for weight, term in zip(weights[1:], terms[1:], strict=True))
    assert np.allclose(prior.kernel(parameters, rows, columns), expected, atol=1e-12)
