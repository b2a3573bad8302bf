"""`.plot()` of every result: what is drawn, that intervals are, and what cannot be drawn in one line."""

import numpy as np
import pytest

import testifai as ta
from testifai import locality
from testifai.oracles import Outcome
from testifai.present.figures.pairs import MOST_AXES
from testifai.runs.outcomes import Outcomes
from testifai.sweeps import sweep
from testifai.tomogram import Answer, Excluded, Tomogram


def add(x, by, rng):
    return x + by


def fade(x, by, rng):
    return x * (1 - by)


SHIFT = ta.Perturbation("shift", add, [0.0, 0.2, 0.4, 0.6], levels=(0.0, 0.6))
FADE = ta.Perturbation("fade", fade, [0.0, 0.3, 0.6])
SPACE = ta.Space({"shift": SHIFT, "fade": FADE})
ROWS = np.linspace(-1, 1, 80)[:, None]


def above(limit):
    return lambda x: (x[:, 0] > limit).astype(int)


DATA = (ROWS, above(0)(ROWS))


@pytest.fixture(scope="module")
def full():
    return ta.scan(above(0), DATA, SPACE, strategy="full", population="data")


@pytest.fixture(scope="module")
def pooled():
    return ta.scan(above(0.05), DATA, SPACE, budget=300)


def panels(figure, kind):
    return [trace for trace in figure.data if trace.type == kind]


def test_pairs_show_means_below_the_diagonal_and_half_widths_above(pooled):
    figure = pooled.plot()
    below, over = panels(figure, "heatmap")
    np.testing.assert_allclose(below.z, pooled.estimate.T)
    np.testing.assert_allclose(over.z, (pooled.high - pooled.low) / 2)
    assert "robustness over pairs of axes" in figure.layout.title.text
    assert f"{pooled.estimate[3, 1]:.3f} (" in below.hovertext[1][3]


def test_the_diagonal_has_each_axis_with_its_interval(pooled):
    band, line, *_ = panels(pooled.plot(), "scatter")
    found = pooled.by_severity()["shift"]
    assert list(line.y) == [answer.robustness for answer in found.values()]
    drawn = [y for y in band.y if y is not None]
    assert drawn == [one.low for one in found.values()] + [one.high for one in reversed(found.values())]


def test_a_region_says_its_answer_and_leaves_other_cells_empty(full):
    figure = full.plot("region", "shift >= 2 and fade <= 1")
    answer = full.query("shift >= 2 and fade <= 1")
    title = figure.layout.title.text.replace("<br>", " ")
    assert f"robustness {answer.robustness:.3f} (exact)" in title
    below = panels(figure, "heatmap")[0]
    assert np.isnan(below.z).tolist() == [[True, True, False, False], [True, True, False, False], [True] * 4]
    assert list(panels(figure, "scatter")[1].x) == [2.0, 3.0]
    assert full.plot(query="shift >= 2").layout.title.text.startswith("robustness 0.")


def test_every_kind_draws(pooled):
    for kind in ("pairs", "orders", "severities", "worst", "classes"):
        assert pooled.plot(kind).layout.title.text
    assert len(pooled.plot("worst", "shift == 3").layout.yaxis.ticktext) == 3
    assert [trace.name for trace in pooled.plot("severities", axes=["fade"]).data if trace.name][-1] == "fade"


def test_where_no_two_act_at_once_severities_are_drawn():
    space = ta.Space({"shift": SHIFT, "fade": FADE}, max_order=1)
    run = ta.scan(above(0), DATA, space, strategy="full")
    assert run.plot().layout.title.text == "robustness along each axis"


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("pear",), {}, r"plot: 'pear' is no kind of figure; did you mean 'pairs'\? \(known: classes, orders, pairs"),
        ((3,), {}, "plot: 3 is no kind of figure"),
        (("region",), {}, r"plot: 'region' needs a query, such as plot\('region', 'order >= 2'\)"),
        (("region", "shift > 9"), {}, "selects no test"),
        (("orders", "shift > 1"), {}, "plot: 'orders' takes no query; accepted with one: region, worst"),
        (("worst",), {"axes": ["shift"]}, "plot: 'worst' takes no axes"),
        ((), {"axes": ["shft"]}, "axis: 'shft' is not an axis of this space; did you mean 'shift'"),
        ((), {"axes": ["shift", "shift"]}, "axes: .* accepted: a list of different ones of shift, fade"),
        (("quality",), {}, "plot: this run did not measure quality"),
        ((), {"score": "f1"}, "score: this run has no 'f1'"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_line(full, arguments, options, said):
    with pytest.raises(ta.InputError, match=said) as raised:
        full.plot(*arguments, **options)
    assert "\n" not in str(raised.value)


def test_a_run_without_outcomes_cannot_be_drawn():
    with pytest.raises(ta.InputError, match="plot: the run has no outcome yet"):
        Tomogram(SPACE, Outcomes(80), np.arange(80)).plot()


def test_of_many_axes_those_that_matter_most_are_drawn():
    still = ta.Perturbation("still", lambda x, by, rng: x, [0, 1])
    axes = {f"a{place}": still for place in range(8)} | {"shift": ta.Perturbation("s", add, [0.0, 0.5])}
    run = ta.scan(above(0), DATA, ta.Space(axes), strategy="full", budget=None)
    figure = run.plot()
    shown = {figure.layout[f"xaxis{n}"].title.text for n in range(31, 37)}
    assert len(shown) == MOST_AXES
    assert "shift" in shown
    assert "the 6 of 9 axes that matter most" in figure.layout.title.subtitle.text.replace("<br>", " ")


def test_a_space_too_large_to_list_is_drawn_from_a_sample():
    axes = {f"a{place}": SHIFT for place in range(14)}
    run = ta.scan(above(0), DATA, ta.Space(axes), budget=600, surrogate="forest")
    assert not run.space.listed
    said = run.plot("region", "a0 >= 2", axes=["a0", "a1"]).layout.title.subtitle.text.replace("<br>", " ")
    assert "selected tests only; from a sample of the tests" in said


def test_where_the_order_of_application_counts_it_is_said():
    run = ta.scan(above(0), DATA, ta.Space({"shift": SHIFT, "fade": FADE}, order_sensitive=True), budget=300)
    said = run.plot().layout.title.subtitle.text.replace("<br>", " ")
    assert "mean over the orders of application" in said


def test_titles_break_before_a_narrow_page_ends(full):
    long = " and ".join(["shift >= 1"] * 8)
    figure = full.plot("region", long)
    lines = figure.layout.title.text.split("<br>")
    assert len(lines) > 3
    assert all(len(line.replace("&gt;", ">")) <= 48 for line in lines)
    assert not any(line.endswith("=") for line in lines)
    assert figure.layout.margin.t >= 70 + 18 * (len(lines) - 1)


def test_an_answer_with_its_other_opinions_and_its_worst_tests(full):
    figure = full.query("shift >= 2").plot()
    assert list(figure.layout.yaxis.ticktext)[:2] == ["the answer", "shift 3"]
    contradicted = Answer(
        0.5, 0.4, 0.6, -0.4, 2, 1, 1, (((1,), 0.3, 0.2, 0.4),), (0.5, 0.4, 0.6), disagrees=True,
        modelled=(0.9, 0.8, 0.95), excluded=Excluded(7, 0, 0.2, 0.1, 0.3),
    )  # fmt: skip
    figure = contradicted.plot(dark=True)
    assert list(figure.layout.yaxis.ticktext) == [
        "the answer", "by the surface, contradicted by trials", "7 tests excluded as implausible", "(1,)",
    ]  # fmt: skip
    own, beside, worst = figure.data
    assert own.error_x.array[0] == pytest.approx(0.1)
    assert list(beside.x) == [0.9, 0.2]
    assert list(worst.error_x.arrayminus) == [pytest.approx(0.1)]
    assert figure.layout.shapes[0].x0 == pytest.approx(0.9)  # clean


def test_an_answer_says_at_which_confidence_its_interval_holds(pooled):
    first, _ = pooled.queries(["shift >= 2", "fade >= 1"])
    assert "97.5 % intervals" in first.plot().layout.title.subtitle.text.replace("<br>", " ")


def test_a_sweep_is_a_figure_and_with_a_path_a_picture(tmp_path):
    found = sweep(lambda level: 1 - level / 2, 0, 1, name="linear")
    figure = found.plot()
    assert figure.layout.title.text == "accuracy over the level of linear"
    assert "accuracy is at least 0.8 on 40.0 %" in figure.layout.title.subtitle.text.replace("<br>", " ")
    assert [trace.fill for trace in figure.data] == ["toself", None]
    assert found.plot(tmp_path / "linear.png") is None
    assert (tmp_path / "linear.png").exists()


def test_a_comparison_draws_regions_and_the_tests_that_changed_most(full):
    other = ta.scan(above(0.2), DATA, SPACE, strategy="full")
    found = ta.compare(full, other, queries=["shift >= 1"])
    figure = found.plot()
    names = list(figure.layout.yaxis.ticktext)
    assert names[:2] == ["all tests run in both", "shift &gt;= 1"]
    assert len(names) == 2 + len(found.best) + len(found.worst)
    assert {trace.name for trace in figure.data} <= {"B is better", "B is worse", "equal", "undecided"}
    assert found.plot().layout.xaxis.range[0] < 0 < found.plot().layout.xaxis.range[1]


def test_a_hunt_draws_what_it_found(pooled):
    found = ta.hunt(pooled, above(0.05), DATA, 60)
    figure = found.plot()
    assert figure.layout.title.text == f"{len(found.tests):,} failures in 60 inferences"
    assert figure.data[1].y[-1] == len(found.tests)


def test_a_calibrated_perturbation_draws_its_sweep():
    found = ta.calibrate(above(0), DATA, SHIFT, [0.1], confidence=None)
    assert found.plot().layout.title.text == "accuracy over the level of shift"


def test_a_benchmark_draws_each_perturbation_lowest_first():
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8)
    space = ta.Space({"fog": "imagenet_c.fog", "contrast": "imagenet_c.contrast"}, max_order=1)
    run = ta.scan(lambda x: (x.mean((1, 2, 3)) > 128).astype(int), (images, np.zeros(12, int)), space, strategy="full")
    found = run.benchmark("imagenet_c")
    scores = [score.value for score in found.perturbations.values()]
    assert list(found.plot().data[0].x) == sorted(scores)


def test_errors_of_a_model_draw_themselves():
    local = locality.Local.from_counts(["cat", "dog"], ["fog"], [[1]], [[[[170, 30], [1, 199]]]])
    assert local.plot().data[0].z.tolist() == [[0.85], [0.995]]
    found = locality.explain(local)
    assert found.plot().layout.title.text == "what is confused with what"


def test_the_mean_of_a_score_is_drawn_in_its_own_words():
    def closeness(outputs, expected, clean):
        near = 1 / (1 + np.abs(outputs - clean))
        return Outcome(near >= 0.7, near.astype(np.float32))

    closeness.score = "closeness"
    run = ta.scan(lambda x: x[:, 0], (ROWS, None), SPACE, oracle=closeness, strategy="full")
    figure = run.plot(score="closeness")
    assert figure.layout.title.text == "mean closeness over pairs of axes"
    np.testing.assert_allclose(panels(figure, "heatmap")[0].z, run.scored("closeness").estimate.T)
    assert run.scored("closeness").plot().layout.title.text == figure.layout.title.text
    assert run.query("shift >= 2", score="closeness").plot().layout.xaxis.title.text == "mean closeness"


def test_a_single_axis_has_a_panel_of_its_own():
    run = ta.scan(above(0), DATA, ta.Space({"shift": SHIFT}), strategy="full")
    assert run.plot().layout.title.text == "robustness along an axis"
    assert [trace.type for trace in run.plot("pairs").data] == ["scatter", "scatter"]
