"""The explorer in a real Chromium: query, slider, cells and their images, two runs, dark mode, random clicks."""

from __future__ import annotations

import random
import threading
import time

import pytest

pytest.importorskip("dash")

from testifai.app.server import build, listen

Error = pytest.importorskip("playwright.sync_api").Error

# Plotly warns of its own use of a canvas, and software rendering of its slowness.
HARMLESS = ("willReadFrequently", "GPU stall", "GL Driver Message")
SECONDS = 30  # of random clicks
NUMBER = "document.querySelector('#answer .big').innerText"


@pytest.fixture(scope="module")
def address(runs):
    server = listen(build(runs).server, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}/"
    server.shutdown()
    thread.join(10)
    server.server_close()


class Opened:
    """The page, all it says on the console, and all it asks the network for."""

    def __init__(self, browser, address, search="", colours="light"):
        context = browser.new_context(viewport={"width": 1300, "height": 900}, color_scheme=colours)
        self.page, self.said, self.asked = context.new_page(), [], []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = address
        self.go(search)

    def go(self, search):
        self.page.goto(self.address + search)
        self.page.wait_for_selector("#figures .main-svg", timeout=60_000)
        self.page.wait_for_function(f"() => {NUMBER} !== ''", timeout=60_000)

    def until(self, condition):
        self.page.wait_for_function(f"() => {condition}", timeout=20_000)

    def answer(self):
        return self.page.evaluate(NUMBER)

    def problems(self):
        return [line for line in self.said if not any(words in line for words in HARMLESS)]

    def shown(self):
        return self.page.evaluate("document.querySelector('#test-shown')?.dataset.test ?? null")

    def click_cell(self, name, x, y):
        """Click into a flat figure, at parts of its width and height."""
        place = self.page.locator(f'[id*=\'"name":"{name}"\'] .nsewdrag').first
        box = None
        for _ in range(20):  # a figure that is drawn anew meanwhile takes its place with it
            try:
                place.scroll_into_view_if_needed()
            except Error:
                self.page.wait_for_timeout(250)
                continue
            box = place.bounding_box()
            if box is not None:
                break
        assert box is not None, f"the figure {name} is not drawn"
        self.page.mouse.click(box["x"] + box["width"] * x, box["y"] + box["height"] * y)


@pytest.fixture(scope="module")
def opened(browser, address):
    """Opened once: drawing takes seconds without a graphics card. Each test leaves the page fit for the next."""
    return Opened(browser, address)


def rate(runs, run, query):
    return f"{runs.answer(run, query).robustness:.3f}"


def test_typing_a_query(opened, runs):
    assert opened.answer() == rate(runs, 0, "order >= 0")
    opened.page.fill("#query", "zoom >= 2 and order <= 2")
    opened.until(f"{NUMBER} === '{rate(runs, 0, 'zoom >= 2 and order <= 2')}'")
    opened.until("document.querySelectorAll('.slider')[1].querySelectorAll('[role=slider]')[0].ariaValueNow === '1'")
    opened.until("new URL(location).searchParams.get('query') === 'zoom >= 2 and order <= 2'")
    assert opened.problems() == []


def test_a_wrong_query_is_told_as_text_and_changes_nothing(opened):
    before = opened.answer()
    opened.page.fill("#query", "zoom > <img src=x onerror=alert(1)>")
    opened.until("document.querySelector('#message').innerText.includes(\"unexpected '<'\")")
    assert opened.page.locator("#message img").count() == 0
    assert opened.answer() == before
    opened.page.fill("#query", "zom > 1")
    opened.until("document.querySelector('#message').innerText.includes('did you mean')")
    assert opened.problems() == []


def test_axis_names_are_completed(opened, runs):
    words = opened.page.evaluate("[...document.querySelector('#query').list.options].map(option => option.value)")
    assert set(runs.space.names) <= set(words)


def test_moving_a_slider_with_the_keyboard(opened, runs):
    opened.page.fill("#query", "order <= 2")
    opened.until(f"{NUMBER} === '{rate(runs, 0, 'order <= 2')}'")
    opened.page.locator(".slider").nth(2).locator("[role=slider]").nth(1).focus()
    opened.page.keyboard.press("ArrowLeft")
    opened.until("document.querySelector('#query').value === 'order <= 2 and blur <= 2'")
    opened.until(f"{NUMBER} === '{rate(runs, 0, 'order <= 2 and blur <= 2')}'")
    assert opened.problems() == []


def test_a_click_on_a_cell_shows_its_images(opened, runs):
    opened.page.fill("#query", "order >= 0")
    opened.until(f"{NUMBER} === '{rate(runs, 0, 'order >= 0')}'")
    opened.page.wait_for_timeout(500)  # until it is drawn
    opened.click_cell("heatmap", 0.95, 0.05)
    opened.until("document.querySelectorAll('#test-shown img').length === 16")
    assert runs.space.configuration(int(opened.shown())) == (5, 5, 0, 0)
    assert "true" in opened.page.inner_text("#test-shown figcaption >> nth=0")
    opened.until("[...document.querySelectorAll('#test-shown img')].every(image => image.naturalWidth === 28)")
    assert opened.problems() == []


def test_turning_and_clicking_the_voxel_view(opened):
    page, before = opened.page, opened.shown()
    view = """document.querySelector('[id*=\\'"voxels"\\'] .js-plotly-plot')"""
    eye = f"JSON.stringify({view}._fullLayout.scene._scene.getCamera().eye)"
    page.evaluate("window.scrollTo(0, 0)")
    opened.until(f"{view}?._fullLayout?.scene?._scene")
    was = page.evaluate(eye)
    box = page.locator("[id*='\"voxels\"'] canvas").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.6
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 10, steps=3)
    page.mouse.up()
    opened.until(f"{eye} !== '{was}'")
    for step in range(6):  # until a cube lies under the mouse
        page.mouse.move(x - 80 + 30 * step, y - 3)
        page.wait_for_timeout(150)
        page.mouse.move(x - 80 + 30 * step, y)
        page.wait_for_timeout(300)
        page.mouse.down()
        page.wait_for_timeout(200)
        page.mouse.up()
        page.wait_for_timeout(400)
        if opened.shown() != before:
            break
    assert opened.shown() != before
    assert opened.problems() == []


def test_two_runs_in_the_dark_by_address(opened, runs):
    query = "zoom >= 2"
    opened.go("?view=compare&dark=1&query=zoom+%3E%3D+2&axes=blur,zoom,noise&test=40")
    opened.until("document.querySelectorAll('#test-shown[data-test=\"40\"] img').length === 16")
    opened.until("document.querySelectorAll('#figures .main-svg').length >= 3")
    opened.until("document.querySelector('#difference .verdict') !== null")
    found = runs.comparison(0, 1, query).regions[0]
    assert f"{found.difference:+.3f}" in opened.page.inner_text("#difference")
    assert ("more than noise" in opened.page.inner_text("#difference .verdict")) == (
        found.verdict in ("better", "worse")
    )
    assert rate(runs, 1, query) in opened.page.inner_text("#difference")
    opened.until("document.querySelector('#root').className === 'dark'")
    ground = "getComputedStyle(document.querySelector('#root')).backgroundColor"
    assert opened.page.evaluate(ground) == "rgb(23, 27, 33)"
    opened.page.locator("#dark input").click()
    opened.until(f"{ground} === 'rgb(255, 255, 255)'")
    opened.until("!new URL(location).searchParams.has('dark')")  # as the system is
    assert opened.problems() == []


def test_dark_as_the_system_is_unless_it_is_chosen(browser, address):
    opened = Opened(browser, address, "?view=curves", colours="dark")
    opened.until("document.querySelector('#root').className === 'dark'")
    assert "dark" not in opened.page.evaluate("location.search")
    opened.page.locator("#dark input").click()
    opened.until("document.querySelector('#root').className === 'light'")
    opened.until("new URL(location).searchParams.get('dark') === '0'")
    opened.page.reload()
    opened.until("document.querySelector('#root')?.className === 'light'")
    opened.page.locator("#dark input").click()
    opened.until("document.querySelector('#root').className === 'dark'")
    opened.page.emulate_media(color_scheme="light")
    opened.until("document.querySelector('#root').className === 'light'")
    assert opened.problems() == []
    opened.page.context.close()


def test_a_slice_of_an_axis_that_is_not_shown(opened, runs):
    opened.go("?view=space&query=order+%3E%3D+0&axes=brightness,zoom,blur")
    titles = "[...document.querySelectorAll('#flat .gtitle, #flat .gtitle-subtitle')].map(one => one.textContent)"
    opened.until(f"{titles}.join().includes('mean over blur, noise')")
    assert opened.page.locator(".slice:visible").count() == 1
    opened.page.locator(".slice:visible .dash-dropdown").click()
    opened.page.locator(".dash-dropdown-option", has_text="= 5").click()
    opened.until(f"{titles}.join().includes('noise = 5; mean over blur')")
    opened.until("new URL(location).searchParams.get('at') === 'noise:5'")
    assert opened.answer() == rate(runs, 0, "order >= 0")  # only figures are sliced
    assert opened.problems() == []


def test_the_error_summary(opened, runs):
    opened.page.locator("#view label", has_text="errors").click()
    opened.until("document.querySelectorAll('#flat .main-svg').length >= 2")
    opened.until("document.querySelector('.trends') !== null")
    found = runs.errors(0)
    assert opened.page.locator(".trends li").count() == min(8, len(found.trends))
    assert opened.problems() == []


def test_saving_a_query_and_exporting_gates(opened):
    page = opened.page
    page.fill("#query", "zoom >= 2")
    opened.until("new URL(location).searchParams.get('query') === 'zoom >= 2'")
    page.locator("summary").click()
    page.fill("#name", "blurred")
    page.click("#save")
    opened.until("document.querySelector('#saved-message').innerText.includes('at least')")
    page.fill("#at-least", "0.5")
    page.click("#save")
    opened.until("(localStorage.getItem('saved') || '').includes('blurred')")
    with page.expect_download() as download:
        page.click("#export")
    assert 'name = "blurred"\nquery = "zoom >= 2"\nat_least = 0.5' in download.value.path().read_text()
    assert opened.problems() == []


@pytest.mark.slow
def test_random_clicks(opened, runs):
    """Half a minute of whatever is pressed in whatever order: nothing complains and the page still answers."""
    page, draw = opened.page, random.Random(3)
    opened.go("?view=space")
    asked = ("zoom >= 2", "order ==", "blur > 1 or noise == 5", "<b>", "zoom > 99", "not (order > 1)", "")
    keys = ("ArrowLeft", "ArrowRight", "Home", "End", "Tab", "Enter", " ", "Escape", "x")
    actions = [
        lambda: page.mouse.click(draw.randint(5, 1290), draw.randint(5, 890)),
        lambda: page.mouse.click(draw.randint(400, 1280), draw.randint(150, 880)),
        lambda: page.keyboard.press(draw.choice(keys)),
        lambda: page.mouse.wheel(0, draw.choice((-400, 400))),
        lambda: page.fill("#query", draw.choice(asked)),
        lambda: page.locator("#view label").nth(draw.randrange(6)).click(),
        lambda: page.locator(".slider [role=slider]").nth(draw.randrange(8)).focus(),
        lambda: page.locator("#dark input").click(),
        lambda: page.mouse.dblclick(draw.randint(400, 1280), draw.randint(150, 880)),
    ]
    done, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        page.keyboard.press("Escape")  # an open list would cover the rest
        draw.choice(actions)()
        page.wait_for_timeout(draw.randint(0, 150))
        done += 1
    page.keyboard.press("Escape")
    page.fill("#query", "order == 1")
    run = page.evaluate("Number(new URL(location).searchParams.get('run'))")
    opened.until(f"{NUMBER} === '{rate(runs, run, 'order == 1')}'")
    assert opened.problems() == []
    assert done > 20


def test_a_browser_that_is_killed_harms_nobody(browser, address, opened):
    other = browser.new_context()
    page = other.new_page()
    page.goto(address, wait_until="commit")
    other.close()  # while everything is still on its way
    opened.go("?view=curves")
    assert opened.problems() == []


def test_no_request_left_this_machine(opened):
    away = [url for url in opened.asked if not url.startswith((opened.address, "data:", "blob:"))]
    assert away == []
    buttons = "[...document.querySelectorAll('.modebar-btn')].map(button => button.getAttribute('data-title'))"
    assert not [title for title in opened.page.evaluate(buttons) if "cloud" in title.lower()]
