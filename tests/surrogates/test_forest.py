import itertools

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from testifai.surrogates import Forest, resolve


def surface(axes: int, trials: int = 200):
    """Counts on all configurations of at most two perturbations, six levels."""
    sigmas = np.array([s for s in itertools.product(range(6), repeat=axes) if sum(map(bool, s)) <= 2])
    rates = np.exp(-0.08 * sigmas.sum(axis=1))
    return sigmas, np.random.default_rng(0).binomial(trials, rates), np.full(len(sigmas), trials)


def test_merged_rows_give_the_predictions_of_the_published_unmerged_training():
    for axes in (2, 3):
        sigmas, passes, trials = surface(axes, trials=60)
        rows = np.repeat(sigmas, trials, axis=0)
        counts = zip(passes, trials, strict=True)
        outcomes = np.concatenate([np.r_[np.ones(p, int), np.zeros(n - p, int)] for p, n in counts])
        published = RandomForestClassifier(
            100, criterion="log_loss", bootstrap=False, max_features=None, random_state=0
        ).fit(rows, outcomes)
        everything = np.array(list(itertools.product(range(6), repeat=axes)))
        ours, variance = Forest(seed=0).fit(sigmas, passes, trials).predict(everything)
        np.testing.assert_allclose(ours, published.predict_proba(everything)[:, 1], atol=1e-9)
        assert variance is None


def test_training_configurations_get_their_own_rate():
    sigmas, passes, trials = surface(3)
    mean, _ = Forest().fit(sigmas, passes, trials).predict(sigmas)
    np.testing.assert_allclose(mean, passes / trials, atol=1e-9)


def test_always_right_and_always_wrong():
    for passes in (0, 10):
        mean, _ = Forest().fit([[0], [1]], [passes] * 2, [10, 10]).predict([[0], [1], [2]])
        assert (mean == passes / 10).all()


def test_resolve():
    assert resolve("none") is None
    assert isinstance(resolve("forest"), Forest)
