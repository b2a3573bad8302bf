"""Quality scores of a session: which tests get one, what it costs, what a file keeps of it."""

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.quality.assessment import plan
from testifai.runs.store import Store
from testifai.session.assembly import session_of

SHIFT = ta.Perturbation("shift", lambda rows, by, rng: rows + by, [0.0, 0.1, 0.2, 0.4])
PUSH = ta.Perturbation("push", lambda rows, by, rng: rows + by * rng.uniform(2), [0.0, 0.1, 0.3])
TURN = ta.Perturbation("turn", lambda rows, by, rng: rows * by, [1.0, 0.9, 0.8])
ROWS = np.random.default_rng(1).random((300, 2))
LABELS = (ROWS.sum(axis=1) > 1).astype(int)
SPACE = ta.Space({"shift": SHIFT, "push": PUSH, "turn": TURN})


def decide(rows):
    return (rows.sum(axis=1) > 1).astype(int)


def near(clean, perturbed):
    return 1 - np.abs(clean - perturbed).mean(axis=1)


class Counting:
    """A measure that hands half of its sample to the model for every test, as one with the model's features does."""

    name, higher_is_better, sample, uses_model = "counting", False, 40, True
    clean_share = share = 0.5

    def describe(self):
        return {"use": self.name}

    def reference(self, clean, model, *, seed):
        return Halves(clean, model)


class Halves:
    def __init__(self, clean, model):
        self.rows, self.model = np.arange(20, 40), model
        self.model(clean[:20])
        self.inferences = 20

    def score(self, perturbed):
        self.inferences += len(perturbed)
        self.model(perturbed)
        return ta.quality.Score(float(perturbed.mean()), 0.01)


def scan(**options):
    return ta.scan(
        decide, (ROWS, LABELS), SPACE, **{"strategy": "ordered", "quality": {"use": near, "extra": 0}, **options}
    )


def brute(sigma, rows=slice(None)):
    batch = ROWS
    for axis, severity in zip(SPACE.axes, sigma, strict=True):
        batch = axis.perturbation.apply(batch, severity)
    return near(ROWS, batch)[rows].mean()


def test_scores_are_of_the_inputs_a_configuration_shows():
    tomogram = scan(quality={"use": near, "sample": 300, "extra": 0})
    for i in tomogram.quality.measured:
        sigma = SPACE.configuration(int(i))
        assert tomogram.quality.estimate[SPACE.index(sigma)] == pytest.approx(brute(sigma), abs=1e-12)


def test_few_perturbations_are_measured_and_the_others_predicted():
    scores = scan().quality
    orders = [SPACE.order(SPACE.configuration(int(i))) for i in scores.measured]
    assert max(orders) == 2
    assert len(orders) == sum(1 for _ in SPACE.configurations(max_order=2))
    assert not np.isnan(scores.estimate).any()
    high = [sigma for sigma in SPACE.configurations() if SPACE.order(sigma) == 3]
    truth = np.array([brute(sigma) for sigma in high])
    predicted = np.array([scores.estimate[SPACE.index(sigma)] for sigma in high])
    # Better than one number for all of them, although shift and turn make up for each other here.
    assert np.abs(predicted - truth).mean() < np.abs(truth - truth.mean()).mean()


def test_some_tests_of_more_perturbations_are_measured_too():
    few, again, other = (scan(quality={"use": near, "extra": 5}, seed=seed).quality.measured for seed in (0, 0, 1))
    assert len(few) == 24 + 5
    np.testing.assert_array_equal(few, again)
    assert few.tolist() != other.tolist()
    assert len(scan(quality=near).quality.measured) == SPACE.size  # has fewer than the usual number


def test_a_full_scan_measures_every_test_and_orders_says_otherwise():
    assert len(scan(strategy="full").quality.measured) == SPACE.size
    assert len(scan(strategy="full", quality={"use": near, "orders": 1, "extra": 0}).quality.measured) == 1 + 3 + 2 + 2
    assert len(scan(quality={"use": near, "orders": 3}).quality.measured) == SPACE.size


@pytest.mark.parametrize("strategy", ["ordered", "adaptive"])
def test_what_the_model_is_handed_counts_into_the_budget(strategy):
    handed = []

    def counted(rows):
        handed.append(len(rows))
        return decide(rows)

    tomogram = ta.scan(
        counted, (ROWS, LABELS), SPACE, strategy=strategy, quality={"use": Counting(), "extra": 0}, budget=2000
    )
    assert tomogram.quality.inferences == 20 + 20 * len(tomogram.quality.measured)
    assert tomogram.inferences == sum(handed) <= 2000


def test_a_budget_that_the_scores_alone_would_use_up_is_refused():
    with pytest.raises(InputError, match=r"^quality: counting on 24 tests may hand 520 inputs to the model, and the"):
        scan(quality={"use": Counting(), "extra": 0}, budget=520)


def test_a_file_keeps_the_scores(tmp_path):
    made = scan(store=tmp_path / "run.db")
    opened = ta.open(tmp_path / "run.db")
    np.testing.assert_array_equal(made.quality.estimate, opened.quality.estimate)
    np.testing.assert_array_equal(made.quality.high, opened.quality.high)
    assert opened.quality.name == "near"
    assert opened.quality.higher_is_better
    assert opened.inferences == made.inferences


def test_an_interrupted_measuring_goes_on_where_it_was(tmp_path):
    path, session = (
        tmp_path / "run.db",
        session_of(decide, (ROWS, LABELS), SPACE, strategy="ordered", quality={"use": near, "extra": 0}),
    )

    def stop(step):
        if step.scored == (5, 24):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.run(path, stop)
    with Store.open(path) as store:
        assert len(list(store.get_blocks("quality/"))) == 5
    seen = []
    again = session_of(decide, (ROWS, LABELS), SPACE, strategy="ordered", quality={"use": near, "extra": 0}).run(
        path, seen.append
    )
    assert next(step.scored for step in seen if step.scored) == (6, 24)
    np.testing.assert_array_equal(again.quality.estimate, scan().quality.estimate)
    np.testing.assert_array_equal(again.estimate, scan().estimate)


def test_scores_may_be_added_to_a_run_and_another_measure_takes_their_place(tmp_path):
    path = tmp_path / "run.db"
    before = scan(store=path, quality=None)
    assert before.quality is None
    assert ta.open(path).quality is None
    added = scan(store=path)
    np.testing.assert_array_equal(added.estimate, before.estimate)

    def far(clean, perturbed):
        return np.abs(clean - perturbed).max(axis=1)

    far.higher_is_better = False
    scan(store=path, quality=far)
    assert ta.open(path).quality.name.endswith("far")
    assert not ta.open(path).quality.higher_is_better
    np.testing.assert_array_equal(scan(store=path).quality.values, added.quality.values)


def test_what_a_measure_cost_is_remembered_while_another_has_its_place(tmp_path):
    path, costly = tmp_path / "run.db", {"use": Counting(), "extra": 0}
    spent = scan(store=path, quality=costly).quality.inferences
    assert scan(store=path).quality.inferences == 0
    assert scan(store=path, quality=costly).quality.inferences == ta.open(path).quality.inferences == spent > 0


def test_a_space_that_cannot_be_listed_is_refused():
    vast = ta.Space({f"a{number}": SHIFT for number in range(13)})
    with pytest.raises(
        InputError, match=r"quality: it is predicted for every test, of at most 200,000, .* leave quality"
    ):
        ta.scan(decide, (ROWS, LABELS), vast, strategy={"use": "ordered", "max_order": 1}, quality=near)


def test_queries_take_a_limit_on_quality():
    tomogram = scan(strategy="full")
    limit = float(np.median(tomogram.quality.estimate))
    inside = tomogram.quality.estimate >= limit
    answer = tomogram.query(f"quality >= {limit!r}")
    assert answer.tests == inside.sum()
    assert answer.robustness == pytest.approx(tomogram.estimate[inside].mean())
    assert answer.excluded.tests == (~inside).sum()
    assert answer.excluded.robustness == pytest.approx(tomogram.estimate[~inside].mean())
    partly = tomogram.query(f"shift > 1 and quality >= {limit!r}")
    shifted = SPACE.columns()["shift"] > 1
    assert partly.tests == (inside & shifted).sum()
    assert partly.excluded.tests == (~inside & shifted).sum()
    assert tomogram.query("shift > 1").excluded is None
    everything = tomogram.query("quality >= -10")
    assert everything.excluded.tests == 0
    assert np.isnan(everything.excluded.robustness)
    assert everything.as_dict()["excluded"]["robustness"] is None


def test_tests_near_the_limit_are_counted_as_doubtful():
    tomogram = scan(strategy="full")
    scores = tomogram.quality
    limit = float(np.median(scores.estimate))
    straddle = (scores.low < limit) & (scores.high >= limit)
    assert tomogram.query(f"quality >= {limit!r}").excluded.doubtful == straddle.sum() > 0


def test_a_run_without_scores_says_how_to_get_them():
    with pytest.raises(InputError, match="asks for quality, which this run did not measure; add quality"):
        scan(quality=None).query("quality >= 0.5")
    with pytest.raises(InputError, match=r"selects no test .*quality: 0\.\d+ to 1\)"):
        scan().query("quality > 2")


def test_adaptive_goes_for_all_tests_that_a_limit_may_leave_in():
    strategy = {"use": "adaptive", "for_queries": ["shift == 3 and quality >= 0.5"]}
    tomogram = scan(strategy=strategy, budget=1500)
    assert tomogram.query("shift == 3 and quality >= 0.5").tests > 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("kit", "quality: 'kit' is not known"),
        ({"use": "ssim", "predictor": "line"}, "quality: predictor: must be one of smooth, forest, got 'line'"),
        ({"use": "ssim", "orders": 0}, "quality: orders: must be a whole number, at least 1, got 0"),
        ({"use": "ssim", "extra": "few"}, "quality: extra: must be a whole number, at least 0, got 'few'"),
        ({"sample": 3}, "quality: {'sample': 3} has no 'use'"),
        (3, "quality: int is not accepted"),
    ],
)
def test_settings_that_cannot_be(setting, message):
    with pytest.raises(InputError) as error:
        plan(setting)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_scores_are_measured_by_the_executor_one_at_a_time_in_a_process(monkeypatch):
    from testifai.engine.local import LocalExecutor

    asked = []

    def noted(self, job, jobs, *, alone=False):
        asked.append((list(jobs), alone))
        return map(job, asked[-1][0])

    plain = scan(workers=2).quality
    monkeypatch.setattr(LocalExecutor, "map", noted)
    found = scan(workers=2).quality
    assert asked == [(found.measured.tolist(), True)]
    assert found.values.tolist() == plain.values.tolist()
