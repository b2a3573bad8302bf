import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from replay import Grid, replay
from scipy.optimize import minimize

import testifai as ta
from testifai.errors import InputError
from testifai.runs.outcomes import Trials
from testifai.surrogates.bayes_net import ALONE, PAIR, BayesNet, Structure, learn
from testifai.surrogates.pairwise import Pairwise

GRID = Path(os.environ.get("TESTIFAI_DATA", "../shared")) / "reference" / "tomography" / "cifar10_resnet56.npz"


def low_orders(axes, levels=3, most=2):
    return np.array([s for s in itertools.product(range(levels), repeat=axes) if np.count_nonzero(s) <= most])


def noisy_and(seed, axes=3, levels=3):
    """A true noisy-AND over all configurations: rates by multiplying its parts."""
    rng = np.random.default_rng(seed)
    clean = rng.uniform(0.9, 1)
    alone = [np.append(1, np.sort(rng.uniform(0.5, 1, levels - 1))[::-1]) for _ in range(axes)]
    pairs = {}
    for pair in itertools.combinations(range(axes), 2):
        table = np.ones((levels, levels))
        table[1:, 1:] = rng.uniform(0.7, 1, (levels - 1, levels - 1))
        pairs[pair] = table
    everything = np.array(list(itertools.product(range(levels), repeat=axes)))
    rates = np.array(
        [
            clean
            * np.prod([alone[j][s[j]] for j in range(axes)])
            * np.prod([t[s[i], s[j]] for (i, j), t in pairs.items()])
            for s in everything
        ]
    )
    return everything, rates


def test_rates_are_those_of_the_network_as_pyagrum_infers_them():
    gum = pytest.importorskip("pyagrum", reason="needs pyAgrum: pip install 'testifai[bayes]'")
    everything, rates = noisy_and(0)
    rng = np.random.default_rng(1)
    chosen = rng.permutation(len(everything))[:20]
    model = BayesNet([range(3)] * 3).fit(everything[chosen], rng.binomial(50, rates[chosen]), [50] * 20)
    graph = model.graph(["a", "b", "c"])
    for row, rate in zip(everything.tolist(), model.predict(everything)[0], strict=True):
        engine = gum.LazyPropagation(graph)
        engine.setEvidence(dict(zip("abc", map(str, row), strict=True)))
        engine.makeInference()
        assert engine.posterior("correct").toarray()[1] == pytest.approx(rate, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_learning_finds_the_maximum_that_another_optimiser_finds(seed):
    everything, rates = noisy_and(seed, axes=2)
    rng = np.random.default_rng(seed)
    trials = rng.integers(5, 60, len(everything))
    won = rng.binomial(trials, rates)
    structure = Structure.over([range(3)] * 2)
    cells = structure.cells(everything)

    def lost(logits):
        theta = 1 / (1 + np.exp(-logits))
        total = 0.0
        # Written out: the clean test, 2 + 2 severities alone, 8 pairs but both off.
        table = {(): [theta[0]], 0: [1, *theta[1:3]], 1: [1, *theta[3:5]], 2: np.append(1, theta[5:13]).reshape(3, 3)}
        for (a, b), s, n in zip(everything, won, trials, strict=True):
            rate = table[()][0] * table[0][a] * table[1][b] * table[2][a][b]
            total -= s * np.log(rate) + (n - s) * np.log1p(-rate)
        for place, value in enumerate(theta):
            survived, failed = PAIR if place >= 5 else ALONE
            total -= survived * np.log(value) + failed * np.log1p(-value)
        return total

    theta = np.clip(learn(structure, cells, won.astype(float), trials.astype(float))[:13], 1e-9, 1 - 1e-9)
    other = minimize(lost, np.full(13, 2.0), method="BFGS")
    found = lost(np.log(theta / (1 - theta)))
    assert found <= other.fun + 1e-4  # which stops at flat places earlier


def test_higher_orders_follow_from_low_ones_where_the_network_is_true():
    errors, flat = [], []
    for seed in range(10):
        everything, rates = noisy_and(seed)
        rows = low_orders(3)
        ids = rows @ [9, 3, 1]
        passes = np.random.default_rng(seed).binomial(20_000, rates[ids])
        high = np.count_nonzero(everything, axis=1) == 3
        mean, _ = BayesNet([range(3)] * 3).fit(rows, passes, [20_000] * len(rows)).predict(everything[high])
        errors.append(np.abs(mean - rates[high]).mean())
        flat.append(np.abs(rates[ids].mean() - rates[high]).mean())
    assert np.mean(errors) < 0.01  # its prior and 20,000 trials leave this
    assert np.mean(errors) < np.mean(flat) / 20


def test_tests_of_any_order_teach():
    """Products of measured rates need the low orders; the network takes what there is."""
    everything, rates = noisy_and(3, axes=4)
    orders = np.count_nonzero(everything, axis=1)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(np.flatnonzero(orders >= 2))[:50]
    passes = rng.binomial(2_000, rates[chosen])
    with pytest.raises(InputError, match="clean test"):
        Pairwise().fit(everything[chosen], passes, [2_000] * 50)
    mean, _ = BayesNet([range(3)] * 4).fit(everything[chosen], passes, [2_000] * 50).predict(everything)
    high = (orders >= 3) & ~np.isin(np.arange(len(rates)), chosen)
    assert np.abs(mean - rates)[high].mean() < 0.05
    assert np.abs(mean - rates)[high].mean() < np.abs(rates[chosen].mean() - rates[high]).mean() / 2


@pytest.mark.parametrize("rough", [0.0, 0.15])
def test_intervals_cover_tests_that_were_not_measured(rough):
    """Also where the model is not true: every log rate is off it by a normal number of its own."""
    hits = []
    for seed in range(12):
        everything, rates = noisy_and(seed, axes=4)
        rng = np.random.default_rng(100 + seed)
        rates = np.minimum(rates * np.exp(rough * rng.normal(size=len(rates)) - rough**2 / 2), 0.999)
        chosen = rng.permutation(len(everything))[:45]
        passes = rng.binomial(1_000, rates[chosen])
        mean, variance = BayesNet([range(3)] * 4).fit(everything[chosen], passes, [1_000] * 45).predict(everything)
        left = ~np.isin(np.arange(len(rates)), chosen)
        hits.append((np.abs(mean - rates) <= 1.96 * np.sqrt(variance))[left].mean())
    # Tests of one run err together: the mean over 12 runs is known to about 0.03.
    assert np.mean(hits) > 0.88


def test_inputs_that_tests_share_make_variances_larger():
    """Every input passes all tests or none: 500 inputs tell no more with 9 tests than with one."""
    rows = low_orders(2)
    inputs = 500
    passed = np.random.default_rng(0).random(inputs) < 0.7
    test, place = np.repeat(np.arange(len(rows)), inputs), np.tile(np.arange(inputs), len(rows))
    single = Trials(test, place, passed[place], inputs)
    counts = [passed.sum()] * len(rows), [inputs] * len(rows)
    _, apart = BayesNet().fit(rows, *counts).predict([[0, 0]])
    _, shared = BayesNet().fit(rows, *counts, single=single).predict([[0, 0]])
    assert shared[0] > apart[0]
    least = passed.mean() * (1 - passed.mean()) / inputs
    assert apart[0] < 0.9 * least < shared[0] < 2 * least


def test_many_severities_are_binned_and_many_axes_refused():
    rows = np.array([[s] for s in range(40)])
    model = BayesNet().fit(rows, 100 - 2 * rows[:, 0], [100] * 40)
    mean, _ = model.predict(rows)
    assert len(set(mean.round(9))) == 8
    assert np.abs(mean - (1 - 0.02 * rows[:, 0])).max() < 0.08
    assert Structure.over([range(6)] * 30).size <= 4_000
    with pytest.raises(InputError, match="'bayes_net' of 100 axes has more than 4,000"):
        Structure.over([range(2)] * 100)


def test_what_was_never_seen_is_interpolated_with_doubt():
    rows = [[0, 0], [1, 0], [3, 0], [4, 0]]
    mean, variance = (
        BayesNet([range(5), range(3)])
        .fit(rows, [990, 900, 700, 600], [1_000] * 4)
        .predict([[1, 0], [2, 0], [3, 0], [0, 2]])
    )
    assert mean[0] > mean[1] > mean[2]
    assert variance[1] > 4 * max(variance[0], variance[2])
    assert np.sqrt(variance[3]) > 0.3  # nothing at all is known of the second axis


def test_all_right_and_all_wrong():
    for passes, low, high in ((100, 0.97, 1.0), (0, 0.0, 0.03)):
        mean, variance = BayesNet().fit(low_orders(2), [passes] * 9, [100] * 9).predict(low_orders(2))
        assert ((mean >= low) & (mean <= high)).all()
        assert ((variance >= 0) & (variance <= 0.25)).all()


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: BayesNet().fit([[0], [1]], [0, 0], [0, 0]), "trials: no test has any"),
        (lambda: BayesNet([range(2)]).fit([[0, 0, 0]], [1], [1]), "features: 3 columns; accepted: 1"),
        (lambda: BayesNet([range(2)] * 2).fit([[0, 1, 0, 1]], [1], [1]), "takes no application orders"),
        (lambda: BayesNet().fit([[0], [1]], [1, 1], [1, 1]).predict([[2]]), "severity 2 on axis 0; accepted: 0, 1"),
        (lambda: BayesNet().fit([[0], [1]], [1, 1], [1, 1]).predict([0, 1]), "features: shape"),
        (lambda: BayesNet().fit([[0], [1]], [1, 1], [1, 1]).graph(["correct"]), "names: correct"),
    ],
)
def test_mistakes_are_told_in_one_line(call, line):
    with pytest.raises(InputError, match=line):
        call()


def test_a_scan_uses_it():
    fade = ta.Perturbation("fade", lambda batch, parameter, rng: batch - parameter, (0.0, 0.1, 0.3))
    inputs = np.linspace(0, 1, 200)
    tomogram = ta.scan(
        lambda batch: (batch > 0.2).astype(int),
        (inputs, np.ones(200, int)),
        ta.Space({"a": fade, "b": fade, "c": fade}),
        strategy="ordered",
        surrogate=BayesNet([(0, 1, 2)] * 3),
    )
    answer = tomogram.query("order == 3")
    assert answer.inferred == 8
    assert answer.low < answer.robustness < answer.high
    # Sums of the fades are 0.3 to 0.9, all on the scale of the threshold.
    truth = np.mean([(inputs - sum(s) > 0.2).mean() for s in itertools.product((0.1, 0.3), repeat=3)])
    assert abs(answer.robustness - truth) < 0.1


@pytest.mark.skipif(not GRID.exists(), reason=f"no recorded grid at {GRID} (set TESTIFAI_DATA)")
def test_on_a_recorded_grid_it_predicts_high_orders_better_than_the_forest():
    grid = Grid.read(GRID).sub({"contrast": 0})
    truth, features = grid.truth.reshape(-1), grid.space.matrix(np.arange(grid.space.size))
    high = np.count_nonzero(features, axis=1) >= 3
    errors = {"forest": [], "bayes_net": []}
    for seed in range(3):
        tomogram = replay(grid, "ordered", surrogate="none", budget=100_000, seed=seed)
        ids = tomogram.measured_ids
        passes, trials = tomogram.outcomes.counts(ids)
        for name, model in (("forest", ta.surrogates.Forest()), ("bayes_net", BayesNet([range(6)] * 3))):
            rates = model.fit(features[ids], passes, trials).predict(features)[0]
            errors[name].append(np.abs(rates - truth)[high].mean())
    assert np.mean(errors["bayes_net"]) < np.mean(errors["forest"]) / 2
