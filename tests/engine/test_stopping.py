import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from testifai.engine.stopping import CumulativeWindow, Interval, Window, by_width_alone, describe, resolve
from testifai.errors import InputError
from testifai.statistics.intervals import confidence_sequence, exact, fixed_width


def algorithm_1(passed: list[bool], b: int, delta: float, w: int) -> int:
    """TestifAI, Algorithm 1, line by line: after how many inputs the test ends."""
    history = [0.0]
    batches = [passed[start : start + b] for start in range(0, len(passed), b)]
    for i, batch in enumerate(batches, start=1):
        history.append(sum(batch) / b)
        if i >= w and max(abs(history[j] - history[j - 1]) for j in range(i - w + 1, i + 1)) < delta:
            return min(i * b, len(passed))
    return len(passed)


def ended(rule, passed: list[bool]) -> int:
    outcomes = np.array(passed, bool)
    for end in range(rule.batch, len(outcomes), rule.batch):
        if rule.stops(outcomes[:end], len(outcomes)):
            return end
    return len(outcomes)


@given(
    st.lists(st.booleans(), min_size=1, max_size=200),
    st.integers(1, 8),
    st.sampled_from([0.01, 0.13, 0.26, 0.6]),
    st.integers(1, 4),
)
def test_window_is_algorithm_1(passed, batch, delta, window):
    assert ended(Window(batch, delta, window), passed) == algorithm_1(passed, batch, delta, window)


def test_earliest_stop_is_batch_w_near_zero_and_w_plus_1_elsewhere():
    assert ended(Window(), [False] * 1000) == 300
    assert ended(Window(), [True] * 1000) == 400


def test_with_the_published_parameters_counts_must_be_equal():
    settled = ([True] * 90 + [False] * 10) * 10
    off_by_one = settled[:300] + [True] * 91 + [False] * 9 + settled[400:]
    assert ended(Window(), settled) == 400
    assert ended(Window(), off_by_one) == 800


def test_cumulative_window_looks_at_the_rate_of_all_inputs_so_far():
    passed = np.array([1, 1, 0, 1, 1, 0, 1, 1], bool)
    rule = CumulativeWindow(batch=2, delta=0.2, window=2)
    # rates 1, 3/4, 4/6, 6/8: differences 1/4, 1/12, 1/12
    assert not rule.stops(passed[:6], 8)
    assert rule.stops(passed, 8)


def test_interval_stops_only_when_narrow():
    for passed in (np.ones(10_000, bool), np.tile([True, False], 5000)):
        for target in (0.05, 0.02):
            looks = range(100, 10_001, 100)
            stopped = next(end for end in looks if Interval(target=target).stops(passed[:end], 10_000))
            low, high = fixed_width(passed[:stopped].sum(), stopped, 10_000)
            before = fixed_width(passed[: stopped - 100].sum(), stopped - 100, 10_000)
            assert (high - low) / 2 <= target
            assert stopped == 100 or (before[1] - before[0]) / 2 > target


def at_the_stop(interval, inputs: int, batch: int, target: float):
    """For 0 to all inputs that pass: how often the interval covers at the stop, and the mean number of trials.

    Sequences that go on to n trials with s passes are counted; each is as probable as any other with as many.
    """
    passing = np.arange(inputs + 1)
    alive, last, covers, trials = np.zeros(1), 0, np.zeros(inputs + 1), np.zeros(inputs + 1)
    for n in [*range(batch, inputs, batch), inputs]:
        ways = np.full(n + 1, -np.inf)
        for more in range(n - last + 1):
            ways[more : more + len(alive)] = np.logaddexp(
                ways[more : more + len(alive)], alive + log_choose(n - last, more)
            )
        s = np.arange(n + 1)
        low, high = interval(s, n, inputs)
        stops = high - low <= 2 * target
        share = np.exp(ways[:, None] + log_choose(inputs - n, passing - s[:, None]) - log_choose(inputs, passing))[
            stops
        ]
        inside = (low[stops, None] <= passing / inputs) & (passing / inputs <= high[stops, None])
        covers += (share * inside).sum(axis=0)
        trials += n * share.sum(axis=0)
        alive, last = np.where(stops, -np.inf, ways), n
    return covers, trials


def log_choose(n, k):
    n, k = np.broadcast_arrays(np.asarray(n, float), np.asarray(k, float))
    possible = (k >= 0) & (k <= n)
    within = np.where(possible, k, 0)
    return np.where(possible, gammaln(n + 1) - gammaln(within + 1) - gammaln(n - within + 1), -np.inf)


@pytest.mark.parametrize(
    ("inputs", "batch", "target"),
    [
        (100, 5, 0.1),
        *(
            pytest.param(*one, marks=pytest.mark.simulation)
            for one in [(120, 1, 0.1), (300, 20, 0.06), (400, 50, 0.04)]
        ),
    ],
)
def test_intervals_cover_at_the_stop_whatever_the_rate_and_need_fewer_trials_than_any_rule_would(inputs, batch, target):
    """All rates, all orders of the inputs: no simulation."""
    covers, trials = at_the_stop(fixed_width, inputs, batch, target)
    assert 0.95 <= covers.min() < 0.98
    careless, _ = at_the_stop(exact, inputs, batch, target)
    assert careless.min() < 0.95
    any_rule, more = at_the_stop(confidence_sequence, inputs, batch, target)
    assert any_rule.min() > 0.99
    assert (trials[inputs // 2], trials[9 * inputs // 10]) < (0.9 * more[inputs // 2], 0.75 * more[9 * inputs // 10])


def test_which_rules_look_at_widths_alone():
    rules = (None, "interval", "window", "window-cumulative", Ten())
    assert [by_width_alone(describe(resolve(rule))) for rule in rules] == [True, True, False, False, False]


def test_resolve_by_name_options_and_object():
    assert resolve(None) is None
    assert resolve("none") is None
    assert resolve("window") == Window()
    assert resolve({"use": "window", "batch": 50}) == Window(batch=50)
    assert resolve("interval", target=0.1) == Interval(target=0.1)
    rule = Window(batch=7)
    assert resolve(rule) is rule
    assert resolve(describe(rule)) == rule


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("windw", "did you mean 'window'"),
        ({"use": "window", "bach": 3}, "did you mean 'batch'"),
        ({"use": "window", "batch": 0}, "batch of window: must be a whole number, at least 1, got 0"),
        ({"use": "interval", "target": -1}, "target of interval: must be a number, above 0"),
        ({"use": "interval", "confidence": 2}, "above 0 and below 1"),
        ({"use": "window", "delta": "x"}, "delta of window: must be a number, above 0, got 'x'"),
        ({"use": "window", "window": 2.5}, "window of window: must be a whole number"),
        ({"use": "interval", "confidence": "high"}, "above 0 and below 1, got 'high'"),
        (3, "expected one of"),
    ],
)
def test_mistakes_are_one_line(rule, words):
    with pytest.raises(InputError, match=words) as caught:
        resolve(rule)
    assert "\n" not in str(caught.value)


class Ten:
    batch = 5

    def stops(self, passed, inputs):
        return [passed.shape[-1] >= 10]


def test_a_rule_from_elsewhere_gets_the_rest():
    rule = resolve(Ten())
    assert (rule.name, rule.batch, rule.describe()) == ("Ten", 5, {"use": "Ten"})
    assert rule.stops(np.ones((1, 10), bool), 20).tolist() == [True]


def test_a_target_is_for_the_rule_that_has_one():
    assert resolve("interval", target=0.3).target == 0.3
    assert resolve({"use": "interval", "target": 0.1}, target=0.3).target == 0.1
    assert resolve("window", target=0.3) == Window()
