"""What is measured, what is remembered, and when it is measured again."""

import threading

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.gates import runner
from testifai.gates.runner import GatedRun, cache_key, measure, prepare
from testifai.gates.strategy import GateStrategy
from testifai.gates.verdicts import stored_gates, stored_sharing
from testifai.present.gate_page import page
from testifai.runs.store import Store
from testifai.session.stored_runs import open_run, source
from testifai.spec.parsing import parse

CODE = """
import numpy as np
import testifai as ta

def model(x):
    return (x[:, 0] > LIMIT).astype(int)

def data():
    return np.random.default_rng(SEED).normal(size=(200, 1)), np.arange(200) // 199  # a single class decides nothing

shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.3, 0.6, 0.9])
def moved(clean, perturbed):
    return np.abs(perturbed - clean)[:, 0]

noise = ta.Perturbation("noise", lambda x, by, rng: x + by * rng.normal(())[:, None], [0, 0.4, 0.8])
"""
HALF = [{"query": "shift >= 1", "at_least": 0.5}]


@pytest.fixture
def project(tmp_path):
    """A spec maker for a folder with code of its own; the module's name differs, as Python imports it once."""

    def write(name, *, limit=1.0, seed=0, noise=0.4):
        text = CODE.replace("LIMIT", str(limit)).replace("SEED", str(seed)).replace("[0, 0.4", f"[0, {noise}")
        (tmp_path / f"{name}.py").write_text(text)

    own = "subject_" + tmp_path.name.replace("-", "_")

    def make(gates=HALF, name=own, **scan):
        if not (tmp_path / f"{name}.py").exists():
            write(name)
        axes = {axis: {"python": f"{name}:{axis}"} for axis in ("shift", "noise")}
        subject = {"model": {"python": f"{name}:model", "version": "1"}, "data": {"python": f"{name}:data"}}
        return parse({**subject, "space": axes, "scan": scan, "gate": gates})

    make.write, make.folder, make.cache = write, tmp_path, tmp_path / "cache"
    make.measure = lambda spec, **options: measure(spec, tmp_path, make.cache, name="x", **options)
    return make


def test_nothing_is_measured_twice(project, monkeypatch):
    first = project.measure(project())
    assert first.new == first.tomogram.inferences > 0
    monkeypatch.setattr(runner, "judge", None)
    second = project.measure(project())
    assert (second.new, second.path) == (0, first.path)
    assert second.verdicts == first.verdicts
    assert np.array_equal(second.tomogram.trials, first.tomogram.trials)


def test_verdicts_of_another_rule_are_found_again(project, monkeypatch):
    """And nothing more is measured where they stand."""
    first = project.measure(project())
    monkeypatch.setattr(runner, "RULE", runner.RULE + 1)
    asked = []
    monkeypatch.setattr(runner, "judge", lambda *given: asked.append(given) or list(first.verdicts))
    second = project.measure(project())
    assert asked
    assert second.new == 0


def test_answers_without_an_interval_are_remembered_too(project):
    gates = [{"query": "order == 2", "at_least": 0.5}]
    first, second = (project.measure(project(gates, strategy={"use": "ordered", "max_order": 1})) for _ in range(2))
    assert first.verdicts[0].status == second.verdicts[0].status == "undecided"
    assert np.isnan(second.verdicts[0].answer.low)
    assert (second.new, second.adaptive) == (0, False)


def test_another_requirement_is_answered_from_what_is_known(project):
    spent = project.measure(project([{"query": "shift >= 1", "at_least": 0.7}])).tomogram.inferences
    easier = project.measure(project([{"query": "shift >= 1", "at_least": 0.3}]))
    assert (easier.new, easier.tomogram.inferences) == (0, spent)
    assert easier.verdicts[0].holds


def test_gates_may_ask_for_plausible_inputs(project):
    """Quality is measured first; more inferences then go to the tests that it leaves in."""
    own = "subject_" + project.folder.name.replace("-", "_")
    quality = {"python": f"{own}:moved", "orders": 2}
    gates = [{"query": "shift >= 1 and quality <= 0.35", "at_least": 0.78}]
    found = project.measure(project(gates, quality=quality, budget=1200))
    tomogram, answer = found.tomogram, found.verdicts[0].answer
    chosen = tomogram.query_engine.select(gates[0]["query"])
    assert np.array_equal(np.flatnonzero(chosen), [tomogram.space.id((1, 0))])
    assert answer.tests == 1
    trials = tomogram.trials.reshape(-1)
    assert trials[chosen].min() == 200
    assert trials[~chosen][1:].max() < 60  # but for the clean test, which has its own share
    again = project.measure(project(gates, quality=quality, budget=1200))
    assert (again.new, again.verdicts) == (0, found.verdicts)


def test_another_measure_of_quality_is_measured(project):
    """The outcomes of before are kept; what the old scores, or none, said of the gates is not."""
    own = "subject_" + project.folder.name.replace("-", "_")
    first = project.measure(project(budget=300))
    limited = [{"query": "quality <= 0.35", "at_least": 0.5}]
    second = project.measure(project(limited, quality={"python": f"{own}:moved", "orders": 2}, budget=300))
    assert second.path == first.path
    assert second.new == 0
    assert second.verdicts[0].answer.tests < first.tomogram.space.size
    with pytest.raises(InputError, match="quality"):
        project.measure(project(limited, budget=300))


def test_a_larger_budget_goes_on_where_the_smaller_one_ended(project):
    exact = project.measure(project([{"query": "shift == 1", "at_least": 0.0}], strategy="full"))
    gates = [{"query": "shift == 1", "at_least": exact.tomogram.query("shift == 1").robustness}]
    few = project.measure(project(gates, budget=300))
    assert (few.new, few.verdicts[0].status) == (270, "undecided")  # 15 inputs were shown to the model twice
    more = project.measure(project(gates, budget=1500))
    assert more.path == few.path
    assert 0 < more.new <= 1200
    again = project.measure(project(gates, budget=1500))
    assert (again.new, again.verdicts) == (0, more.verdicts)


@pytest.mark.parametrize("change", [{"limit": 0.9}, {"seed": 1}, {"noise": 0.5}], ids=["model", "data", "perturbation"])
def test_a_change_is_measured_anew(project, change):
    project.write("one_" + project.folder.name.replace("-", "_"))
    project.write("two_" + project.folder.name.replace("-", "_"), **change)
    keys = set()
    for word in ("one_", "two_"):
        found = project.measure(project(name=word + project.folder.name.replace("-", "_")))
        assert found.new > 0
        keys.add(found.path)
    assert len(keys) == 2


def test_code_of_ones_own_perturbations_counts(project, tmp_path):
    """Same name and same table, another function."""
    name = "other_" + tmp_path.name.replace("-", "_")
    first = project()
    (tmp_path / f"{name}.py").write_text(
        CODE.replace("x + by,", "x - by,").replace("LIMIT", "1.0").replace("SEED", "0")
    )
    second = project(name=name)
    both = [prepare(spec, tmp_path) for spec in (first, second)]
    spaces = [session.identity()["space"] for session in both]
    assert spaces[0] == spaces[1]
    assert cache_key(both[0], first) != cache_key(both[1], second)


def test_again_forgets_what_was_measured_once_per_word(project):
    first = project.measure(project())
    fresh = project.measure(project(), again="a", update=True)
    assert (fresh.new, fresh.verdicts) == (first.new, first.verdicts)
    assert project.measure(project(), again="a", update=True).new == 0
    assert project.measure(project()).new == 0
    assert project.measure(project(), again="b", update=True).new == first.new


def test_a_run_cut_short_is_finished_before_anyone_looks(project, monkeypatch):
    whole = project.measure(project())
    with Store.create_or_open(whole.path) as store:
        store.put(ended=None)
    judged = []
    real = runner.judge
    monkeypatch.setattr(runner, "judge", lambda *args: judged.append(args[1].inferences) or real(*args))
    again = project.measure(project())
    assert judged == [whole.tomogram.inferences]
    assert (again.new, again.verdicts) == (0, whole.verdicts)


def test_a_damaged_run_file_is_named_and_can_be_replaced(project):
    path = project.measure(project()).path
    path.write_bytes(b"not a run at all" * 100)
    with pytest.raises(InputError, match=path.name):
        project.measure(project())
    assert project.measure(project(), again="a", update=True).new > 0


def test_two_at_once_measure_once(project):
    spec, found = project(), []
    prepare(spec, project.folder)  # modules are imported once, by one
    threads = [threading.Thread(target=lambda: found.append(project.measure(spec))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(one.new for one in found)[0] == 0
    assert found[0].verdicts == found[1].verdicts


def test_a_cache_that_cannot_be_written_is_one_line(project, monkeypatch):
    def refuse(path):
        raise InputError("run file: cannot write") from PermissionError()

    monkeypatch.setattr(runner, "Lock", refuse)
    with pytest.raises(InputError, match="cannot write"):
        project.measure(project())


def test_only_an_adaptive_spec_with_gates_is_steered_by_them(project):
    assert isinstance(prepare(project(), project.folder).strategy, GateStrategy)
    for spec in (project([]), project(strategy="ordered"), project(strategy="balanced"), project(stopping="window")):
        assert not isinstance(prepare(spec, project.folder).strategy, GateStrategy)


def test_a_gate_that_cannot_be_asked_is_named_before_anything_is_measured(project):
    gates = [{"query": "shift > 1", "at_least": 0.5}, {"query": "shfit > 1", "at_least": 0.5}]
    with pytest.raises(InputError, match=r"^gate 2: .*shfit"):
        project.measure(project(gates))
    with pytest.raises(InputError, match=r"^gate some: inputs: "):
        project.measure(project([{"name": "some", "query": "shift > 1", "at_least": 0.5, "inputs": "label == 7"}]))
    assert not list(project.folder.glob("cache/*.db"))


def test_what_is_lacking_is_guessed_from_the_width(project):
    """Twice as wide as need be: four times the trials, three times as many more."""
    found = project.measure(project([{"query": "shift == 1", "at_least": 0.5}], budget=200))
    (verdict,) = found.verdicts
    answer = verdict.answer
    trials = found.tomogram.trials[1].sum()
    at_least = answer.robustness - (answer.robustness - answer.low) / 2
    near = verdict.__class__(verdict.gate.model_copy(update={"at_least": at_least}), answer, "undecided", "")
    assert found.lacking(near) == (pytest.approx(3 * trials, abs=1), 3 * 200 - trials)
    exactly = verdict.gate.model_copy(update={"at_least": answer.robustness})
    assert found.lacking(verdict.__class__(exactly, answer, "undecided", "")) == (600 - trials, 600 - trials)


@pytest.mark.parametrize(("asked", "sharing", "confidence"), [(None, 2, 0.975), (1, 1, 0.95), (10, 10, 0.995)])
def test_the_confidence_is_shared_among_the_gates(project, asked, sharing, confidence):
    found = project.measure(project(HALF * 2), sharing=asked)
    assert isinstance(found, GatedRun)
    assert (found.sharing, found.confidence) == (sharing, pytest.approx(confidence))


def test_a_gate_about_a_score_is_measured_until_that_decides(project):
    oracle = {"use": "tolerance", "eps": 0.1, "scale": 2.0}  # a class that changes is worth a half
    gates = [{"query": "shift >= 1", "at_least": 0.7, "score": "closeness"}]
    found = project.measure(project(gates, oracle=oracle))
    (verdict,) = found.verdicts
    assert verdict.status == "holds"
    assert verdict.answer.robustness > 0.7
    assert found.new < 12 * 200
    assert project.measure(project(gates, oracle=oracle)).new == 0
    assert "mean closeness of shift >= 1" in page(found, verdict)


def test_a_gate_about_a_score_that_there_is_not_is_refused_before_anything_is_measured(project):
    gates = [{"query": "shift >= 1", "at_least": 0.7, "score": "f1", "name": "mild"}]
    with pytest.raises(InputError, match="gate mild: score: this run has no 'f1'"):
        prepare(project(gates), project.folder)


def test_a_report_is_about_the_gates_as_they_are_now(project):
    """Though nothing is measured again for another name, reason or requirement."""
    stored = open_run(project.measure(project(), sharing=7).path)
    assert (stored_sharing(stored), len(stored_gates(stored))) == (7, 1)
    gates = [{"query": "shift >= 1", "at_least": 0.5, "name": "mild", "because": "hazard H-12"}]
    again = project.measure(project(gates), sharing=7)
    assert again.new == 0
    (gate,) = stored_gates(open_run(again.path))
    assert (gate.name, gate.because) == ("mild", "hazard H-12")


def test_a_cache_from_elsewhere_is_followed_by_the_spec_at_hand(project, monkeypatch, tmp_path):
    run = project.measure(project()).path
    monkeypatch.setenv("TESTIFAI_STATE", str(tmp_path / "another machine"))
    with pytest.raises(InputError, match="was not made on this machine"):
        source(run)
    project.measure(project())
    assert source(run).folder == project.folder
