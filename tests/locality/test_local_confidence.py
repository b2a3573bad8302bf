"""Mean confidences: of all, right and wrong answers, with intervals for new inputs."""

from __future__ import annotations

import numpy as np

from testifai.locality import Local, Sampled, confidences, explain, local
from testifai.locality.local import count_answers

from .synthetic import Known, confusions, drawn_table


def sure_table(seed: int, inputs: int = 80) -> Local:
    """Two classes at three severities; an input has a luck of its own that all its answers and confidences share."""
    generator = np.random.default_rng(seed)
    classes = np.repeat([0, 1], inputs)
    luck = generator.normal(size=(2 * inputs, 1, 1)) + 0.5 * generator.normal(size=(2 * inputs, 2, 3))
    right = luck > -0.7
    sure = (0.5 + 0.5 / (1 + np.exp(-luck))).astype(np.float32)
    predicted = np.where(right, classes[:, None, None], 1 - classes[:, None, None]).astype(np.int32)
    single = Sampled(np.arange(2 * inputs), classes, predicted, sure)
    counts = count_answers(predicted, classes, 2, 2)
    return Local.from_counts(["a", "b"], ["fog", "snow"], [[1, 2, 3]] * 2, counts, sampled=single)


def test_means_are_those_of_the_answers_one_by_one():
    table = sure_table(0)
    found = confidences(table)
    single = table.sampled
    right = single.predicted == single.classes[:, None, None]
    for kind, chosen in (("all", right | True), ("right", right), ("wrong", ~right)):
        for place, which in np.ndindex(2, 2):
            mine = chosen[single.classes == place, which]
            sure = single.confidence[single.classes == place, which]
            assert np.isclose(found.cells[kind].rate[place, which], sure[mine].mean(dtype=float))
            assert found.answers[kind][place, which] == mine.sum()
        assert np.isclose(found.by_property[kind].rate[1], single.confidence[:, 1][chosen[:, 1]].mean(dtype=float))


def test_intervals_hold_for_new_inputs():
    """The truth is the mean of very many inputs; severities of an input hang together."""
    truth = confidences(sure_table(1, 200_000))
    runs, held = 150, []
    for seed in range(runs):
        found = confidences(sure_table(100 + seed))
        for kind in ("all", "right", "wrong"):
            for one, wanted in (
                (found.cells[kind], truth.cells[kind]),
                (found.by_property[kind], truth.by_property[kind]),
            ):
                held.append(np.mean((one.low <= wanted.rate) & (wanted.rate <= one.high)))
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)


def test_a_class_without_wrong_answers_has_no_mean_of_them():
    table = sure_table(2)
    single = table.sampled
    right = np.where(single.classes[:, None, None] == 0, 0, single.predicted).astype(np.int32)
    counts = count_answers(right, single.classes, 2, 2)
    better = Local.from_counts(
        ["a", "b"], ["fog", "snow"], [[1, 2, 3]] * 2, counts,
        sampled=Sampled(single.ids, single.classes, right, single.confidence),
    )  # fmt: skip
    found = confidences(better)
    assert np.isnan(found.cells["wrong"].rate[0]).all()
    assert found.as_dict()["cells"]["wrong"]["rate"][0] == [None, None]
    assert not np.isnan(found.cells["wrong"].rate[1]).any()


def test_labels_and_counts_alone_tell_none():
    assert confidences(drawn_table(confusions(0), 10, 0)) is None
    model = Known(confusions(0))
    assert confidences(local(model, model.data(20), model.properties(), 10)) is None
    assert explain(drawn_table(confusions(0), 10, 0)).as_dict()["confidence"] is None


def test_a_measured_model_tells_them_and_they_are_written_and_read_back():
    model = Known(confusions(0), scores=True)
    table = local(model, model.data(40), model.properties(), 30)
    found = confidences(table)
    assert (found.cells["all"].low <= found.cells["all"].rate).all()
    np.testing.assert_allclose(table.confidence.mean(axis=2), found.cells["all"].rate, rtol=1e-6)
    again = Local.from_dict(table.as_dict())
    np.testing.assert_array_equal(confidences(again).cells["right"].rate, found.cells["right"].rate)
    part = table.part(np.arange(20))
    np.testing.assert_allclose(part.confidence[0], table.sampled.confidence[:20].mean(axis=0, dtype=float))
    assert any("mean confidence" in line for line in explain(table).lines())
