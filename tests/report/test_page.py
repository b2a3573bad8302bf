"""The page holds all it needs, nothing that runs but its own script, and the same bytes for the same run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from testifai.report.contents import gather
from testifai.report.markdown import MOST, markdown
from testifai.report.page import figures, render
from testifai.report.words import summary

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
def test_other_numbers_of_axes(tomogram, axes, monkeypatch):
    found = tomogram(axes, (0, 1, 2), max_order=2)
    monkeypatch.setattr("testifai.report.contents.open_run", lambda path: found)
    monkeypatch.setattr("testifai.report.contents.stored_sweeps", lambda path: {})
    made = gather(Path("x.db"), examples=0)
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
    many = replace(contents, verdicts=contents.verdicts * 800)
    assert len(markdown(many)) <= MOST + 200
    assert "left out" in markdown(many)
