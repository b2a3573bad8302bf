"""Runs as files for other programs, without times: equal runs export equal files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from testifai.data.annotations import COLUMNS
from testifai.engine.subject import ShownInputs
from testifai.errors import InputError
from testifai.runs.outcomes import DETECTIONS, EXPECTED
from testifai.space import LISTED
from testifai.support.batches import are_images
from testifai.support.bits import pack
from testifai.support.files import write_bytes, write_npz
from testifai.support.formatting import harmless
from testifai.support.optional_imports import load
from testifai.support.types import Array, Record
from testifai.tomogram import Tomogram
from testifai.tomogram.average_precision import check_kept

BOUNDS = ("estimate", "low", "high")
QUALITY = {"quality": "estimate", "quality_low": "low", "quality_high": "high"}  # where it was measured
TABLE_COLUMNS = {*BOUNDS, *QUALITY, "order", "passes", "trials", "source", "measured"}
TABLE_COLUMNS |= {"quality_source", "quality_measured"}


def _check_names(tomogram: Tomogram) -> None:
    for name in tomogram.space.names:
        if name in TABLE_COLUMNS or any(name in score_columns(score) for score in tomogram.scores):
            raise InputError(f"export: axis {name!r} has the name of a column; give it another name in [space]")


def columns(tomogram: Tomogram) -> dict[str, Array]:
    """A column for every field of the exported table, a row for every test; NaN if there is no number."""
    _check_names(tomogram)
    return _columns(tomogram)


def _columns(tomogram: Tomogram) -> dict[str, Array]:
    """The table of all tests or, if they are not listed, of those that were tried."""
    space, score = tomogram.space, tomogram.settings.score
    ids = np.arange(space.size) if space.listed else tomogram.estimator.measured_ids
    found, sigmas = tomogram.estimator.table(ids), space.matrix(ids)
    places = [f"{name}_place" for name in space.names] if space.order_sensitive else []
    table: dict[str, Array] = {
        **dict(zip([*space.names, *places], sigmas.T, strict=True)),
        "order": (sigmas[:, : len(space.names)] > 0).sum(axis=1),
        "passes" if score is None else "sum": found.passes,
        **{name: getattr(found, name) for name in ("trials", *BOUNDS)},
        "source": np.where(found.alone, "measured", np.where(np.isnan(found.estimate), "unknown", "predicted")),
    }
    for name in tomogram.scores if score is None else ():
        means = tomogram.scored(name).estimator.table(ids)
        table |= dict(zip(score_columns(name), (means.estimate, means.low, means.high), strict=True))
    if (scores := tomogram.quality) is not None:
        table |= {name: getattr(scores, field).reshape(-1)[ids] for name, field in QUALITY.items()}
        table["quality_source"] = np.where(np.isin(ids, scores.measured), "measured", "predicted")
    return table


def table(tomogram: Tomogram) -> tuple[list[str], list[list[Any]]]:
    """Header and one row per test; None if there is no number."""
    found = _columns(tomogram)
    rows = zip(*(column.tolist() for column in found.values()), strict=True)
    return list(found), [[None if cell != cell else cell for cell in row] for row in rows]


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
    for score in tomogram.scores if tomogram.settings.score is None else ():
        found = tomogram.scored(score)
        numbers |= dict(zip(score_columns(score), (found.estimate, found.low, found.high), strict=True))
    numbers["measured"] = tomogram.estimator.rests_on_own_trials.reshape(space.shape)
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


def facts(tomogram: Tomogram) -> Record:
    """Facts about the run that a table of its tests does not contain."""
    return {
        "clean_accuracy": tomogram.base,
        "clean_inputs": tomogram.estimator.clean.trials,
        "inferences": tomogram.inferences,
        "inputs": tomogram.outcomes.inputs,
        "population": tomogram.settings.population,
        **({} if tomogram.quality is None else {"quality": tomogram.quality.name}),
    }


def score_columns(name: str) -> tuple[str, str, str]:
    """Names of the columns of a score: its mean and the bounds of the mean."""
    return name, f"{name}_low", f"{name}_high"


def write_table(tomogram: Tomogram, path: Path) -> None:
    """The table as .csv or .json, by the file's ending."""
    header, rows = table(tomogram)
    if path.suffix == ".json":
        text = json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=1) + "\n"
    elif path.suffix == ".csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(map(harmless, header))
        writer.writerows(["" if cell is None else harmless(cell) for cell in row] for row in rows)
        text = buffer.getvalue()
    else:
        raise InputError(f"export: cannot tell a format from {path.name!r}; use .csv or .json (or --grid with .npz)")
    write_bytes(path, text.encode())


def write_grid(tomogram: Tomogram, path: Path) -> None:
    """Every outcome of a fully measured run as a recorded grid (npz; bits packed along the inputs)."""
    space, outcomes = tomogram.space, tomogram.outcomes
    if space.order_sensitive:
        raise InputError("export: an order-sensitive space is no grid; export a table instead")
    if not space.listed:
        raise InputError(
            f"export: a grid needs every input on every test, of at most {LISTED:,}, and the space has {space.size:,}; "
            "export a table instead: it has the tests that were tried"
        )
    incomplete = int((tomogram.trials < outcomes.inputs).sum())
    if incomplete:
        raise InputError(
            f"export: a grid needs every input on every test; {incomplete} of {space.size} tests are incomplete "
            "(run with strategy = 'full' and no stopping or budget)"
        )
    back = np.argsort(tomogram.order)
    places = np.arange(outcomes.inputs)
    passes = np.stack([pack(outcomes.passed(i, places)[back]) for i in range(space.size)])
    arrays: dict[str, Array] = {
        "axes": np.array(space.names),
        "inputs": np.array(outcomes.inputs),
        "passes": passes.reshape(*space.shape, -1),
    }
    values = None
    if "value" in outcomes.kept_names():
        values = np.stack([outcomes.kept(i, "value")[back] for i in range(space.size)])
    if values is not None and tomogram.scores:
        arrays |= {"score": np.array(tomogram.scores[0]), "scores": values.reshape(*space.shape, -1)}
    elif values is not None:
        # Stored is margin times scale, the largest just fitting.
        scale = 127 / (float(np.abs(values).max()) or 127.0)
        margins = np.clip(np.rint(values * scale), -127, 127).astype(np.int8)
        # A margin too small for a step of the scale keeps its sign.
        margins[(margins == 0) & (values < 0)] = -1
        arrays |= {"margins": margins.reshape(*space.shape, -1), "margin_scale": np.array(scale)}
    write_npz(path, arrays)


def write_boxes(tomogram: Tomogram, path: Path) -> int:
    """Write every box that a run kept, found or expected, with its test and input (npz); return their number."""
    check_kept(tomogram.outcomes, "export")
    if path.suffix != ".npz":
        raise InputError(f"export: boxes are written as .npz, got {path.name!r}")
    found: list[tuple[Array, ...]] = []
    for test in tomogram.estimator.measured_ids.tolist():
        places, _ = tomogram.outcomes.trials(test)
        for name in (DETECTIONS, EXPECTED):
            images = tomogram.outcomes.boxes(name, test, places)
            inputs = np.repeat(tomogram.order[places], [len(boxes) for boxes in images])
            boxes = np.concatenate([np.zeros((0, COLUMNS), np.float32), *images])
            alike = np.ones(len(boxes), bool)
            found.append((np.full(len(boxes), test), inputs, boxes, alike if name == EXPECTED else ~alike))
    tests, inputs, rows, expected = (np.concatenate(column) for column in zip(*found, strict=True))
    sigmas = tomogram.space.matrix(tests)[:, : len(tomogram.space.axes)]
    axes = np.array(tomogram.space.names)
    write_npz(path, {"axes": axes, "severities": sigmas, "inputs": inputs, "boxes": rows, "expected": expected})
    return len(rows)


def write_inputs(shown: ShownInputs, sigma: tuple[int, ...], path: Path, limit: int | None = None) -> int:
    """The inputs as a configuration shows them to the model, in the data's order; returns how many."""
    shown.space.id(sigma)  # refuses what is not in the space
    count = min(limit or len(shown.order), len(shown.order))
    places = np.argsort(shown.order)[:count]
    batch = shown.composite(sigma, places)
    labels = None if shown.data.labels is None else shown.data.labels[:count]
    if are_images(batch):
        raise InputError("export: images of different sizes make no array; resize them with size = [height, width]")
    if isinstance(batch, list):
        lines = [{"text": text} for text in batch]
        if labels is not None:
            lines = [{**line, "label": label} for line, label in zip(lines, labels.tolist(), strict=True)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        # Half a surrogate cannot be written as UTF-8; its escape means the same in JSON.
        write_bytes(path, text.encode("utf-8", "backslashreplace"))
    else:
        if path.suffix != ".npz":
            raise InputError(f"export: arrays of inputs are written as .npz, got {path.name!r}")
        write_npz(path, {"x": batch} if labels is None else {"x": batch, "y": labels})
    return count
