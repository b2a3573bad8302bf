"""r of DeepEST, the share of draws that go to suspects: a number, or chosen from the first labels ("auto").

A large share finds failures, and lets the few outside the suspects weigh the more: the estimate can be worse than that
of simple random sampling. How much a risk tells is seen in the first labels. `auto` then takes the largest share whose
estimate is expected to be as good as simple random sampling's, or the best there is where none is.

Every draw's chance is known given what came before, labels included, so the estimate stays unbiased: Eq. 6 holds draw
by draw, whatever r was for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.operational.balanced.design import CELLS, cells_of, curves
from testifai.operational.base import Flags, Floats, Indices
from testifai.support.checks import number

Share = float | str

WEIGHTED = 0.8  # as published
AUTO = "auto"
OPENING = 0.5  # the share while nothing is known
FIRST_ROUND = 0.2  # of all labels
FEWEST = 40  # with fewer labels there is nothing to learn from the first
CANDIDATES = np.round(np.arange(0, 0.951, 0.05), 2)


def checked(share: Any) -> Share:
    """A share as somebody told it, if it is one.

    >>> checked("much")
    Traceback (most recent call last):
    testifai.errors.InputError: share: 'much' is not accepted; a number from 0 to below 1 is, or 'auto'
    """
    if isinstance(share, str):
        if share != AUTO:
            raise InputError(f"share: {share!r} is not accepted; a number from 0 to below 1 is, or {AUTO!r}")
        return share
    return number("share", share, least=0, below=1)


def rounds(share: Share, tests: int) -> tuple[float, int]:
    """The share to begin with, and after how many draws it is chosen anew: all of them where it is not."""
    if isinstance(share, str):
        return (OPENING, round(FIRST_ROUND * tests)) if tests >= FEWEST else (WEIGHTED, tests)
    return share, tests


def chosen(risk: Floats, weights: Floats, drawn: Indices, failed: Flags, tests: int) -> float:
    """The share for the draws that are left, from the labels of those made."""
    rates, made, left = _rates(risk, drawn, failed), len(drawn), tests - len(drawn)
    simple = tests * rates.mean() * (1 - rates.mean())
    whole = np.array([left * _spread(rates, weights, share) for share in CANDIDATES.tolist()])
    whole += made * _spread(rates, weights, OPENING)
    good = np.flatnonzero(whole <= simple)
    return float(CANDIDATES[good[-1] if len(good) else int(np.argmin(whole))])


def _rates(risk: Floats, drawn: Indices, failed: Flags) -> Floats:
    """The failure rate of every example: a curve over the ranks of the risks, from the labels so far."""
    cells = np.empty(len(risk), np.int64)
    cells[np.argsort(-risk, kind="stable")] = cells_of(len(risk))
    of = cells[drawn]
    failures = np.bincount(of[failed], minlength=CELLS).astype(float)
    labelled = np.bincount(of, minlength=CELLS).astype(float)
    rates, _ = curves(trusting=False).given(failures[None], labelled[None])
    return np.asarray(rates[0][cells])


def _spread(rates: Floats, weights: Floats, share: float) -> float:
    """The variance of the estimate from one draw made with a share."""
    size, total = len(rates), weights.sum()
    chance = share * weights / total + (1 - share) / size if total > 0 else np.full(size, 1 / size)
    return float((rates / chance).sum() / size**2 - rates.mean() ** 2)
