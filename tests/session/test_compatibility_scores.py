"""Runs whose oracle gives every trial a score: kept, checked, planned for, stored and asked about."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import testifai as ta
from testifai.cli import app
from testifai.gates import judge
from testifai.oracles import Outcome
from testifai.session.assembly import session_of
from testifai.spec.parsing import Gate

RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(120, 3)).astype(np.float32)
SHIFT = ta.Perturbation("shift", lambda batch, by, rng: batch + np.float32(by), [0.0, 0.1, 0.3, 0.6])
SPACE = ta.Space({"up": SHIFT, "on": SHIFT})


def model(batch):
    return np.tanh(batch @ np.ones((3, 2)))


def closeness(outputs, expected, clean):
    score = np.clip(1 - np.abs(outputs - clean).mean(axis=1), 0, 1)
    return Outcome(score > 0.6, score.astype(np.float32))


closeness.score = "closeness"


def truth():
    """The mean score of every test."""
    clean = model(INPUTS)
    return np.array([
        [closeness(model(INPUTS + np.float32(a) + np.float32(b)), None, clean).value.mean() for b in SHIFT.severities]
        for a in SHIFT.severities
    ])  # fmt: skip


def scan(**options):
    return ta.scan(model, INPUTS, SPACE, **{"oracle": closeness, "population": "data", **options})


@pytest.fixture(scope="module")
def full():
    return scan(strategy="full")


def test_values_are_kept_without_being_asked_for(full):
    assert full.scores == ("closeness",)
    assert "value" in full.outcomes.kept_names()


def test_a_full_run_knows_the_means_exactly(full):
    view = full.scored("closeness")
    assert np.allclose(view.estimate, truth(), atol=1e-6)
    assert np.allclose(view.low, view.high)
    answer = full.query("up >= 2", score="closeness")
    assert answer.robustness == pytest.approx(truth()[2:].mean(), abs=1e-6)
    assert answer.low == answer.high
    assert answer.drop == pytest.approx(answer.robustness - 1, abs=1e-6)
    assert full.query("up >= 2").robustness != answer.robustness
    assert view.scored(None).query("up >= 2") == full.query("up >= 2")
    assert full.scored("closeness") is view
    assert "clean closeness" in repr(view)


def test_everything_a_tomogram_answers_is_answered_of_the_score(full):
    view = full.scored("closeness")
    means = truth()
    order = np.count_nonzero(np.indices(means.shape), axis=0)
    assert view.by_order()[2].robustness == pytest.approx(means[order == 2].mean(), abs=1e-6)
    assert view.by_severity()["up"][3].robustness == pytest.approx(means[3].mean(), abs=1e-6)
    assert view.predict([(1, 2)])[0][0] == pytest.approx(means[1, 2], abs=1e-6)
    assert view.base == pytest.approx(1)
    assert "mean closeness" in view._repr_html_()


def test_a_run_planned_for_a_score_spends_its_budget_and_covers():
    held = []
    for seed in range(4):
        run = scan(budget=16 * 20, score="closeness", seed=seed, strategy="adaptive")
        view = run.scored("closeness")
        assert run.inferences == 16 * 20
        held.append((view.low <= truth() + 1e-6) & (truth() <= view.high + 1e-6))
        assert (view.high - view.low).mean() < (run.high - run.low).mean()
    assert np.mean(held) > 0.9


def test_a_target_is_reached_for_the_score():
    run = scan(target=0.06, score="closeness", strategy="adaptive")
    view = run.scored("closeness")
    assert (view.high - view.low).max() / 2 <= 0.06
    assert run.inferences <= scan(target=0.06, strategy="adaptive").inferences


def test_a_stopping_rule_looks_at_the_score():
    rule = {"use": "interval", "target": 0.1, "batch": 20}
    scored, passed = (
        scan(strategy="full", surrogate="none", stopping=rule, score=score) for score in ("closeness", None)
    )
    assert scored.inferences < passed.inferences
    view = scored.scored("closeness")
    assert ((view.high - view.low) / 2 <= 0.1).all()
    assert ((view.low <= truth()) & (truth() <= view.high)).all()


def test_a_gate_is_about_the_score(full):
    mean = truth()[2:].mean()
    gates = [Gate(query="up >= 2", at_least=mean + by, score="closeness") for by in (-0.01, 0.01)]
    assert [verdict.status for verdict in judge(gates, full)] == ["holds", "fails"]
    assert judge(gates, full)[0].as_dict()["score"] == "closeness"
    with pytest.raises(ta.InputError, match="no 'iou'; accepted: closeness"):
        judge([Gate(query="up >= 2", at_least=0.5, score="iou")], full)
    with pytest.raises(ValueError, match="less than or equal to 1"):
        Gate(query="up >= 2", at_least=1.2, score="closeness")


def test_two_models_differ_in_their_scores(full):
    other = ta.scan(lambda batch: np.tanh(batch @ np.ones((3, 2)) * 0.5), INPUTS, SPACE, oracle=closeness,
                    strategy="full", population="data")  # fmt: skip
    found = ta.compare(full, other, ["up >= 2"], score="closeness")
    expected = (
        other.query("up >= 2", score="closeness").robustness - full.query("up >= 2", score="closeness").robustness
    )
    assert found.regions[0].difference == pytest.approx(expected, abs=1e-6)
    assert found.regions[0].verdict == ("better" if expected > 0 else "worse")
    assert "differences are those of the mean closeness" in found.notes[0]
    assert found.tests[5].rate_b - found.tests[5].rate_a == pytest.approx(found.tests[5].difference)
    with pytest.raises(ta.InputError, match="closeness against pass rates"):
        ta.compare(full.scored("closeness"), other)


def test_a_table_has_the_score_in_columns_of_its_own(full):
    from testifai.present.export import columns

    found = columns(full)
    assert np.allclose(found["closeness"], truth().reshape(-1), atol=1e-6)
    assert np.allclose(found["closeness_low"], found["closeness_high"])
    assert found["passes"].dtype.kind == "i"
    assert np.allclose(columns(full.scored("closeness"))["sum"], 120 * truth().reshape(-1), atol=1e-3)


# -- what is refused ----------------------------------------------------------------------------------------------


def test_a_score_that_the_oracle_does_not_have_is_refused():
    with pytest.raises(ta.InputError, match="'f1' is not a score of the oracle function, which has closeness"):
        session_of(model, INPUTS, SPACE, oracle=closeness, score="f1")
    with pytest.raises(ta.InputError, match="'f1' is not a score of the oracle consistency, which has none"):
        session_of(model, INPUTS, SPACE, oracle="consistency", score="f1")


@pytest.mark.parametrize(("value", "shown"), [(-0.25, "-0.25"), (1.0000002, "1.00000024"), (np.nan, "nan")])
def test_values_that_are_no_scores_are_one_line(value, shown):
    def wrong(outputs, expected, clean):
        values = np.where(np.abs(outputs - clean).max(axis=1) > 0.5, value, 0.5)
        return Outcome(values > 0, values.astype(np.float32))

    wrong.score = "f1"
    with pytest.raises(ta.InputError, match=rf"oracle function: its score 'f1' is {shown} for input \d+ under .*up"):
        ta.scan(model, INPUTS, SPACE, oracle=wrong, strategy="full")


def test_a_score_without_values_is_one_line():
    def silent(outputs, expected, clean):
        return np.ones(len(outputs), bool)

    silent.score = "f1"
    with pytest.raises(ta.InputError, match="oracle function: it has the score 'f1', and gave no values"):
        ta.scan(model, INPUTS, SPACE, oracle=silent, strategy="full")


def test_a_run_without_a_score_says_so():
    run = ta.scan(model, INPUTS, SPACE, oracle={"use": "tolerance", "eps": 0.5}, strategy="full")
    with pytest.raises(ta.InputError, match="this run has no 'f1': its oracle gives trials no score"):
        run.query("up > 1", score="f1")


def test_a_method_called_score_names_none():
    class Judge:
        def judge(self, outputs, expected, clean):
            return Outcome(outputs[:, 0] > 0)

        def score(self, inputs):
            return 1.0

    assert session_of(model, INPUTS, SPACE, oracle=Judge()).oracle.score is None


def test_the_distance_may_be_a_score_of_tolerance():
    run = ta.scan(model, INPUTS, SPACE, oracle={"use": "tolerance", "eps": 0.5, "scale": 2.0}, strategy="full")
    clean, changed = model(INPUTS), model(INPUTS + np.float32(0.6))
    expected = (1 - np.abs(changed - clean).max(axis=1) / 2).mean()
    assert run.query("up == 3 and on == 0", score="closeness").robustness == pytest.approx(expected, abs=1e-6)


# -- stored runs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("scores") / "run.db"
    scan(strategy="adaptive", budget=600, store=path, score="closeness")
    return path


def run(*words):
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.output


def test_a_stored_run_knows_its_score(stored):
    again = ta.open(stored)
    assert again.scores == ("closeness",)
    with pytest.raises(ta.InputError, match="score"):
        scan(strategy="adaptive", budget=600, store=stored)


def test_commands_take_a_score(stored, tmp_path):
    expected = ta.open(stored).query("up > 1", score="closeness")
    found = json.loads(run("query", stored, "up > 1", "--score", "closeness", "--json"))
    assert found["robustness"] == pytest.approx(expected.robustness)
    assert "mean closeness for up > 1" in run("query", stored, "up > 1", "--score", "closeness")
    assert "mean closeness" in run("show", stored, "--score", "closeness")
    assert json.loads(run("show", stored, "--json"))["scores"] == ["closeness"]
    run("export", stored, "-o", tmp_path / "table.csv")
    assert "closeness,closeness_low,closeness_high" in (tmp_path / "table.csv").read_text()
    refused = CliRunner().invoke(app, ["query", str(stored), "up > 1", "--score", "f1"])
    assert refused.exit_code != 0
    assert "this run has no 'f1'" in str(refused.output) + str(refused.exception)


def test_a_report_may_be_about_the_score(stored, tmp_path):
    run("report", stored, "-o", tmp_path / "page.html", "--md", tmp_path / "page.md", "--score", "closeness",
        "--examples", "0")  # fmt: skip
    assert "has a mean closeness of" in (tmp_path / "page.md").read_text()
    assert "mean closeness" in (tmp_path / "page.html").read_text()


def test_the_explorer_offers_both(stored):
    pytest.importorskip("dash")
    from testifai.app.state import Runs, read_address

    runs = Runs([stored])
    assert runs.names == ("run.db", "run.db: mean closeness")
    assert "compare" not in runs.available
    assert read_address("?run=1", runs).run == 1
    expected = ta.open(stored).query("up > 1", score="closeness").robustness
    assert runs.answer(1, "up > 1").robustness == pytest.approx(expected)


def test_a_recorded_grid_keeps_the_scores(full, tmp_path):
    from replay import Grid, replay

    from testifai.present.export import write_grid

    write_grid(full, tmp_path / "grid.npz")
    grid = Grid.read(tmp_path / "grid.npz")
    assert grid.score == "closeness"
    assert np.allclose(grid.means, truth(), atol=1e-6)
    again = replay(grid, "full", surrogate="none")
    assert np.allclose(again.scored("closeness").estimate, truth(), atol=1e-6)
    with pytest.raises(ta.InputError, match="the grid has no 'f1'; accepted: closeness"):
        replay(grid, "adaptive", score="f1")
    with pytest.raises(ta.InputError, match="scores without their name"):
        Grid(grid.axes, grid.inputs, grid.passes, scores=grid.scores)
