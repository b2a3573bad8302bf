"""The error summary: the published example, real digits, words built from numbers, and bad input."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import testifai as ta
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.locality import Local, adder, compose, from_run, local
from testifai.locality.compose import Setting
from testifai.locality.explain import Composition, explain, export_failures, local_gain, wrong_answers
from testifai.models.onnx import OnnxModel

from .synthetic import Known, confusions, drawn_table, expected_table

SHARED = Path(os.environ.get("TESTIFAI_DATA", "../shared"))


def worked_example(trials=200):
    """5 and 0 under noise and rotation, LR 85, 78, 90 and 88 %; noisy fives are read as 6, all else as anything."""
    outputs = ["0", "5", "1", "2", "3", "4", "6", "7", "8", "9"]
    truth = np.zeros((2, 1, 2, 10))
    for which, rates in enumerate([(0.90, 0.85), (0.88, 0.78)]):
        for place, rate in enumerate(rates):
            truth[which, 0, place] = (1 - rate) / 9
            truth[which, 0, place, place] = rate
    truth[0, 0, 1] = 0
    truth[0, 0, 1, [1, outputs.index("6")]] = 0.85, 0.15
    return Local.from_counts(["0", "5"], ["noise", "rotation"], [[1], [1]], truth * trials, outputs=outputs)


def test_the_published_example_names_class_5_noise_and_the_confusion_with_6():
    found = explain(worked_example(), tuples=[("5", "0")], conditions=["noise"])
    np.testing.assert_allclose(found.local.by_class_and_property().rate, [[0.90, 0.88], [0.85, 0.78]])
    assert found.composed.overall.rate == pytest.approx(0.85 * 0.9, abs=1e-12)
    [trend] = found.trends
    assert (trend.kind, trend.classes, trend.property, trend.answers) == ("confusion", ("5",), "noise", ("6",))
    assert trend.failures == 30
    assert trend.p_value < 1e-6
    assert (found.traces[0].true_class, found.traces[0].answer) == ("5", "6")
    repaired = Local.from_counts(["0", "5"], ["noise"], [[1]], _repaired(), outputs=worked_example().outputs)
    after = compose(repaired, tuples=[("5", "0")])
    assert trend.composed_gain.rate == pytest.approx(after.overall.rate - found.composed.overall.rate, abs=1e-12)
    assert trend.local_gain.rate == pytest.approx(0.15 / 4)
    text = "\n".join(found.lines())
    assert "class 5 under noise at severity 1 is read as 6: 30 of 200 tries (15.0%)" in text
    assert "add class 5 under noise at severity 1 to training, and class 6 under the same" in text


def _repaired():
    """Under noise, with every 5 right."""
    table = worked_example().confusion[:1].copy()
    table[0, 0, 1] = 0
    table[0, 0, 1, 1] = 200
    return table


def test_the_example_is_named_first_without_being_asked_for_it():
    for trials in (100, 200):
        assert [one.classes + one.answers for one in explain(worked_example(trials)).trends] == [("5", "6")]


def test_with_more_trials_rotated_fives_are_seen_to_fail_more_too():
    kinds = [(one.kind, one.classes, one.property) for one in explain(worked_example(2000)).trends]
    assert ("confusion", ("5",), "noise") in kinds
    assert ("class", ("5",), "rotation") in kinds


def test_trends_are_ranked_by_what_fixing_them_gives_the_system():
    truth = np.tile(np.eye(4) * 0.96 + 0.01, (2, 2, 1, 1))
    for which, place, answer, share in ((0, 1, 2, 0.3), (1, 0, 3, 0.15), (1, 3, 2, 0.5)):
        truth[which, :, place, [place, answer]] += np.array([[-share], [share]])
    found = explain(expected_table(truth, 200))
    assert [(one.property, one.classes[0], one.answers[0]) for one in found.trends] == [
        ("p1", "3", "2"), ("p0", "1", "2"), ("p1", "0", "3"),
    ]  # fmt: skip
    gains = [one.gain.rate for one in found.trends]
    assert gains == sorted(gains, reverse=True)
    for one in found.trends:
        assert 0 < one.gain.low <= one.gain.rate <= one.gain.high
        assert one.local_gain.low <= one.local_gain.rate <= one.local_gain.high
        assert 0 < one.share < 1


def test_parts_are_told_apart_where_they_are_not_alike():
    local = expected_table(confusions(1), 100)
    same = explain(local)
    assert {one.part for one in same.traces} == {None}
    other = explain(local, lambda a, b: a - b)
    assert {one.part for one in other.traces} == {1, 2}
    assert sum(one.share for one in other.traces) >= 1
    shares = [one.share for one in other.traces]
    assert shares == sorted(shares, reverse=True)


def test_classes_with_names_are_explained_without_a_system_or_with_their_own():
    table = [[[[80, 10, 10], [2, 60, 38], [10, 10, 80]]]]
    local = Local.from_counts(["cat", "dog", "fox"], ["fog"], [[1]], table)
    found = explain(local)
    assert found.composed is None
    assert found.trends[0].gain is found.trends[0].local_gain
    assert found.trends[0].share == pytest.approx(38 / 80)
    assert sum(one.share for one in found.traces) == pytest.approx(1)
    herd = explain(local, lambda a, b: frozenset((a, b)))
    assert herd.trends[0].composed_gain.rate > herd.trends[0].local_gain.rate


def test_the_advice_names_the_perturbation_and_its_parameters():
    truth = np.tile(np.eye(3) * 0.97 + 0.01, (1, 3, 1, 1))
    truth[0, 1:, 1, [1, 2]] += np.array([[-0.4], [0.4]])
    local = expected_table(truth, 100)
    noise = {"p0": ("classic.gaussian_noise", [0, 1, 2, 3])}
    [trend] = explain(local, properties=noise).trends
    assert trend.severities == (2, 3)
    assert "from severity 2 is read as 2" in trend.text
    assert "p0 at severities 2 to 3 (classic.gaussian_noise, parameter 0.2 to 0.3)" in trend.advice


def test_without_a_trend_it_says_so():
    truth = np.tile(np.eye(4) * 0.6 + 0.1, (1, 2, 1, 1))
    found = explain(expected_table(truth, 50))
    assert found.trends == ()
    assert any(line.startswith("no trend: none of") for line in found.lines())
    assert found.rest[0].share == 1
    perfect = explain(expected_table(np.tile(np.eye(4), (1, 2, 1, 1)), 50))
    assert "no failure at all" in perfect.lines()
    assert perfect.traces == ()


def test_everything_is_plain_data():
    found = explain(worked_example())
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert told["trends"][0]["answers"] == ["6"]
    assert told["trends"][0]["composed_gain"]["rate"] == found.trends[0].composed_gain.rate
    np.testing.assert_allclose(told["rates"]["rate"], [[0.9, 0.88], [0.85, 0.78]])


def test_a_stored_run_and_a_scan_are_explained_as_well(tmp_path):
    truth = np.tile(np.eye(3) * 0.94 + 0.02, (2, 2, 1, 1))
    truth[1, 1, 0, [0, 1]] += [-0.6, 0.6]
    model = Known(truth)
    data, space = model.data(80), ta.Space(model.properties())
    direct = explain(local(model, data, space, per_class=80, store=tmp_path / "run.db"))
    assert [(one.classes, one.property, one.severities, one.answers) for one in direct.trends] == [
        (("0",), "p1", (2,), ("1",))
    ]
    ta.scan(model, data, space, strategy="full", store=tmp_path / "scan.db", keep=["predicted"])
    for path in ("run.db", "scan.db"):
        assert explain(from_run(tmp_path / path)).as_dict()["trends"] == direct.as_dict()["trends"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha: must be a number, above 0 and below 1"),
        ({"arity": 0}, "arity: must be a whole number"),
        ({"arity": 1, "tuples": [("5",)]}, "these are of a composed system"),
        ({"conditions": ["fog"]}, "'fog' is not a property"),
        ({"combine": lambda a: a}, "combine: raised TypeError"),
        ({"properties": {"noise": "classic.gaussian_noise"}}, "properties: 'rotation' with severities 1"),
    ],
)
def test_mistakes_are_one_line(options, message):
    with pytest.raises(InputError, match=message) as caught:
        explain(worked_example(), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(
    not (SHARED / "models/mnist_lenet5.onnx").is_file(), reason="no models and data (set TESTIFAI_DATA)"
)
def test_digits_in_noise_look_like_eights_to_lenet():
    from testifai.data import load
    from testifai.models.onnx import OnnxModel

    model, data = OnnxModel(SHARED / "models/mnist_lenet5.onnx"), load("npz", SHARED / "data/mnist_test.npz")
    properties = {"noise": ("classic.gaussian_noise", [0, 3, 5]), "rotation": ("classic.rotation", [0, 4])}
    found = explain(local(model, data, properties, per_class=60), properties=properties)
    first = found.trends[0]
    assert (first.kind, first.property, first.answers) == ("sink", "noise", ("8",))
    assert first.classes[0] == "1"


def some_mask(local, seed, share=0.3):
    chosen = np.random.default_rng(seed).random((*local.rate.shape, len(local.outputs))) < share
    return chosen & wrong_answers(local)


def fixed(local, mask):
    """The table with these answers made right."""
    moved = np.where(np.moveaxis(mask, 0, 2), local.confusion, 0.0)
    table = local.confusion - moved
    places = np.arange(len(local.classes))
    table[..., places, places] += moved.sum(axis=-1)
    return replace(local, confusion=table)


@pytest.mark.parametrize("seed", range(4))
def test_the_local_gain_is_that_of_the_fixed_table(seed):
    weights = np.random.default_rng(seed).random(3)
    local = replace(expected_table(confusions(seed, outputs=4), 100), weights=weights / weights.sum())
    mask = some_mask(local, seed)
    wanted = fixed(local, mask).overall().rate - local.overall().rate
    assert local_gain(local, mask).rate == pytest.approx(wanted, abs=1e-12)
    assert (local.cell_weights * local.rate).sum() == pytest.approx(local.overall().rate, abs=1e-12)


def test_cells_that_were_not_measured_weigh_nothing():
    table = np.zeros((2, 2, 3, 3))
    table[0] = 10 * np.eye(3) + 1
    table[1, 0, :2] = 5 * np.eye(3)[:2] + 1
    local = Local.from_counts("abc", ["fog", "snow"], [[1, 2], [1]], table)
    weights = local.cell_weights
    assert weights.sum() == pytest.approx(1)
    assert (weights * np.nan_to_num(local.rate)).sum() == pytest.approx(local.overall().rate, abs=1e-12)


def systems():
    return [
        ({}, {}),
        ({"arity": 3}, {}),
        ({"combine": max}, {"conditions": ["p0", ("p0", "p1")]}),
        ({"combine": lambda a, b: a - b}, {"tuples": [("0", "2"), ("1", "1")]}),
    ]


@pytest.mark.parametrize(("system", "options"), systems())
def test_the_systems_gain_is_that_of_composing_the_fixed_table(system, options):
    local = expected_table(confusions(3), 100)
    made = compose(local, **system, **options)
    composition = Composition.of(made.setting)
    assert composition.overall(composition.rows) == pytest.approx((made.overall.rate, 1), abs=1e-12)
    for seed in range(3):
        mask = some_mask(local, seed)
        wanted = compose(fixed(local, mask), **system, **options).overall.rate - made.overall.rate
        assert composition.gain(mask).rate == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("arity", [2, 3])
def test_shares_of_failures_are_those_of_all_worlds(arity):
    local = expected_table(confusions(5, severities=1), 100)
    composition = Composition.of(compose(local, arity=arity).setting)
    mask = some_mask(local, 1)
    tuples = list(itertools.combinations_with_replacement(range(3), arity))
    wrong = blamed = 0.0
    single = np.zeros((*local.rate.shape, 3))
    for classes, which, answers in itertools.product(tuples, range(2), itertools.product(range(3), repeat=arity)):
        if adder(*answers) == adder(*classes):
            continue
        chance = np.prod([local.answers[c, which, 0, a] for c, a in zip(classes, answers, strict=True)])
        wrong += chance
        blamed += chance * any(mask[c, which, 0, a] for c, a in zip(classes, answers, strict=True))
        for c, a in zip(classes, answers, strict=True):
            single[c, which, 0, a] += chance
    assert composition.share(mask) == pytest.approx(blamed / wrong, abs=1e-12)
    involved = composition.involved().sum(axis=0).reshape(single.shape)
    np.testing.assert_allclose(involved, single / (2 * len(tuples)), atol=1e-12)


def test_intervals_of_what_was_picked_hold_for_95_of_100_on_average():
    base, own = np.array([0.03, 0.08, 0.15])[:, None, None], np.eye(4)
    truth = np.stack([own * (1 - base) + (1 - own) * base / 3] * 2)
    truth[0, 1:, 1, 2] += 0.07
    truth[0, 1:, 1, 1] -= 0.07  # so weak that only the lucky half of the samples shows it
    exact = expected_table(truth)
    held = []
    for seed in range(25):
        found = explain(drawn_table(truth, 100, seed, alike=0.5))
        for trend in found.trends:
            setting = found.composed.setting
            true_setting = Setting(exact, setting.system, setting.tuples, setting.conditions)
            gains = (local_gain(exact, trend.mask), Composition.of(true_setting).gain(trend.mask))
            for told, true in zip((trend.local_gain, trend.composed_gain), gains, strict=True):
                held.append(told.low - 1e-12 <= true.rate <= told.high + 1e-12)
    assert 5 <= len(held) // 2 <= 22
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(held))


def test_a_system_needs_every_class_everywhere():
    table = np.zeros((1, 2, 2, 2), int)
    table[0, 0] = [[9, 1], [2, 8]]
    table[0, 1, 0] = [5, 5]
    local = Local.from_counts(["0", "1"], ["fog"], [[1, 2]], table)
    with pytest.raises(InputError, match="class '1' was never tried under fog at severity 2"):
        explain(local)
    assert explain(local, arity=1).composed is None


# The same perturbation twice draws numbers of its own each time.
PROPERTIES = {
    "noise": ("classic.gaussian_noise", [0, 3, 5]),
    "again": ("classic.gaussian_noise", [0, 3]),
    "rotation": ("classic.rotation", [0, 4]),
}


@pytest.fixture(scope="module")
def measured():
    model, data = OnnxModel(demo_model_path()), demo_data()
    return model, data, local(model, data, PROPERTIES, per_class=30, seed=3)


def test_the_model_fails_on_every_row_as_it_did(measured, tmp_path):
    model, data, table = measured
    found = explain(table, arity=1)
    count = export_failures(found, data, PROPERTIES, tmp_path / "failures.npz")
    with np.load(tmp_path / "failures.npz") as file:
        kept = dict(file)
    assert count == len(kept["x"]) == int((table.trials - table.passes).sum())
    np.testing.assert_array_equal(model(kept["x"]).argmax(axis=1), kept["predicted"].astype(int))
    np.testing.assert_array_equal(model(kept["clean"]).argmax(axis=1), kept["y"])
    np.testing.assert_array_equal(kept["clean"], np.asarray(data.inputs)[kept["index"]])
    assert (kept["predicted"].astype(int) != kept["y"]).all()
    assert set(kept["property"]) == set(PROPERTIES)
    for rank, trend in enumerate(found.trends, start=1):
        mine = kept["trend"] == rank
        assert mine.sum() == trend.failures
        assert set(kept["property"][mine]) == {trend.property}
        assert set(kept["severity"][mine]) <= set(trend.severities)
        assert set(kept["predicted"][mine]) == set(trend.answers)


def test_equal_tables_make_equal_files(measured, tmp_path):
    _, data, table = measured
    for name in ("a.npz", "b.npz"):
        export_failures(table, data, ta.Space(PROPERTIES, order_sensitive=name == "b.npz"), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_texts_are_exported_too(tmp_path):
    texts = [f"{word} number {i}" for i in range(20) for word in ("good", "bad")]
    labels = np.array([int(text.startswith("good")) for text in texts])
    cut = {"cut": ta.Perturbation("cut", lambda batch, by, rng: [text[by:] for text in batch], [0, 2])}
    found = local(lambda batch: np.array([int(text.startswith("good")) for text in batch]), (texts, labels), cut)
    assert export_failures(found, (texts, labels), cut, tmp_path / "f.npz") == 20
    with np.load(tmp_path / "f.npz") as file:
        assert file["x"][0].startswith("od number")
        assert file["clean"][0].startswith("good number")


def test_mistakes_are_one_line_failures(measured, tmp_path):
    _, data, table = measured
    with pytest.raises(InputError, match=r"must end in .npz"):
        export_failures(table, data, PROPERTIES, tmp_path / "f.csv")
    with pytest.raises(InputError, match="properties: 'again'"):
        export_failures(table, data, {"noise": "classic.gaussian_noise"}, tmp_path / "f.npz")
    with pytest.raises(InputError, match="data: 10 inputs do not fit"):
        export_failures(table, (np.asarray(data.inputs)[:10], data.labels[:10]), PROPERTIES, tmp_path / "f.npz")
    counts = Local.from_counts("ab", ["noise"], [[3]], [[[[9, 1], [1, 9]]]])
    with pytest.raises(InputError, match="counts alone"):
        export_failures(counts, data, PROPERTIES, tmp_path / "f.npz")
    right = {"noise": ta.Perturbation("none", lambda x, by, rng: x, [0, 1])}
    model = OnnxModel(demo_model_path())
    with pytest.raises(InputError, match="no input failed"):
        export_failures(local(model, data, right, per_class=2), data, right, tmp_path / "f.npz")
    assert list(tmp_path.iterdir()) == []
