"""The page to label on, in a real Chromium, by keys alone."""

from __future__ import annotations

import csv
import threading

import numpy as np
import pytest

pytest.importorskip("flask")
pytest.importorskip("playwright.sync_api")

from testifai.app.labelling import Labelling, build
from testifai.app.server import listen
from testifai.data import from_arrays
from testifai.operational.input_previews import KeptInputs, packed
from testifai.operational.label_file import Classes, Filling

TOKEN = "secret-token"
MANY = tuple(f"sign {number}" for number in range(43))
ANIMALS = ("cat", "dog", "frog")


class Opened:
    """A page on a file of some inputs, and all it says and asks for."""

    def __init__(self, browser, folder, inputs, classes, colours="light"):
        self.path = folder / "a.csv"
        examples = list(range(len(inputs)))
        (folder / "a.inputs.zip").write_bytes(packed("tag", from_arrays(inputs), examples))
        self.path.write_text("id,mine,label\n" + "".join(f'{example},"=x",\n' for example in examples))
        labelling = Labelling(Filling(self.path, classes), KeptInputs(self.path, "tag"))
        self.server = listen(build(labelling, TOKEN), "127.0.0.1", 0)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.context = browser.new_context(color_scheme=colours)
        self.page, self.said, self.asked = self.context.new_page(), [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = f"http://127.0.0.1:{self.server.port}/"
        self.page.goto(f"{self.address}?token={TOKEN}")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def shows(self, input_, progress):
        """Wait until this input and this progress are shown."""
        begin = "" if input_ is None else f"Input {input_} · "
        self.page.wait_for_function(
            "words => document.querySelector('#progress').textContent === words", arg=begin + progress, timeout=20_000
        )

    def labels(self):
        with open(self.path, newline="") as file:
            rows = list(csv.DictReader(file))
        assert all(row["mine"] == "=x" for row in rows)
        return [row["label"] for row in rows]

    def close(self):
        self.context.close()
        self.server.shutdown()
        self.thread.join(10)
        self.server.server_close()


@pytest.fixture
def opened(browser, tmp_path):
    made = []

    def start(*arguments, **options):
        made.append(Opened(browser, tmp_path, *arguments, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()
        assert one.said == []
        assert all(url.startswith((one.address, "data:")) for url in one.asked)


def test_label_three_undo_one_reload(opened):
    page = opened([f"text {number}" for number in range(5)], Classes(ANIMALS))
    for key, done in (("1", 0), ("2", 1), ("3", 2)):
        page.shows(done + 1, f"{done} of 5 labelled")
        assert page.page.inner_text("blockquote") == f"text {done}"
        page.press(key)
    page.shows(4, "3 of 5 labelled")
    assert page.labels() == ["cat", "dog", "frog", "", ""]
    page.press("Backspace")
    page.shows(3, "2 of 5 labelled")
    assert page.labels() == ["cat", "dog", "", "", ""]
    assert TOKEN not in page.page.url
    page.page.reload()
    page.shows(3, "2 of 5 labelled")
    page.press("Control+z")
    page.shows(2, "1 of 5 labelled")
    page.press("ArrowLeft")
    page.shows(1, "1 of 5 labelled")
    assert page.page.inner_text("[aria-pressed=true]").endswith("cat")
    page.press("2")  # changed; on to the first that is empty
    page.shows(2, "1 of 5 labelled")
    page.press("Space")
    page.shows(3, "1 of 5 labelled · 1 put off")
    for left in (3, 4, 5):
        page.press("1")
        page.shows(left + 1 if left < 5 else 2, f"{left - 1} of 5 labelled · 1 put off")
    page.press("3")
    page.shows(None, "5 of 5 labelled")
    assert "testifai estimate a.csv" in page.page.inner_text("#input")
    assert page.labels() == ["dog", "frog", "cat", "cat", "cat"]


def test_labels_that_were_just_changed_are_shown_as_they_are(opened):
    page = opened(["a", "b", "c"], Classes(ANIMALS))
    pressed = "[...document.querySelectorAll('[aria-pressed=true]')].map(button => button.value)"
    page.shows(1, "0 of 3 labelled")
    page.press("1")
    page.shows(2, "1 of 3 labelled")
    page.press("ArrowRight")
    page.shows(3, "1 of 3 labelled")
    page.press("2")
    page.shows(2, "2 of 3 labelled")
    page.press("ArrowRight")
    page.shows(3, "2 of 3 labelled")
    assert page.page.evaluate(pressed) == ["dog"]
    page.press("ArrowLeft")
    page.shows(2, "2 of 3 labelled")
    page.press("Backspace")
    page.shows(3, "1 of 3 labelled")
    assert page.page.evaluate(pressed) == []


def test_many_classes_by_a_part_of_their_name_and_pictures(opened):
    page = opened(np.zeros((3, 28, 28), np.uint8), Classes(MANY), colours="dark")
    page.shows(1, "0 of 3 labelled")
    page.page.wait_for_function("document.querySelector('#input img.small')?.naturalWidth === 28")
    page.page.keyboard.type("SIGN 4")
    assert page.page.inner_text("#matches") == "4 of 43 match; Enter takes sign 4"
    page.press("ArrowDown", "Enter")
    page.shows(2, "1 of 3 labelled")
    assert page.page.evaluate("document.activeElement.id") == "box"
    page.page.keyboard.type("x")
    page.press("Enter", "Backspace", "Backspace")  # no match; the letter; the label before
    page.shows(1, "0 of 3 labelled")
    page.page.keyboard.type("n 17")
    page.press("Enter")
    page.shows(2, "1 of 3 labelled")
    assert page.labels() == ["sign 17", "", ""]


def test_a_file_that_somebody_changed_is_told_and_read_again(opened):
    page = opened(["a", "b"], Classes(ANIMALS))
    page.shows(1, "0 of 2 labelled")
    theirs = page.path.read_text().replace('1,"=x",', '1,"=x",frog')
    page.path.write_text(theirs)
    page.press("1")
    page.page.wait_for_selector("#problem:not([hidden])")
    assert "changed by somebody else" in page.page.inner_text("#problem")
    assert page.path.read_text() == theirs
    page.page.reload()
    page.shows(1, "1 of 2 labelled")
    page.press("1")
    page.shows(None, "2 of 2 labelled")
    assert page.labels() == ["cat", "frog"]
    page.said.clear()  # the browser lists the reply 409


def test_text_is_text_and_a_label_that_is_none_is_refused(opened):
    page = opened(["<img src=x onerror=alert(1)>"], Classes())
    page.shows(1, "0 of 1 labelled")
    assert page.page.inner_text("blockquote") == "<img src=x onerror=alert(1)>"
    page.page.keyboard.type("cat")
    page.press("Enter")
    page.page.wait_for_selector("#problem:not([hidden])")
    assert "whole numbers" in page.page.inner_text("#problem")
    page.press("Backspace", "Backspace", "Backspace")
    page.page.keyboard.type("7")
    page.press("Enter")
    page.shows(None, "1 of 1 labelled")
    assert page.labels() == ["7"]
    page.said.clear()


def test_a_held_key_is_one_answer(opened):
    page = opened(["a", "b", "c"], Classes(ANIMALS))
    page.shows(1, "0 of 3 labelled")
    page.page.keyboard.down("1")
    page.shows(2, "1 of 3 labelled")
    page.page.keyboard.down("1")  # without a release: the keyboard repeats
    page.press("Shift")
    page.page.keyboard.up("1")
    page.shows(2, "1 of 3 labelled")
    assert page.labels() == ["cat", "", ""]
