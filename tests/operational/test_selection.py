from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from testifai.data import from_arrays
from testifai.errors import InputError
from testifai.operational.base import Frame, Sample
from testifai.operational.label_file import Classes
from testifai.operational.selection import LabelSelection, choose, make_technique, read

RNG = np.random.default_rng(0)
SCORES = RNG.dirichlet(np.ones(3), 300)
TRUTH = RNG.integers(0, 3, 300)
PREDICTED = SCORES.argmax(axis=1)
FAILED = dict(enumerate((PREDICTED != TRUTH).tolist()))
DATA = from_arrays(SCORES)


def model(rows):
    return rows


class TwoRounds:
    """A pilot of ten, then as many more; looks at the pilot's failures to decide where."""

    name = "two"

    def plan(self, frame, tests, rng):
        order = rng.permutation(frame.size)
        failed = yield order[:10]
        rest = order[10:] if failed.sum() % 2 else order[10:][::-1]
        yield rest[: tests - 10]
        return {"round": np.repeat([1, 2], [10, tests - 10])}

    def estimate(self, frame: Frame, sample: Sample):
        assert len(sample.facts["round"]) == len(sample.selected)
        rate = 1 - sample.failed.mean()
        return rate, max(0.0, rate - 0.1), min(1.0, rate + 0.1)


@pytest.fixture(autouse=True)
def _two_rounds(monkeypatch):
    module = types.ModuleType("two_rounds")
    module.TwoRounds = TwoRounds
    monkeypatch.setitem(sys.modules, "two_rounds", module)
    monkeypatch.setitem(sys.modules["testifai.operational"].TECHNIQUES._own, "two", "two_rounds:TwoRounds")


def test_labels_are_not_looked_at():
    chosen = choose(model, DATA, technique="confidence", tests=50)
    labelled = choose(model, from_arrays(SCORES, TRUTH), technique="confidence", tests=50)
    assert np.array_equal(chosen.first, labelled.first)
    assert len(set(chosen.first.tolist())) == 50
    np.testing.assert_allclose(chosen.frame.risk, 1 - SCORES.max(axis=1))
    assert np.array_equal(chosen.frame.predicted, PREDICTED)


def test_who_runs_the_model_changes_nothing():
    plain = choose(model, DATA, technique="confidence", tests=50).save()
    for told in ({"workers": 3}, {"executor": "local"}, {"executor": "local", "workers": 1}):
        assert choose(model, DATA, technique="confidence", tests=50, **told).save() == plain


@pytest.mark.parametrize("technique", ["srs", "css", "confidence", "balanced", "two"])
def test_the_same_estimate_through_files_as_in_one_go(technique, tmp_path):
    from testifai.operational.base import conclude, draw

    chosen = choose(model, DATA, technique=technique, tests=60, seed=3)
    path = tmp_path / "a.selection.npz"
    path.write_bytes(chosen.save())
    stored = read(path)
    assert stored.tag == chosen.tag
    standing = stored.replay(FAILED)
    assert standing.complete
    frame = Frame(300, None if technique == "srs" else 1 - SCORES.max(axis=1), None, PREDICTED)
    failed = np.array(list(FAILED.values()))
    sample = draw(make_technique({"use": technique}), frame, 60, np.random.default_rng(3), lambda batch: failed[batch])
    at_once = conclude(make_technique({"use": technique}), frame, sample)
    through = conclude(stored.technique, stored.frame, standing.sample)
    assert (through.accuracy, through.low, through.high) == (at_once.accuracy, at_once.low, at_once.high)
    assert np.array_equal(through.selected, at_once.selected)


def test_what_is_labelled_without_a_gap_counts():
    chosen = choose(model, DATA, technique="srs", tests=40)
    order = chosen.first.tolist()
    some = {example: FAILED[example] for place, example in enumerate(order) if place != 12}
    standing = chosen.replay(some)
    assert standing.sample.selected.tolist() == order[:12]
    assert (standing.complete, standing.draws, len(standing.batches)) == (False, 40, 1)
    assert chosen.replay({}).sample.selected.tolist() == []


def test_a_further_round_waits_for_the_whole_first():
    chosen = choose(model, DATA, technique="two", tests=30)
    pilot = chosen.first.tolist()
    assert len(pilot) == 10
    nearly = {example: FAILED[example] for example in pilot[:9]}
    assert len(chosen.replay(nearly).batches) == 1
    standing = chosen.replay({example: FAILED[example] for example in pilot})
    assert [len(batch) for batch in standing.batches] == [10, 20]
    assert not standing.complete
    # What the labels were decides what is asked for next.
    flipped = chosen.replay({example: FAILED[example] ^ (example == pilot[0]) for example in pilot})
    assert standing.new_in(1) != flipped.new_in(1)
    assert set(standing.new_in(1)).isdisjoint(pilot)
    whole = chosen.replay(FAILED)
    assert whole.complete
    assert whole.sample.facts["round"].tolist() == [1] * 10 + [2] * 20


def test_draws_with_replacement_ask_for_each_example_once():
    chosen = choose(model, DATA, technique={"use": "srs", "replacement": True}, tests=200)
    standing = chosen.replay({})
    rows = standing.new_in(0)
    assert len(rows) == len(set(rows)) == len(set(chosen.first.tolist())) < 200
    assert chosen.replay({example: FAILED[example] for example in rows}).complete


def test_tags_tell_selections_apart():
    one = choose(model, DATA, technique="srs", tests=40)
    assert one.tag == choose(model, DATA, technique="srs", tests=40).tag
    assert one.tag.isalpha()
    others = [
        choose(model, DATA, technique="srs", tests=41),
        choose(model, DATA, technique="srs", tests=40, seed=1),
        choose(model, DATA, technique={"use": "srs", "replacement": True}, tests=40),
        choose(lambda rows: -rows, DATA, technique="srs", tests=40),
        choose(model, from_arrays(SCORES[:299]), technique="srs", tests=40),
    ]
    assert len({one.tag, *(other.tag for other in others)}) == 6


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tests": 301}, "tests: 301 is more than the 300 examples there are"),
        ({"tests": 0}, "tests: must be a whole number, at least 1, got 0"),
        ({"technique": "blanced"}, "technique: 'blanced' is not known; did you mean 'balanced'"),
        ({"technique": {"use": "srs", "threshold": 1}}, "technique: srs has no option 'threshold'; known: replacement"),
        ({"technique": "dsa"}, "'dsa': measures surprise against training data; name them with --train"),
        ({"classes": ("a", "b")}, "2 names for a model with 3 classes"),
        ({"classes": ("a", "b", "b")}, "a name stands there twice"),
    ],
)
def test_what_cannot_be_chosen(options, problem):
    with pytest.raises(InputError, match=problem):
        choose(model, DATA, **{"technique": "srs", "tests": 40, **options})


def test_what_a_technique_needs_is_what_it_declares(monkeypatch):
    labels = from_arrays(np.zeros((40, 1)), None)
    with pytest.raises(InputError, match="technique 'two': needs a confidence"):
        choose(lambda rows: np.zeros(len(rows), int), labels, technique="two", tests=20)
    monkeypatch.setattr(TwoRounds, "needs", "nothing", raising=False)
    assert choose(lambda rows: np.zeros(len(rows), int), labels, technique="two", tests=20).frame.risk is None
    monkeypatch.setattr(TwoRounds, "needs", "lsa")
    with pytest.raises(InputError, match="technique 'two': measures surprise against training data"):
        choose(model, DATA, technique="two", tests=20)
    monkeypatch.setattr(TwoRounds, "needs", "luck")
    with pytest.raises(InputError, match="technique 'two': needs: must be one of nothing, confidence, features"):
        choose(model, DATA, technique="two", tests=20)


def test_a_model_of_labels_alone_has_no_risk():
    labels = lambda rows: rows.argmax(axis=1)  # noqa: E731
    assert choose(labels, DATA, technique="srs", tests=5).classes == Classes(None, None)
    with pytest.raises(InputError, match="returns labels alone"):
        choose(labels, DATA, technique="confidence", tests=5)


def test_names_come_from_the_user_the_model_or_the_data():
    named = from_arrays(SCORES, TRUTH, ["x", "y", "z"])
    assert choose(model, named, technique="srs", tests=5).classes.names == ("x", "y", "z")
    assert choose(model, named, technique="srs", tests=5, classes=("a", "b", "c")).classes.names == ("a", "b", "c")

    class Named:
        classes, class_values, fingerprint, outputs = 3, np.array([4, 5, 9]), "f", "scores"

        def __call__(self, batch):
            return batch

    assert choose(Named(), DATA, technique="srs", tests=5).classes.names == ("4", "5", "9")


def test_files_that_are_no_selection(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "none.npz")
    for name, content in (("a", b""), ("b", b"not a zip"), ("c", b"PK\x03\x04 cut short")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="is not a file that testifai select made"):
            read(tmp_path / name)
    np.savez(tmp_path / "d.npz", facts=np.array({"a": 1}, dtype=object))  # a pickle inside is not opened
    with pytest.raises(InputError, match="is not a file that testifai select made"):
        read(tmp_path / "d.npz")
    np.savez(tmp_path / "e.npz", facts=np.array('{"format": 99}'))
    with pytest.raises(InputError, match="another version"):
        read(tmp_path / "e.npz")


def test_a_plan_that_cannot_be_repeated_is_noticed():
    chosen = choose(model, DATA, technique="srs", tests=5)
    other = LabelSelection(
        chosen.described,
        5,
        0,
        chosen.frame,
        chosen.classes,
        chosen.confidence,
        chosen.model,
        chosen.data,
        chosen.first[::-1],
    )
    with pytest.raises(InputError, match="draws other examples"):
        other.replay({})


def test_surprise_and_features_take_traces():
    from testifai.data.sample import demo_data, demo_model_path
    from testifai.models.onnx import OnnxModel

    digits = demo_data()
    net = OnnxModel(demo_model_path())
    stream, training = from_arrays(digits.inputs[:200]), from_arrays(digits.inputs[200:])
    seen = []
    chosen = choose(
        net,
        stream,
        technique="dsa",
        tests=20,
        training=training,
        progress=lambda done, total: seen.append((done, total)),
    )
    from testifai.operational.surprise import dsa

    outputs, traces = net.traced(stream.inputs)
    train_outputs, train_traces = net.traced(training.inputs)
    expected = dsa(train_traces, train_outputs.argmax(axis=1), traces, outputs.argmax(axis=1))
    np.testing.assert_allclose(chosen.frame.risk, expected, rtol=1e-3)
    assert seen[-1] == (1000, 1000)
    with pytest.raises(InputError, match="makes no tensor"):
        choose(net, stream, technique="dsa", tests=20, training=training, layer="nothing")
