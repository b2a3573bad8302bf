"""The page in a real Chromium, opened from disk with the network off: everything is drawn, nothing complains."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from testifai.report.contents import gather
from testifai.report.page import render
from testifai.report.sweep_report import Swept
from testifai.report.sweep_report import render as render_sweeps
from testifai.runs.store import Store
from testifai.session.stored_runs import open_run
from testifai.sweeps import sweep

# Plotly warns of its own use of a canvas, and software rendering of its slowness.
HARMLESS = ("willReadFrequently", "GPU stall", "GL Driver Message")


@pytest.fixture(scope="module")
def page_file(run_folder, tmp_path_factory):
    levels, run = [0.0, 0.5, 1.0], tmp_path_factory.mktemp("page") / "spec.db"
    shutil.copy(run_folder / "spec.db", run)
    with Store.create_or_open(run) as store:
        store.put_array("sweep/classic.noise/0.5", np.ones(4, np.uint8))
        store.put(**{"sweep/classic.noise/found": [{
            "span": [0, 1], "threshold": 0.8, "robustness": 0.4, "bound": 0.1, "evaluations": 3, "inferences": 12,
            "levels": levels, "accuracies": [1.0, 0.7, 0.5], "lows": [0.9, 0.6, None], "highs": [1.0, 0.8, None],
            "uncertain": [[0.3, 0.5]],
        }]})  # fmt: skip
    path = run.with_suffix(".html")
    path.write_text(render(gather(run, examples=2)), encoding="utf-8")
    return path


class Opened:
    """The page, all it says on the console, and all it asks the network for."""

    def __init__(self, browser, path):
        context = browser.new_context(viewport={"width": 1100, "height": 800}, color_scheme="light", offline=True)
        self.page, self.said, self.asked = context.new_page(), [], []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("() => document.documentElement.dataset.drawn", timeout=60_000)

    def problems(self):
        return [line for line in self.said if not any(words in line for words in HARMLESS)]

    def drawn(self):
        """The figures that can be seen, each with whether it was drawn."""
        return dict(
            self.page.evaluate(
                "[...document.querySelectorAll('figure.plot')].filter(f => f.offsetParent !== null)"
                ".map(f => [f.id, f._fullData.length > 0 && f.querySelector('.main-svg') !== null"
                " && (f._fullLayout._has('gl3d') === (f.querySelector('canvas') !== null))])"
            )
        )


@pytest.fixture(scope="module")
def opened(browser, page_file):
    """Opened once: drawing takes seconds without a graphics card. Each test leaves the page fit for the next."""
    return Opened(browser, page_file)


def test_all_figures_are_drawn_without_network(opened):
    figures = opened.drawn()
    assert len(figures) == 1 + 3 + 1 + 3 + 1 + 1 + 1  # of the voxel views, one at a time
    assert all(figures.values())
    assert opened.problems() == []
    assert [url for url in opened.asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_nothing_can_be_sent_away(opened):
    buttons = "[...document.querySelectorAll('.modebar-btn')].map(button => button.getAttribute('data-title'))"
    titles = opened.page.evaluate(buttons)
    assert "download plot as a png" in [title.lower() for title in titles]
    assert not [title for title in titles if re.search("cloud|share|chart studio|edit", title, re.IGNORECASE)]


def test_hovering_over_and_turning_a_voxel_view(opened, page_file):
    page = opened.page
    eye = "JSON.stringify(document.getElementById('figure-voxels-0')._fullLayout.scene._scene.getCamera().eye)"
    before = page.evaluate(eye)
    page.locator("#figure-voxels-0").scroll_into_view_if_needed()
    box = page.locator("#figure-voxels-0 canvas").first.bounding_box()
    page.evaluate(
        "window.words = []; document.getElementById('figure-voxels-0').on('plotly_hover',"
        " event => window.words.push([event.points[0].text, event.points[0].customdata]))"
    )
    page.mouse.move(box["x"] + box["width"] / 2 - 5, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("() => window.words.length > 0", timeout=15_000)
    words, test = page.evaluate("window.words[0]")
    assert re.match(r"brightness \d, zoom \d, blur \d<br>0\.\d{3} .* trials", words)
    severities = tuple(map(int, re.findall(r"\w+ (\d)", words.partition("<br>")[0])))
    assert severities == open_run(page_file.with_suffix(".db")).space.configuration(test)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 120, box["y"] + box["height"] / 2 + 40, steps=3)
    page.mouse.up()
    page.wait_for_function(f"() => {eye} !== '{before}'", timeout=15_000)
    assert opened.problems() == []


def test_choosing_a_voxel_view(opened):
    choice = opened.page.locator("#space select")
    assert choice.locator("option").count() == 4
    choice.select_option("figure-voxels-1")
    opened.page.wait_for_function("() => document.getElementById('figure-voxels-1')._fullLayout !== undefined")
    shown = opened.drawn()
    assert shown["figure-voxels-1"]
    assert sum("voxels" in name for name in shown) == 1
    assert opened.problems() == []


def test_dark_and_narrow(opened):
    page = opened.page
    ground, ink = (
        "getComputedStyle(document.body).backgroundColor",
        "document.querySelector('#figure-pairs-0 .gtitle').style.fill",
    )
    light = page.evaluate(ground), page.evaluate(ink)
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")  # which the page follows
    page.wait_for_function(f"() => {ink} !== '{light[1]}'", timeout=30_000)
    assert page.evaluate(ground) != light[0] == "rgb(255, 255, 255)"
    page.wait_for_function("() => document.documentElement.scrollWidth <= 390", timeout=30_000)
    page.evaluate("document.getElementById('theme').click()")
    page.wait_for_function(f"() => {ink} === '{light[1]}'", timeout=30_000)
    assert opened.problems() == []


def test_a_page_of_sweeps_alone(browser, tmp_path):
    found = sweep(lambda level: 1 - level / 2, 0, 1).as_dict()
    path = tmp_path / "sweeps.html"
    path.write_text(render_sweeps(Swept("only.db", {"classic.noise": [found]}, {"classic.noise": {}})), "utf-8")
    alone = Opened(browser, path)
    assert alone.drawn() == {"figure-sweeps-0": True}
    assert alone.problems() == []
    assert alone.page.locator("table").first.inner_text().count("classic.noise") == 1


def test_paper_shows_all_that_is_folded_and_the_page_is_as_before_afterwards(opened):
    page, folded = opened.page, "document.querySelectorAll('details:not([open])').length"
    before = page.evaluate(folded)
    assert before > 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate(folded) == 0
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate("document.documentElement.scrollWidth") <= 210 / 25.4 * 96
    assert page.is_visible(".signature")
    assert page.is_hidden("nav")
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(folded) == before
    assert page.is_hidden(".signature")
