"""How single scores scatter about the mean of their test, relative to passes and failures.

Values in 0..1 of mean m have a variance of at most m (1 - m) (Bhatia and Davis 2000), which passes and failures have.
On the scale of eta a trial then has variance phi / 4, with phi at most 1 and learned from how far trials lie from their
test's mean: as a smooth function of that mean, since scores may be all or nothing near 1 and anything in between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testifai.surrogates.process.inputs import TERMS, Floats
from testifai.surrogates.process.scale import EDGE, inside

NEAR = 0.12  # on the scale of eta: tests whose trials tell most about each other's dispersion
POOLED = 30.0  # trials that all of them together count for, wherever there are few
UNSEEN = 3.0  # trials that scatter as passes and failures do, beside those seen: equal ones need not stay equal
LEAST_LEFT = 0.05
KNOTS = np.linspace(EDGE, np.pi / 2 - EDGE, 60)


@dataclass(frozen=True)
class Dispersion:
    """The relative variance phi of trials, by the mean of their test."""

    values: Floats  # at the knots

    @classmethod
    def most(cls) -> Dispersion:
        """That of passes and failures."""
        return cls(np.ones(len(KNOTS)))

    @classmethod
    def of(cls, eta: Floats, scores: Floats, left: Floats) -> Dispersion:
        """From trials, the eta of each one's test, and the part of its variance that a surface through it leaves."""
        squares = ((scores - np.sin(eta) ** 2) / (np.sin(2 * eta) / 2)) ** 2 / np.maximum(left, LEAST_LEFT)
        pooled = (squares.sum() + UNSEEN) / (len(squares) + UNSEEN)
        # Trials are added up at their knots first: there may be millions.
        at = np.searchsorted((KNOTS[1:] + KNOTS[:-1]) / 2, eta)
        count, total = np.bincount(at, minlength=len(KNOTS)), np.bincount(at, squares, len(KNOTS))
        near = np.exp(-0.5 * ((KNOTS[:, None] - KNOTS) / NEAR) ** 2)
        found = (near @ total + POOLED * pooled + UNSEEN) / (near @ count + POOLED + UNSEEN)
        return cls(np.minimum(found, 1.0))

    def __call__(self, rates: Floats) -> Floats:
        """Of tests with these means."""
        return np.interp(inside(np.arcsin(np.sqrt(np.clip(rates, 0, 1)))), KNOTS, self.values)

    def terms(self, rates: Floats) -> Floats:
        """The dispersion in place of `inputs.hermite`: scores of one input are correlated as their latent values."""
        terms = np.zeros((TERMS, len(rates)))
        terms[0] = np.sqrt(self(rates))
        return terms
