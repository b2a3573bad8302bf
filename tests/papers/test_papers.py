"""The whole page on tiny grids, through its command."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import papers
import pytest
from evaluation import SECTIONS
from evaluation.page import without_times
from evaluation.tasks import TASKS

COMMAND = Path(papers.__file__)


def tiny_grids(folder: Path, inputs: int = 40) -> Path:
    """For each task a grid whose rates fall with the severities."""
    folder.mkdir()
    for number, task in enumerate(TASKS):
        sums = np.indices((6,) * len(task.axes)).sum(axis=0)
        luck = np.random.default_rng(number).random((*sums.shape, inputs))
        passes = np.packbits(luck < 0.97 - 0.04 * sums[..., None], axis=-1)
        np.savez(folder / f"{task.name}.npz", axes=np.array(task.axes), inputs=np.array(inputs), passes=passes)
    return folder


def make_page(folder: Path, grids: Path, *options: str) -> tuple[str, str]:
    """A page and what was said while it was made."""
    done = subprocess.run(
        [sys.executable, str(COMMAND), "--tiny", "--page", str(folder / "results.md"), "--grids", str(grids), *options],
        env={**os.environ, "TESTIFAI_DATA": str(folder / "none")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return (folder / "results.md").read_text(encoding="utf-8"), done.stderr


@pytest.mark.slow
def test_the_whole_page_twice_on_tiny_grids_without_other_peoples_data(tmp_path):
    pytest.importorskip("matplotlib")
    grids = tiny_grids(tmp_path / "grids")
    pages = []
    for turn in ("first", "second"):
        (tmp_path / turn).mkdir()
        pages.append(make_page(tmp_path / turn, grids))
    text, said = pages[0]
    assert [name for name in SECTIONS if f"<!-- section {name} -->" in text] == list(SECTIONS)
    assert "not run:" in said, "the published tables are not there"
    assert without_times(text) == without_times(pages[1][0])
    figures = sorted(path.name for path in (tmp_path / "first" / "results").iterdir())
    assert figures
    assert all(f"results/{name}" in text for name in figures)


def test_examples():
    assert doctest.testmod(papers).failed == 0


def test_other_sections_stay_where_some_are_made_anew():
    text = papers.whole({name: f"## {name}\n\nold" for name in SECTIONS})
    kept = papers.kept(text)
    assert list(kept) == list(SECTIONS)
    assert papers.whole(kept) == text
    assert papers.kept(papers.whole({**kept, "sweeps": "## new"}))["sweeps"] == "## new"
