"""The section of the papers' future work, on tiny made-up grids and tables."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from tests.verification.graphs import classifier

from testifai.testing import example_photographs

INPUTS = 240


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A recorded grid whose hard inputs are hard everywhere, one table of DeepEST's, one model with its images."""
    root = tmp_path_factory.mktemp("beyond")
    random = np.random.default_rng(0)
    severity = np.indices((6, 6, 6, 6)).sum(axis=0)[..., None]
    hard = random.normal(0, 2, INPUTS)
    passes = random.normal(0, 0.5, (6, 6, 6, 6, INPUTS)) + hard + 0.5 * severity < 4
    axes = np.array(["brightness", "zoom", "motion_blur", "shear"])
    np.savez(root / "mnist.npz", axes=axes, inputs=INPUTS, passes=np.packbits(passes, axis=-1))
    (root / "reference" / "deepest").mkdir(parents=True)
    with (root / "reference" / "deepest" / "CN5_MNIST.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "outcome", "label", "confidence", "dsa", "lsa", "combined"])
        for number, risk in enumerate(random.beta(0.5, 3, 1500)):
            outcome = "Fail" if random.random() < risk else "Pass"
            table.writerow([number, outcome, 0, 1 - risk, risk, 10 * risk, 1 - risk])
    for name in ("models", "data"):
        (root / name).mkdir()
    classifier(root / "models" / "mnist_lenet5.onnx", (1, 9, 8))
    np.savez(root / "data" / "mnist_test.npz", x=example_photographs(6, (9, 8)), y=np.arange(6) % 4)
    return root


def written(root, name, monkeypatch):
    from evaluation import beyond, beyond_verification
    from evaluation.page import Page
    from evaluation.setting import Setting

    few = dict(list(beyond_verification.SUBJECTS.items())[:1])
    monkeypatch.setattr(beyond_verification, "SUBJECTS", few)
    page = Page("beyond", root / name)
    beyond.write(page, Setting(root, root, tiny=True))
    return page


@pytest.mark.slow
def test_the_whole_section_on_tiny_grids(folder, monkeypatch):
    page = written(folder, "first", monkeypatch)
    text = page.markdown()
    assert "Not run" not in text
    assert text.count("| MNIST |") == 3
    assert "| CN5 MNIST | confidence |" in text
    assert "| MNIST, LeNet-5 | in the graph | 200 | 200 |" in text
    assert len(page.claims) == 4
    assert any("qqp.npz" in line for line in page.missing)
    assert {path.name for path in (folder / "first").iterdir()} == {"beyond_hunting.svg", "beyond_shares.svg"}
    assert written(folder, "first", monkeypatch).markdown() == text


def test_without_files_it_says_so(tmp_path, monkeypatch):
    page = written(tmp_path, "none", monkeypatch)
    assert page.markdown().count("*Not run:") == 3
