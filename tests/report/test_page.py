"""The page holds all it needs, nothing that runs but its own script, and the same bytes for the same run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from testifai.perturb import Perturbation
from testifai.present.examples import thumbs
from testifai.quality.predict import Scores
from testifai.report.contents import Stored, gather
from testifai.report.markdown import MOST, markdown
from testifai.report.page import css_text, figures, render
from testifai.report.words import summary
from testifai.session.assembly import scan
from testifai.space import Space
from testifai.tomogram import EstimatorSettings

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
LIMIT = 8_000_000


@pytest.fixture(scope="module")
def contents(run_folder):
    return gather(run_folder / "spec.db")


@pytest.fixture(scope="module")
def page(contents):
    return render(contents)


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text outside of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text, self._inside = [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.text += data


def drawings(page):
    return json.loads(re.search(r'id="drawings">(.*?)</script>', page, re.DOTALL).group(1))


def test_nothing_is_fetched(page):
    elements = Elements(page)
    for tag, attributes in elements.found:
        for name in ("src", "href", "action", "data"):
            address = attributes.get(name)
            assert address is None or address.startswith(("data:image/", "#")), (tag, address)
    assert ("script", {}) in elements.found
    assert '"showSendToCloud": false' in page
    policy = next(a["content"] for t, a in elements.found if t == "meta" and "content" in a and "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_size_and_one_copy_of_plotly(page):
    assert len(page.encode()) < LIMIT
    assert page.count("plotly.js v") == 1


def test_every_figure_has_its_place(page, contents):
    places = {attributes["id"] for tag, attributes in Elements(page).found if tag == "figure"}
    assert places == set(drawings(page)) == {view.name for group in figures(contents).values() for view in group}
    assert len(places) == 1 + 3 + 4 + 3 + 1 + 1


def test_the_numbers_are_in_the_words(page, contents):
    text = " ".join(Elements(page).text.split())
    for line in summary(contents):
        assert " ".join(line.split()) in text
    assert f"{contents.everything.robustness:.3f}" in text
    parts = "Gates, Standard queries, Worst regions, Failures, Provenance, mnist_c.motion_blur, onnxruntime"
    assert all(part in text for part in parts.split(", "))
    assert len(contents.standard) == 9  # eight octants, of which one is also the smaller cube of two
    pictures = [tag for tag, _ in Elements(page).found if tag == "img"]
    assert len(pictures) == 2 * sum(len(shown.examples) for shown in contents.failures) > 0


def test_equal_runs_make_equal_pages(page, run_folder):
    assert render(gather(run_folder / "spec.db")) == page


def test_everything_is_escaped(contents):
    tomogram = replace(contents.tomogram, classes=tuple([EVIL] * 10))
    verdict = contents.verdicts[0]
    gate = verdict.gate.model_copy(update={"name": EVIL, "query": EVIL, "inputs": EVIL})
    text = {**contents.failures[0].examples[0].__dict__, "label": EVIL, "predicted": EVIL}
    failure = replace(contents.failures[0], title=EVIL, examples=(type(contents.failures[0].examples[0])(**text),))
    spoilt = replace(
        contents,
        run=EVIL,
        tomogram=tomogram,
        by_class={EVIL: next(iter(contents.by_class.values()))},
        verdicts=(replace(verdict, gate=gate, reason=EVIL),),
        failures=(failure,),
        failures_note=EVIL,
    )
    before, after = Elements(render(contents)).found, Elements(render(spoilt)).found
    assert sum(tag == "script" for tag, _ in after) == sum(tag == "script" for tag, _ in before)
    assert not any("onerror" in attributes for _, attributes in after)
    # What stands between backticks is shown as it is.
    assert "<img" not in re.sub("`[^`]*`", "", markdown(spoilt))


@pytest.mark.parametrize("axes", [1, 2, 5])
def test_other_numbers_of_axes(tomogram, axes):
    found = tomogram(axes, (0, 1, 2), max_order=2)
    made = gather(Stored(Path("x.db"), found, {}), examples=0)
    groups = figures(made)
    assert len(groups["pairs"]) == axes * (axes - 1) // 2
    assert len(groups["voxels"]) == (10 if axes == 5 else 0)
    assert len(render(made).encode()) < LIMIT


def test_markdown_fits_into_a_comment(contents):
    text = markdown(contents)
    assert len(text) < MOST
    assert "❌ fails" in text
    assert "✅ holds" in text
    assert "clean &amp; &lt;b&gt;bold&lt;/b&gt;" in text
    many = markdown(replace(contents, verdicts=contents.verdicts * 800))
    assert len(many) <= MOST < 65_536
    assert many.count("❌ fails") + many.count("⚠️ undecided") == 100  # those that hold come last
    assert "2,300 more gates are in the full report" in many
    assert "Worst regions" in many
    wide = [replace(one, gate=one.gate.model_copy(update={"name": "x" * 5000})) for one in contents.verdicts * 30]
    assert len(markdown(replace(contents, verdicts=tuple(wide)))) <= MOST + 200
    assert "left out here" in markdown(replace(contents, verdicts=tuple(wide)))


def test_a_run_that_kept_predictions_has_classes_under_each_perturbation(tmp_path):
    """Threes are read as fives under `fade`: the page must say so."""

    def model(rows):
        return np.where((rows[:, 0] == 3) & (rows[:, 1] > 0.5), 5, rows[:, 0]).astype(int)

    rows = np.stack([np.arange(300) % 10, np.zeros(300)], axis=1)
    fade = Perturbation("fade", lambda batch, by, rng: batch + np.array([0, by]), [0.0, 0.4, 0.8])
    keep = Perturbation("keep", lambda batch, by, rng: batch + 0, [0.0, 1.0])
    space = Space({"fade": fade, "other": keep})
    scan(model, (rows, model(rows)), space, strategy="full", store=tmp_path / "run.db", keep=("predicted",))
    made = gather(tmp_path / "run.db", examples=0)
    assert [(one.classes, one.property, one.answers[0]) for one in made.errors.trends] == [(("3",), "fade", "5")]
    page, text = render(made), markdown(made)
    drawn = drawings(page)
    assert "3 under fade<br>0.500" in drawn["figure-errors-0"]["data"][0]["hovertext"][3][0]
    assert "figure-errors-1" in drawn
    assert "Class 3 under fade at severity 2 is read as 5: 30 of 30 tries" in Elements(page).text
    assert "1. class 3 under fade at severity 2 is read as 5" in text
    assert json.loads(json.dumps(made.as_dict(), allow_nan=False))["errors"]["trends"][0]["property"] == "fade"


def test_a_run_without_predictions_says_how_to_keep_them(contents, page):
    assert contents.errors is None
    assert 'With keep = ["predicted"] under [scan]' in Elements(page).text


def test_what_is_neither_measured_nor_predicted_is_called_unknown(tomogram):
    found = tomogram(3, (0, 1, 2), max_order=1, settings=EstimatorSettings(None))
    text = " ".join(Elements(render(gather(Stored(Path("x.db"), found, {}), examples=0))).text.split())
    assert "Over all 27 combinations of a, b and c the mean is not known." in text
    assert "20 of 27 tests were not measured, and nothing was predicted" in text
    assert "27 tests: 7 run on all inputs, 0 on some, 20 not run" in text


def test_texts_are_escaped_and_their_edits_marked(contents):
    original, changed = thumbs(f"a {EVIL} b", f"a {EVIL} c")
    example = replace(contents.failures[0].examples[0], original=original, changed=changed)
    shown = replace(contents, failures=(replace(contents.failures[0], examples=(example,)),))
    elements = Elements(render(shown))
    assert not any("onerror" in attributes for _, attributes in elements.found)
    assert sum(tag == "mark" for tag, _ in elements.found) == 2
    assert elements.text.count("alert(1)") == 4


def test_quality_is_shown_where_it_was_measured(contents, page):
    assert "How plausible" not in page
    space = contents.tomogram.space
    every = np.arange(space.size)
    scores = Scores(space, "kid", False, every, every / space.size, np.full(space.size, 0.01))
    tomogram = replace(contents.tomogram, quality=scores)
    shown = render(replace(contents, tomogram=tomogram))
    assert "figure-quality-0" in drawings(shown)
    assert "quality &lt;= LIMIT" in shown
    assert "How plausible the inputs are (kid, lower is better) was measured on 27 of the tests." in shown


def test_text_in_a_style_cannot_end_it():
    assert css_text('a "b"</style>') == '"a \\22 b\\22 \\3c \\2f style\\3e "'
