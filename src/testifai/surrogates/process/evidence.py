"""How well parameters of the prior explain noisy values: the marginal likelihood, its gradient, its maximum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from testifai.surrogates.process.grid import WholeGrid, contracted, contrasts, outer
from testifai.surrogates.process.kernel import CONSTANT, Floats, Ints, Prior, symmetric, unrelated

PARAMETER_TESTS = 400  # tests used for the parameters where the grid has holes
UNEVEN = 8  # largest ratio of variances for which the coefficients of a grid are taken as independent

Objective = Callable[[Floats], tuple[float, Floats]]


def best_parameters(
    prior: Prior, places: Ints, values: Floats, noise: Floats, start: Floats, steps: int, seed: int
) -> Floats:
    """The parameters that explain values of tests best, with the noise's variances or covariance."""
    if not prior.active:
        return start
    variances = noise if noise.ndim == 1 else np.diag(noise)
    whole = len(places) == np.prod(prior.sizes) and variances.max() <= UNEVEN * variances.min()
    used = np.lexsort(places.T[::-1]) if whole else np.random.default_rng(seed).permutation(len(places))
    used = used if whole else used[:PARAMETER_TESTS]
    if not np.array_equal(used, np.arange(len(places))):
        places, values = places[used], values[used]
        noise = noise[used] if noise.ndim == 1 else noise[used][:, used]
    evidence = grid_evidence(prior, values, noise) if whole else dense_evidence(prior, places, values, noise)
    return maximise(prior, evidence, start, steps)


def maximise(prior: Prior, evidence: Objective, start: Floats, steps: int) -> Floats:
    """The parameters of highest evidence times their own density (L-BFGS)."""
    from scipy.optimize import minimize

    def loss(parameters: Floats) -> tuple[float, Floats]:
        value, slope = evidence(parameters)
        own, own_slope = prior.density(parameters)
        return -value - own, -slope - own_slope

    bounds = list(zip(prior.mean - 5 * prior.sd, prior.mean + 5 * prior.sd, strict=True))
    options = {"maxiter": steps, "ftol": 1e-7, "gtol": 1e-3}
    found: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return found


def grid_evidence(prior: Prior, values: Floats, noise: Floats) -> Objective:
    """For values on the complete grid, with the noise's variances or covariance: O(number of tests) each time.

    All terms of the prior have the Kronecker product of the axes' eigenvectors as eigenvectors, so that the values'
    coefficients in that basis are independent. Noise makes them dependent unless it is the same and independent; it
    counts with its mean variance within each set of axes: a composite likelihood, right on average.
    """
    grid = WholeGrid(prior)
    sizes, used = grid.sizes, grid.used
    tensor = values.reshape(sizes)
    own = _by_effect(noise, sizes)

    def evidence(parameters: Floats) -> tuple[float, Floats]:
        known = grid.spectrum(parameters)
        vectors, factors, smooth_part, rough_part = known.vectors, known.factors, known.smooth, known.rough
        variance = smooth_part + rough_part + own
        coefficients = contracted(tensor, vectors)
        solved = coefficients / variance
        value = -0.5 * float(np.log(variance).sum() + (coefficients * solved).sum())

        by_variance = 0.5 * (solved**2 - 1 / variance)
        gradient = np.zeros_like(parameters)
        by_order = np.bincount(used.ravel(), (by_variance * smooth_part).ravel(), prior.orders + 1)
        gradient[prior.smooth] = by_order[1:]
        by_order = np.bincount(used.ravel(), (by_variance * rough_part).ravel(), prior.orders + 1)
        gradient[prior.rough] = by_order[prior.first_rough :][: len(gradient[prior.rough])]
        for at, j in enumerate(prior.active):
            others = outer([f if i != at else np.ones(1) for i, f in enumerate(factors)])
            w_others = np.moveaxis(known.weights, at, 0)[1].ravel() * np.moveaxis(others, at, 0)[0].ravel()
            rows = np.moveaxis(solved, at, 0)[1:].reshape(sizes[at] - 1, -1)
            spread = np.moveaxis(1 / variance, at, 0)[1:].reshape(sizes[at] - 1, -1)
            inner = 0.5 * ((rows * w_others) @ rows.T - np.diag(spread @ w_others))
            by_kernel = known.scales[at] * vectors[at][:, 1:] @ inner @ vectors[at][:, 1:].T
            part = prior.slices[j]
            gradient[part.start : part.stop - 1] = prior.axis_gradient(known.kernels[at], by_kernel)
            gradient[part.stop - 1] = float((by_kernel * known.kernels[at].matrix).sum())
        return value, gradient

    return evidence


def dense_evidence(prior: Prior, places: Ints, values: Floats, noise: Floats) -> Objective:
    """For any configurations, with the noise's variances or covariance: O(n^3) each time."""
    from scipy.linalg import cho_solve, cholesky
    from scipy.linalg.lapack import dpotri

    choices = [np.eye(prior.sizes[j])[places[:, j]] for j in prior.active]
    free = [unrelated(prior.sizes[j])[places[:, j]][:, places[:, j]] for j in prior.active]
    rough_terms = symmetric(free, prior.orders)[prior.first_rough :]

    def evidence(parameters: Floats) -> tuple[float, Floats]:
        smooth, rough = prior.weights(parameters)
        kernels = [prior.axis(parameters, j) for j in prior.active]
        scales = [prior.scale(parameters, j) for j in prior.active]
        factors = [
            scale * kernel.matrix[places[:, j]][:, places[:, j]]
            for scale, kernel, j in zip(scales, kernels, prior.active, strict=True)
        ]
        terms = symmetric(factors, prior.orders)
        covariance = (np.diag(noise) if noise.ndim == 1 else noise) + CONSTANT
        for o in range(1, prior.orders + 1):
            covariance += smooth[o] * terms[o]
        for weight, term in zip(rough[prior.first_rough :], rough_terms, strict=True):
            covariance += weight * term
        factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        solved = cho_solve((factor, True), values, check_finite=False)
        value = -float(np.log(np.diag(factor)).sum()) - 0.5 * float(values @ solved)

        inverse = dpotri(factor, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        by_covariance = 0.5 * (np.outer(solved, solved) - inverse)
        gradient = np.zeros_like(parameters)
        gradient[prior.smooth] = [smooth[o] * np.vdot(by_covariance, terms[o]) for o in range(1, prior.orders + 1)]
        gradient[prior.rough] = [
            weight * np.vdot(by_covariance, term)
            for weight, term in zip(rough[prior.first_rough :], rough_terms, strict=True)
        ]
        for at, j in enumerate(prior.active):
            without = np.ones_like(covariance)  # e_(o-1) of the other axes, from e_o = e_o' + x e_(o-1)'
            slope = smooth[1] * without
            for o in range(2, prior.orders + 1):
                without = terms[o - 1] - factors[at] * without
                slope += smooth[o] * without
            outer = scales[at] * choices[at].T @ (by_covariance * slope) @ choices[at]
            part = prior.slices[j]
            gradient[part.start : part.stop - 1] = prior.axis_gradient(kernels[at], outer)
            gradient[part.stop - 1] = float((outer * kernels[at].matrix).sum())
        return value, gradient

    return evidence


def _by_effect(noise: Floats, sizes: list[int]) -> Floats:
    """The variance of noise in the coefficients of each set of axes, on average over those of the set."""
    if noise.ndim == 1:
        return np.full(sizes, noise.mean())
    turns = [np.column_stack([np.full(n, n**-0.5), contrasts(n)]) for n in sizes]
    tensor = noise.reshape([*sizes, *sizes])
    for turn in turns * 2:
        tensor = np.tensordot(tensor, turn, axes=(0, 0))
    variances = np.diag(tensor.reshape(noise.shape)).reshape(sizes)
    for at, n in enumerate(sizes):
        first, rest = np.split(variances, [1], axis=at)
        variances = np.concatenate([first, np.repeat(rest.mean(axis=at, keepdims=True), n - 1, axis=at)], axis=at)
    return variances
