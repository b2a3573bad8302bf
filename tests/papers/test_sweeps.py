"""The section on sweeps, on tiny records made up here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

ALTERATIONS = ("gaussian noise", "compression", "vertical trans.", "horizontal trans.", "blur", "brightness", "zoom")
LEVELS, INPUTS = 129, 40


def made_up(seed: int) -> np.ndarray:
    """Inputs that pass until a level of their own."""
    last = np.random.default_rng(seed).uniform(0.1, 1.5, (INPUTS, 1))
    return np.asarray(np.linspace(0, 1, LEVELS) < last)


@pytest.fixture
def grids(tmp_path: Path) -> Path:
    from evaluation.sweeps_records import Recorded, write, write_curves

    for place, name in enumerate(("plain", "augmented", "resnet20")):
        record = {one: Recorded((0.0, 1.0), made_up(10 * place + k)) for k, one in enumerate(ALTERATIONS)}
        write(tmp_path / "grids" / f"sweep_{name}_paper.npz", record)
    write(tmp_path / "grids" / "sweep_lenet5_ours.npz", {"rotation": Recorded((0.0, 45.0), made_up(99))})
    curves = {"multiples of 72°, rotation to 180°": made_up(7).sum(0), "up to 5°, zoom": made_up(8).sum(0)}
    write_curves(tmp_path / "grids" / "sweep_limited.npz", curves, INPUTS)
    return tmp_path / "grids"


def test_a_record_is_read_as_it_was_written(grids: Path) -> None:
    from evaluation.sweeps_records import read, read_curves, share_above

    record = read(grids / "sweep_plain_paper.npz")
    assert tuple(record) == ALTERATIONS
    assert (record["compression"].passed == made_up(1)).all()
    found = record["zoom"].sweep(0.8)
    assert abs(found.robustness - record["zoom"].robustness(0.8)) <= found.bound + 1 / (LEVELS - 1)
    assert share_above(np.array([0.9, 0.9, 0.7, 0.7, 0.7]), 0.8) == 0.375
    assert (read_curves(grids / "sweep_limited.npz")["up to 5°, zoom"] == made_up(8).mean(0)).all()


def test_random_curves_are_the_same_for_the_same_seed() -> None:
    from evaluation.sweeps_curves import KINDS, drawn

    for kind in KINDS:
        first = drawn(kind, 3, count=65)
        assert (first == drawn(kind, 3, count=65)).all()
        assert ((first >= 0) & (first <= 1)).all()


@pytest.mark.slow
def test_the_section_is_written_and_says_what_is_missing(
    grids: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluation import sweeps, sweeps_curves
    from evaluation.page import Page
    from evaluation.setting import Setting

    monkeypatch.setattr(sweeps_curves, "INPUTS", 20)
    curves = tmp_path / "data" / "reference" / "asap"
    curves.mkdir(parents=True)
    levels = np.linspace(0, 200, 41)
    np.savetxt(curves / "standard_zoom.csv", np.column_stack([levels, 0.95 - levels / 500]), delimiter=",")
    page = Page("sweeps", tmp_path / "figures")
    sweeps.write(page, Setting(grids, tmp_path / "data", tiny=True))
    text = page.markdown()
    assert text.startswith("## ASAP")
    assert "| LeNet-5, augmented (MNIST): zoom |" in text
    assert "ours: the bound holds on every recorded curve" in text
    assert "| standard_zoom | 0 … 200 |" in text
    assert "| at random: dips |" in text
    assert "Table II" in text
    assert [line.split(":")[0] for line in page.missing] == ["Time"]
    assert (tmp_path / "figures" / "sweeps_limited.svg").exists()


def test_a_clean_clone_has_what_the_section_needs() -> None:
    """The committed records: readable, small, and with the curves that a bound must hold on."""
    from evaluation.sweeps_bounds import Case, tally
    from evaluation.sweeps_records import read, read_curves

    folder = Path(__file__).parents[2] / "benchmarks" / "grids"
    for path in folder.glob("sweep_*.npz"):
        assert path.stat().st_size < 2_000_000
    assert tuple(read(folder / "sweep_plain_paper.npz")) == ALTERATIONS
    curves = read_curves(folder / "sweep_limited.npz")
    grazing = [
        ("multiples of 30°, rotation to 60°", 0.91), ("multiples of 40°, rotation to 60°", 0.915),
        ("multiples of 45°, rotation to 60°", 0.92), ("multiples of 60°, rotation to 60°", 0.875),
        ("multiples of 72°, rotation to 60°", 0.815), ("multiples of 72°, rotation to 180°", 0.8),
    ]  # fmt: skip
    found = tally([Case(curves[name], threshold) for name, threshold in grazing], {"curvature": "auto"})
    assert found.held == found.cases
