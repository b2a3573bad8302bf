"""Tables for other tools against the tomogram they come from."""

import csv
import importlib

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.present.export import columns, facts, to_pandas, to_xarray, write_parquet, write_table

LEVELS = [0, 0.3, 0.6, 0.9]


def add(x, by, rng):
    return x + by


SPACE = {"shift": (ta.Perturbation("shift", add, LEVELS), [0, 1, 3]), "push": ta.Perturbation("push", add, [0, 0.2])}


def scan(space=None, **options):
    inputs = np.random.default_rng(0).normal(size=(60, 1))
    options = {"strategy": "full", **options}
    return ta.scan(
        lambda x: (x[:, 0] > 1).astype(int), (inputs, np.zeros(60, int)), space or ta.Space(SPACE), **options
    )


@pytest.fixture(scope="module")
def full():
    return scan()


@pytest.fixture(scope="module")
def partial():
    """Predictions of the forest, which have no interval."""
    return scan(strategy={"use": "ordered", "max_order": 1})


def test_columns_are_the_exported_table(partial, tmp_path):
    write_table(partial, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = columns(partial)
    assert list(found) == list(rows[0])
    for name, values in found.items():
        written = [row[name] for row in rows]
        if values.dtype.kind == "U":
            assert values.tolist() == written
        else:
            assert np.array_equal(values, [float(one or "nan") for one in written], equal_nan=True)
    assert np.isnan(found["low"]).sum() == 2
    assert [found[name].dtype.kind for name in ("shift", "passes", "estimate", "source")] == ["i", "i", "f", "U"]


def test_quality_comes_along_where_it_was_measured(tmp_path):
    """Measured on single perturbations, predicted by a forest, which has no bounds, on pairs."""

    def moved(clean, perturbed):
        return np.abs(perturbed - clean)[:, 0]

    run = scan(quality={"use": moved, "orders": 1, "extra": 0, "predictor": "forest"})
    found = columns(run)
    assert list(found)[-4:] == ["quality", "quality_low", "quality_high", "quality_source"]
    assert found["quality_low"].dtype == np.float64
    assert np.isnan(found["quality_low"]).tolist() == [source == "predicted" for source in found["quality_source"]]
    assert facts(run)["quality"] == run.quality.name
    pytest.importorskip("xarray")
    grid = to_xarray(run)
    assert np.array_equal(grid.quality, run.quality.estimate)
    assert grid.quality_measured.sum() == 4
    assert grid.quality.sel(shift=1, push=0) == pytest.approx(0.3)


def test_a_data_frame_has_a_row_per_test(partial):
    pytest.importorskip("pandas")
    frame = to_pandas(partial)
    assert len(frame) == 6
    assert frame.attrs == facts(partial)
    row = frame[(frame["shift"] == 3) & (frame["push"] == 1)].iloc[0]
    assert row.estimate == partial.estimate[2, 1]
    assert np.isnan(row.low)
    assert (row.trials, row.source) == (0, "predicted")
    assert frame[frame.source == "measured"].trials.tolist() == [60] * 4


def test_a_dataset_is_addressed_by_severity(full):
    pytest.importorskip("xarray")
    found = to_xarray(full)
    assert found.estimate.dims == ("shift", "push")
    assert found.estimate.sel(shift=3, push=1).item() == full.estimate[2, 1]
    assert found["shift"].values.tolist() == [0, 1, 3]
    assert np.array_equal(found.passes, full.passes)
    assert found.measured.all()
    assert found.attrs["inferences"] == full.inferences
    found.estimate[0, 0] = 7
    assert full.estimate[0, 0] != 7


def test_an_order_sensitive_space_is_no_grid():
    run = scan(ta.Space(SPACE, order_sensitive=True))
    with pytest.raises(InputError, match="order-sensitive"):
        to_xarray(run)
    assert {"shift_place", "push_place"} <= set(columns(run))


def test_an_axis_named_like_a_column_is_refused():
    run = scan(ta.Space({"low": ta.Perturbation("shift", add, LEVELS)}))
    for use in (columns, to_xarray):
        with pytest.raises(InputError, match="axis 'low' has the name of a column"):
            use(run)


def test_parquet_holds_the_table_with_nulls(partial, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("a", "b"):
        write_parquet(partial, tmp_path / f"{name}.parquet")
    read = parquet.read_table(tmp_path / "a.parquet").to_pydict()
    wanted = columns(partial)
    assert list(read) == list(wanted)
    assert read["low"].count(None) == 2
    assert np.array_equal(np.array(read["low"], float), wanted["low"], equal_nan=True)
    assert read["source"] == wanted["source"].tolist()
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    with pytest.raises(InputError, match=r"\.parquet, got 'a\.csv'"):
        write_parquet(partial, tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [("pandas", "pandas", to_pandas), ("xarray", "xarray", to_xarray), ("pyarrow", "parquet", None)],
)
def test_what_is_not_installed_is_one_line_that_names_the_extra(full, tmp_path, monkeypatch, library, extra, use):
    real = importlib.import_module

    def missing(name, *rest):
        if name.partition(".")[0] == library:
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=rf"^{library} is not installed; .*testifai\[{extra}\]'$"):
        use(full) if use else write_parquet(full, tmp_path / "t.parquet")
    assert not list(tmp_path.iterdir())
