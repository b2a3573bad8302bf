"""In a real Chromium: a run that grows, a link for a colleague, figures saved as PNG, SVG and CSV."""

from __future__ import annotations

import csv
import io
import threading

import pytest
from tests.app.growing import Growing

pytest.importorskip("dash")
pytest.importorskip("playwright")

from testifai.app.server import build, listen
from testifai.app.state import Runs

pytestmark = pytest.mark.slow

PATIENCE = 90_000  # milliseconds
NUMBER = "document.querySelector('#answer .big')?.innerText"
STANDING = "document.querySelector('#following').innerText"


@pytest.fixture
def serve():
    """Serves an application; the address, and the server."""
    servers = []

    def start(runs, token=None):
        server = listen(build(runs, token).server, "127.0.0.1", 0)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.port}/", server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def context(browser):
    made = browser.new_context(viewport={"width": 1300, "height": 900}, color_scheme="light")
    made.grant_permissions(["clipboard-read", "clipboard-write"])
    made.set_default_timeout(PATIENCE)
    yield made
    made.close()


def open_page(context, address):
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#figures .main-svg")
    until(page, f"{NUMBER} > ''")
    return page


def until(page, condition):
    page.wait_for_function(f"() => {condition}")


def test_a_run_that_grows_is_followed_without_reloading(context, serve, folder, tmp_path):
    run = Growing(folder / "a.db", tmp_path / "run.db")
    run.grow(20)
    runs = Runs([run.path])
    address, server = serve(runs)
    page = open_page(context, address + "?view=pairs")
    page.evaluate("window.old = true")
    until(page, f"{STANDING}.startsWith('1,200 inferences so far, as of ') && {STANDING}.endsWith('following')")
    before = page.evaluate(NUMBER)
    cells = "[...document.querySelectorAll('#flat .heatmaplayer text')].map(one => one.textContent).join()"
    drawn = page.evaluate(cells)
    run.grow(10, inputs=30)
    until(page, f"{STANDING}.startsWith('1,500 inferences so far')")
    until(page, f"{NUMBER} === '{runs.tomograms[0].query('order >= 0').robustness:.3f}'")
    assert page.evaluate(NUMBER) != before
    until(page, f"{cells} !== {drawn!r}")
    run.stop()
    until(page, f"{STANDING}.endsWith('it no longer grows')")
    run.path.unlink()
    until(page, f"{STANDING}.endsWith('run.db is gone: this is what it held')")
    assert page.evaluate(NUMBER) > ""
    assert page.evaluate("window.old")  # never loaded again
    server.shutdown()
    server.server_close()
    until(page, f"{STANDING}.startsWith('testifai explore has ended')")


def test_a_page_of_a_server_that_was_started_anew_begins_again(context, serve, runs):
    address, server = serve(runs)
    page = open_page(context, address + "?view=curves&query=zoom+%3E%3D+2")
    until(page, "new URL(location).searchParams.get('query') === 'zoom >= 2'")
    page.evaluate("window.old = true")
    server.app = build(runs).server  # as if another had taken the port
    until(page, "window.old === undefined")
    until(page, f"{NUMBER} === '{runs.answer(0, 'zoom >= 2').robustness:.3f}'")


def test_a_link_shows_a_colleague_the_same_and_holds_no_token(browser, context, serve, runs):
    address, _ = serve(runs, "secret-token")
    view = "run=1&against=0&view=compare&axes=blur,zoom,noise&at=brightness:3&query=zoom+%3E%3D+2&test=40&dark=1"
    mine = open_page(context, f"{address}?token=secret-token&{view}")
    until(
        mine,
        "document.querySelector('#test-shown') !== null && document.querySelector('#difference .verdict') !== null",
    )
    until(mine, "!location.search.includes('token')")
    mine.click("#share")
    until(mine, "document.querySelector('#share').innerText === 'copied'")
    link = mine.evaluate("navigator.clipboard.readText()")
    assert link.startswith(address)
    assert "token" not in link
    theirs = browser.new_context(viewport={"width": 1300, "height": 900}, color_scheme="light")
    theirs.set_default_timeout(PATIENCE)
    page = theirs.new_page()
    assert page.goto(link).status == 401
    assert "a token is needed" in page.inner_text("body")
    page.goto(f"{address}?token=secret-token")
    page.goto(link)
    until(
        page,
        "document.querySelector('#test-shown') !== null && document.querySelector('#difference .verdict') !== null",
    )
    shown = """() => ({
        query: document.querySelector("#query").value, root: document.querySelector("#root").className,
        answer: document.querySelector("#answer").innerText,
        difference: document.querySelector("#difference").innerText,
        test: document.querySelector("#test-shown").dataset.test,
        view: document.querySelector("#view input:checked").parentElement.innerText.trim(),
        titles: [...document.querySelectorAll("#flat .gtitle, #flat .gtitle-subtitle")].map(one => one.textContent),
        search: [...new URL(location).searchParams].filter(([name]) => name !== "dark").toString(),
    })"""
    for one in (mine, page):
        until(one, "document.querySelectorAll('#flat .main-svg').length >= 3")
    assert page.evaluate(shown) == mine.evaluate(shown)
    assert page.evaluate(shown)["root"] == "dark"
    theirs.close()


def saved(page, name, kind):
    with page.expect_download() as download:
        page.locator(f"button[data-name='{name}'][data-export='{kind}']").click()
    assert download.value.suggested_filename == f"testifai {name}.{kind}"
    return download.value.path().read_bytes()


def table(content):
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_figures_are_saved_as_they_are_seen(context, serve, runs):
    address, _ = serve(runs)
    page = open_page(context, address + "?axes=zoom,blur,noise&dark=1")
    page.wait_for_selector("[id*='\"voxels\"'] canvas")
    for name in ("heatmap", "voxels"):
        png, svg = saved(page, name, "png"), saved(page, name, "svg")
        assert png.startswith(b"\x89PNG\r\n")
        assert int.from_bytes(png[16:20], "big") >= 2 * 400  # pixels across, twice those of the screen
        assert svg.startswith(b"<svg")
        assert b"rgb(23, 27, 33)" in svg  # the ground that its colours are made for
    truth = runs.tomograms[0]
    cells = table(saved(page, "heatmap", "csv"))
    assert list(cells[0]) == ["zoom", "blur", "robustness", "low", "high", "test", "about"]
    assert len(cells) == 9
    for cell in cells:
        found = truth.query(f"zoom == {cell['zoom']} and blur == {cell['blur']}")
        assert float(cell["robustness"]) == pytest.approx(found.robustness)
        assert float(cell["low"]) <= float(cell["robustness"]) + 1e-3
    cubes = table(saved(page, "voxels", "csv"))
    assert len(cubes) == 18
    for cube in cubes:
        found = truth.query(f"zoom == {cube['zoom']} and blur == {cube['blur']} and noise == {cube['noise']}")
        assert float(cube["robustness"]) == pytest.approx(found.robustness, abs=1e-6)
        assert cube["series"] == "measured"


def test_every_other_figure_has_data_too(context, serve, runs):
    address, _ = serve(runs)
    page = open_page(context, address + "?view=curves")
    expected = {"curves": 4, "tests": 3, "errors": 2, "compare": 3, "pairs": 6}
    for view, count in expected.items():
        page.goto(f"{address}?view={view}")
        until(page, f"document.querySelectorAll('#flat .main-svg').length >= {count}")
        names = page.evaluate("[...document.querySelectorAll('button[data-export=csv]')].map(one => one.dataset.name)")
        assert len(names) == count
        for name in names:
            assert table(saved(page, name, "csv")), name
    page.goto(f"{address}?view=curves")
    until(page, "document.querySelectorAll('#flat .main-svg').length >= 4")
    rows = [row for row in table(saved(page, "alone", "csv")) if row["series"] == "zoom"]
    assert [row["severity"] for row in rows] == ["0", "2", "5"]
    alone = [runs.tomograms[0].query(f"order == {min(s, 1)} and zoom == {s}").robustness for s in (0, 2, 5)]
    assert [float(row["robustness"]) for row in rows] == pytest.approx(alone)
