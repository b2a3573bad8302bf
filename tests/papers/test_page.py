import doctest

import pytest
from evaluation import drawing, page
from evaluation.page import Page, seconds, without_times
from evaluation.setting import MissingFileError, Setting


@pytest.fixture
def sheet(tmp_path):
    made = Page("some", tmp_path / "results")
    made.title("Some section")
    return made


def test_examples():
    assert doctest.testmod(page).failed == 0


def test_claims_come_first_and_say_whether_they_hold(sheet):
    sheet.text("A paragraph.")
    for claim, holds in {"errors are small": False, "it is quick": True, "it is theirs": None}.items():
        sheet.claim(claim, "1", "2", holds)
    lines = sheet.markdown().splitlines()
    assert lines[0] == "## Some section"
    assert [line.split("|")[4].strip() for line in lines if line.startswith(("| it", "| err"))] == [
        "**no**",
        "yes",
        "not comparable",
    ]
    assert lines[-1] == "A paragraph."


def test_every_table_names_its_command_and_seeds(sheet):
    sheet.table(["a", "b"], [["x", 1], ["y", 2.5]], "seeds 0–9")
    assert sheet.markdown().splitlines()[2:] == [
        "| a | b |",
        "| --- | ---: |",
        "| x | 1 |",
        "| y | 2.5 |",
        "",
        "<sub>`python benchmarks/papers.py --only some`; seeds 0–9</sub>",
    ]


def test_a_row_of_another_length_is_no_row(sheet):
    with pytest.raises(ValueError, match="2 columns, but this row has 1"):
        sheet.table(["a", "b"], [["x"]], "no chance in it")


def test_a_part_whose_files_are_missing_says_so_and_the_next_goes_on(sheet, tmp_path):
    setting = Setting(tmp_path, tmp_path)
    with sheet.part("One"):
        setting.grid("none.npz")
        sheet.text("never")
    with sheet.part("Two"):
        sheet.text("written")
    text = sheet.markdown()
    assert "*Not run: none.npz (made by `make papers FULL=1`) not found.*" in text
    assert "never" not in text
    assert text.endswith("written")
    assert sheet.missing == ["One: none.npz (made by `make papers FULL=1`)"]
    with pytest.raises(MissingFileError, match="below TESTIFAI_DATA"):
        setting.file("models/none.onnx")


def test_figures_are_the_same_each_time(sheet):
    pytest.importorskip("matplotlib")
    written = []
    for _ in range(2):
        figure, axes = drawing.axes(1, 2)
        axes[0, 0].plot([1, 2], [3, 4], color=drawing.COLOURS["ours"])
        sheet.figure("lines", figure, "Two lines", "no chance in it")
        written.append((sheet.figures / "some_lines.svg").read_bytes())
    assert written[0] == written[1]
    assert "![Two lines](results/some_lines.svg)" in sheet.markdown()


def test_times_are_all_that_may_differ():
    first, second = (f"| took | {seconds(value)} |" for value in (1.0, 123.456))
    assert first != second
    assert without_times(first) == without_times(second)
