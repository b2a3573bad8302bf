from __future__ import annotations

import logging

import numpy as np
import pytest

from testifai.data import from_arrays
from testifai.errors import InputError
from testifai.operational import estimate
from testifai.operational.auxiliary import few_suspects
from testifai.operational.deepest import Confidence, LikelihoodSurprise
from testifai.operational.selection import choose

RISK = np.random.default_rng(0).gamma(0.2, 100, 1000)  # spread so wide that no risk exceeds mean + variance
FAILED = np.random.default_rng(1).random(1000) < RISK / RISK.max()


def test_a_quantile_suspects_that_share_whatever_the_scale():
    for scale in (1e-3, 1.0, 1e6):
        weights = LikelihoodSurprise(threshold="q0.9").weights(RISK * scale)
        assert np.count_nonzero(weights) == 100
        assert weights[weights > 0].min() >= np.sort(RISK * scale)[-100]


def test_a_quantile_finds_failures_where_the_published_rule_suspects_nobody():
    given = {"failed": FAILED, "risk": RISK, "tests": 100}
    adapted = estimate("lsa", **given, threshold="q0.9")
    assert adapted.failures > 3 * estimate("lsa", **given).failures
    assert adapted.low <= 1 - FAILED.mean() <= adapted.high


@pytest.mark.parametrize("threshold", ["q90", "q1", "q0", "q", "0.9", "median", "q-0.1", "qnan", True, [0.9]])
def test_other_spellings_are_refused_in_one_line(threshold):
    with pytest.raises(InputError, match=r"^threshold: ") as caught:
        Confidence(threshold=threshold)
    assert "\n" not in str(caught.value)


def test_few_suspects_are_told_with_a_threshold_that_works(caplog):
    estimate("lsa", failed=FAILED, risk=RISK, tests=100)
    (told,) = caplog.messages
    assert told.startswith("technique 'lsa': 0 of 1,000 examples have a risk above its threshold ")
    assert told.endswith('it behaves as simple random sampling; try threshold = "q0.9"')
    caplog.clear()
    estimate("lsa", failed=FAILED, risk=RISK, tests=100, threshold="q0.9")
    assert not caplog.messages


def test_a_selection_tells_before_anybody_labels(caplog):
    scores = np.random.default_rng(0).dirichlet([1, 1], 300).astype(np.float32)
    with caplog.at_level(logging.WARNING):
        choose(lambda rows: rows, from_arrays(scores), technique={"use": "confidence", "threshold": 0.4999}, tests=40)
    assert 'try threshold = "q0.9"' in caplog.text


@pytest.mark.parametrize(
    ("risk", "above", "words"),
    [
        (np.arange(1000.0), 989.5, None),
        (
            np.arange(1000.0),
            990.5,
            "9 of 1,000 examples have a risk above its threshold 990.5; beyond these it",
        ),
        (np.minimum(np.arange(1000.0), 850), 900, 'try threshold = "q0.8"'),
        (np.ones(1000), 1.0, "no threshold would tell the examples apart"),
    ],
)
def test_when_there_are_few(risk, above, words):
    told = few_suspects("lsa", risk, above)
    assert told is None if words is None else words in told
