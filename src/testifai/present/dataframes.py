"""A tomogram for other tools: a pandas DataFrame, an xarray Dataset with named axes, a Parquet file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.present.export import score_columns, table
from testifai.support.files import write_bytes
from testifai.support.libraries import load
from testifai.tomogram import Tomogram

BOUNDS = ("estimate", "low", "high")
QUALITY = {"quality": "estimate", "quality_low": "low", "quality_high": "high"}  # where it was measured
COLUMNS = {*BOUNDS, *QUALITY, "order", "passes", "trials", "source", "measured", "quality_source", "quality_measured"}


def columns(tomogram: Tomogram) -> dict[str, NDArray[Any]]:
    """A column for every field of the exported table, a row for every test; NaN where there is no number.

    >>> import testifai as ta
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> found = columns(ta.scan(model, (rows, model(rows)), ta.Space({"shift": shift}), strategy="full"))
    >>> list(found)
    ['shift', 'order', 'passes', 'trials', 'estimate', 'low', 'high', 'source']
    >>> found["passes"].tolist()
    [40, 36, 21]
    """
    _check_names(tomogram)
    header, rows = table(tomogram)
    by_column = zip(*rows, strict=True)
    numbers = {*BOUNDS, *QUALITY, *_scored(tomogram)}
    return {
        name: np.array(values, np.float64 if name in numbers else None)
        for name, values in zip(header, by_column, strict=True)
    }


def to_pandas(tomogram: Tomogram) -> Any:
    """A DataFrame with the rows of the exported table; `attrs` says what the run is."""
    pandas = load("pandas", extra="pandas")
    frame = pandas.DataFrame(columns(tomogram))
    frame.attrs.update(facts(tomogram))
    return frame


def to_xarray(tomogram: Tomogram) -> Any:
    """A Dataset over the severities: `found.estimate.sel(zoom=3)`, `found.low.mean("blur")`."""
    space = tomogram.space
    if space.order_sensitive:
        raise InputError("to_xarray: an order-sensitive space is no grid; use to_pandas instead")
    _check_names(tomogram)
    xarray = load("xarray", extra="xarray")
    numbers = {name: getattr(tomogram, name) for name in (*BOUNDS, "passes", "trials")}
    for score in tomogram.scores if tomogram.score is None else ():
        found = tomogram.scored(score)
        numbers |= dict(zip(score_columns(score), (found.estimate, found.low, found.high), strict=True))
    numbers["measured"] = tomogram.rests_on_own_trials.reshape(space.shape)
    if (scores := tomogram.quality) is not None:
        numbers |= {name: getattr(scores, field) for name, field in QUALITY.items()}
        numbers["quality_measured"] = np.isin(np.arange(space.size), scores.measured).reshape(space.shape)
    return xarray.Dataset(
        {name: (space.names, np.array(values)) for name, values in numbers.items()},
        coords={axis.name: list(axis.severities) for axis in space.axes},
        attrs=facts(tomogram),
    )


def write_parquet(tomogram: Tomogram, path: Path) -> None:
    """The exported table as a Parquet file; equal runs give equal files."""
    if path.suffix != ".parquet":
        raise InputError(f"export: a Parquet file's name ends in .parquet, got {path.name!r}")
    arrow = load("pyarrow", extra="parquet")
    parquet = load("pyarrow.parquet", extra="parquet")
    buffer = io.BytesIO()
    # Nothing is NaN in such a file: what does not exist is null, as in the other exports.
    arrays = {name: arrow.array(values, from_pandas=True) for name, values in columns(tomogram).items()}
    parquet.write_table(arrow.table(arrays), buffer)
    write_bytes(path, buffer.getvalue())


def facts(tomogram: Tomogram) -> dict[str, Any]:
    """What a table alone does not say."""
    return {
        "clean_accuracy": tomogram.base,
        "clean_inputs": tomogram.clean.trials,
        "inferences": tomogram.inferences,
        "inputs": tomogram.outcomes.inputs,
        "population": tomogram.population,
        **({} if tomogram.quality is None else {"quality": tomogram.quality.name}),
    }


def _scored(tomogram: Tomogram) -> list[str]:
    """The columns of the run's scores."""
    return [column for name in tomogram.scores for column in score_columns(name)]


def _check_names(tomogram: Tomogram) -> None:
    for name in tomogram.space.names:
        if name in {*COLUMNS, *_scored(tomogram)}:
            raise InputError(f"export: axis {name!r} has the name of a column; give it another name in [space]")
