"""The contract of perturbations, and example inputs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.table_columns import Column, Table, learn
from testifai.errors import InputError
from testifai.perturb import Perturbation, Rng, Rows, describe, get, rebuild, resolve
from testifai.perturb.images import OnArrays
from testifai.support.batches import Batch, are_pairs, take
from testifai.support.types import Bools, Floats
from testifai.testing.assertions import same


def example_table(count: int = 400, seed: int = 0) -> tuple[Floats, Table]:
    """Return rows of a table and its columns.

    Args:
        count: number of rows
        seed: random seed

    >>> rows, table = example_table(5)
    >>> rows.shape, table.names
    ((5, 5), ('level', 'amount', 'count', 'member', 'city'))
    """
    rng = np.random.default_rng(seed)
    columns = [
        Column("level"),
        Column("amount"),
        Column("count", "whole"),
        Column("member", "boolean", (False, True)),
        Column("city", "category", ("Bonn", "Köln", "Ulm")),
    ]
    numbers = rng.normal(size=(512, 5))
    numbers[:, 1] += 5
    numbers[:, 2] = rng.integers(0, 6, 512)
    numbers[:, 3] = rng.integers(0, 2, 512)
    numbers[:, 4] = rng.integers(0, 3, 512)
    numbers[1, 1] = numbers[2, 4] = np.nan
    return numbers[:count].copy(), learn(columns, numbers)


def _with_columns(perturbation: Perturbation, table: Table) -> Perturbation:
    """Return the same perturbation for plain arrays with these columns."""

    def function(batch: Any, parameter: Any, rng: Rng) -> Any:
        made = perturbation.function(Rows(batch, table, perturbation.columns), parameter, rng)
        return made.values if isinstance(made, Rows) else made

    return replace(perturbation, function=function, table=False)


# Every severity is tried on these, the weakest and the strongest on the others.
_MAIN_FORMS = [(28, 28), (32, 32, 3)]
_OTHER_FORMS = [(16, 16), (28, 28, 1), (33, 47, 3), (72, 80, 3)]
# Levels of a sweep, and how often its largest step is halved to tell a steep place from a jump.
_SWEEP, _HALVINGS = 9, 5
# How far, in pixels, a moved box may be from where the image shows it: interpolation blunts its corners.
_BOX_TOLERANCE = 2.5
# How far, in grey levels, a number may be from the whole one it was rounded to.
_ROUNDING = 0.501


def check_perturbation(
    perturbation: Perturbation | str,
    batch: Batch | None = None,
    *,
    growing: bool | None = None,
    table: Table | None = None,
) -> None:
    """Raise AssertionError if a perturbation breaks its contract.

    It must keep shape and dtype, not change its argument, be deterministic and independent of the batch, do nothing at
    severity 0, and be identified by its description. If it is `growing`, the distance to the original must increase
    with severity. Boxes must move with the image, levels must change images continuously, and a smooth formula must
    equal the perturbation up to rounding.

    Args:
        perturbation: by name or as an object
        batch: at least three inputs; None: uint8 images of several sizes, grey, colour and constant, or example rows
        growing: whether the distance to the original increases with severity; None: the perturbation's own flag
        table: the columns of the batch

    >>> check_perturbation("mnist_c.zoom")
    """
    subject = resolve(perturbation)
    growing = subject.growing if growing is None else growing
    severities = range(1, len(subject.severities))
    registered = None
    with suppress(InputError):
        registered = get(subject.name)
    if registered is subject and rebuild(json.loads(json.dumps(describe(subject)))) is not subject:
        raise AssertionError(f"{subject.name}: its description does not lead back to it")
    if subject.table:
        batch, table = (batch, table) if batch is not None and table is not None else example_table()
        subject = _with_columns(subject, table)
    if batch is not None:
        _check_batch(subject, batch, severities, "the given batch")
        if growing:
            _check_growth(subject, batch)
        return
    ends = (1, severities[-1])
    for form in _MAIN_FORMS:
        _check_batch(subject, example_photographs(4, form), severities, f"images of shape {form}")
    for form in _OTHER_FORMS:
        _check_batch(subject, example_photographs(3, form), ends, f"images of shape {form}")
    for level in (0, 255):
        plain = np.full((3, 28, 28), level, np.uint8)
        _check_batch(subject, plain, ends, f"images of constant grey level {level}")
    photographs = example_photographs(24)
    if growing:
        _check_growth(subject, photographs)
    if subject.levels is not None:
        _check_levels(subject, photographs[:6])
    if subject.moves:
        _check_boxes(subject)
    if subject.smooth is not None:
        _check_smooth(subject)


def example_images(count: int, form: tuple[int, ...] = (28, 28), seed: int = 0) -> NDArray[np.uint8]:
    """Return digit-like images: a light stroke with two bends on black, tinted if there are three channels.

    Args:
        count: number of images
        form: (height, width) or (height, width, channels)
        seed: random seed

    >>> example_images(5, (28, 28, 3)).shape
    (5, 28, 28, 3)
    """
    rng = np.random.default_rng(seed)
    height, width = form[:2]
    pixels = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1)
    corners = rng.uniform(0.2, 0.8, size=(count, 4, 2)) * (width - 1, height - 1)
    reach = min(height, width) / 28
    distance = np.stack([_distance_to_path(pixels, path) for path in corners])
    stroke = np.clip(2.2 - distance / reach, 0, 1)
    if len(form) == 3:
        stroke = stroke[..., None] * (rng.uniform(0.5, 1, size=(count, 1, 1, 3)) if form[2] == 3 else 1)
    return np.rint(255 * stroke).astype(np.uint8)


def example_photographs(count: int, form: tuple[int, ...] = (32, 32, 3), seed: int = 0) -> NDArray[np.uint8]:
    """Return images like photographs: variation at all scales, correlated channels, objects with edges.

    Args:
        count: number of images
        form: (height, width) or (height, width, channels)
        seed: random seed

    >>> example_photographs(5, (28, 28)).shape
    (5, 28, 28)
    """
    rng = np.random.default_rng(seed)
    height, width = form[:2]
    channels = form[2] if len(form) == 3 else 1
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    # Amplitudes fall with frequency; this power gives neighbours that are as alike as in CIFAR-10.
    amplitude = np.maximum(frequency, 1 / max(height, width)) ** -1.8
    waves = np.fft.rfft2(rng.normal(size=(count, channels + 1, height, width))) * amplitude
    fields = np.fft.irfft2(waves, s=(height, width))
    fields /= fields.std(axis=(2, 3), keepdims=True)
    scene = fields[:, :1] + 0.4 * fields[:, 1:]
    y, x = np.mgrid[:height, :width]
    for _ in range(3):
        across, down, wide, high = rng.uniform([0, 0, 0.1, 0.1], [1, 1, 0.3, 0.3], size=(count, 4)).T[..., None, None]
        inside = ((x / width - across) / wide) ** 2 + ((y / height - down) / high) ** 2 < 1
        colour = rng.uniform(-2, 2, size=(count, channels, 1, 1))
        scene = np.where(inside[:, None], colour + 0.3 * scene, scene)
    pixels = np.moveaxis(np.clip(np.rint(118 + 50 * scene), 0, 255), 1, -1)
    return pixels.astype(np.uint8).reshape(count, *form)


def _distance_to_path(pixels: NDArray[np.int64], path: Floats) -> Floats:
    nearest = np.full(pixels.shape[:2], np.inf)
    for start, end in pairwise(path):
        along = np.clip((pixels - start) @ (end - start) / ((end - start) @ (end - start)), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(pixels - start - along[..., None] * (end - start), axis=-1))
    return nearest


def _check_batch(subject: Perturbation, batch: Batch, severities: Iterable[int], what: str) -> None:
    count = len(batch)
    if count < 3:
        raise InputError(f"batch: it holds {count} inputs; give at least three")
    indices = np.arange(count) * 5 + 2
    off = _apply(subject, batch, 0, indices, what)
    _require(same(off, batch), subject, "changes inputs at severity 0", what)
    for severity in severities:
        where = f"{what}, severity {severity}"
        before = batch.copy()
        whole = _apply(subject, batch, severity, indices, where)
        _require(same(batch, before), subject, "changes its argument", where)
        _require(_finite(whole) or not _finite(batch), subject, "makes numbers that are not finite", where)
        again = _apply(subject, batch, severity, indices, where)
        _require(same(again, whole), subject, "does not repeat itself", where)
        # One input, inputs in reverse order, and a repeated input.
        for rows in (np.array([count - 1]), np.arange(count - 2, -1, -1), np.array([count - 1, 0, count - 1])):
            part = _apply(subject, take(batch, rows), severity, indices[rows], where)
            if not same(part, take(whole, rows)):
                raise AssertionError(
                    f"{subject.name}: an input's result depends on the batch it is in ({where}); "
                    "draw random numbers from rng, and treat each input by itself"
                )
        if isinstance(batch, np.ndarray):
            result = _apply(subject, np.asfortranarray(batch), severity, indices, where)
            _require(same(result, whole), subject, "depends on the memory layout", where)


def _check_growth(subject: Perturbation, batch: Batch) -> None:
    indices = np.arange(len(batch))
    severities = range(1, len(subject.severities))
    distances = [_distance(_apply(subject, batch, s, indices, f"severity {s}"), batch) for s in severities]
    listing = ", ".join(f"{distance:.4g}" for distance in distances)
    for earlier, later in pairwise([0.0, *distances]):
        # One part in a hundred is left to chance.
        if later < 0.99 * earlier or later == 0:
            raise AssertionError(
                f"{subject.name}: the distance to the original does not grow with severity "
                f"({listing}); pass growing=False if it need not"
            )


def _check_levels(subject: Perturbation, images: NDArray[np.uint8]) -> None:
    """Check that levels start at the original and have no jumps: a step of the sweep must shrink when it is halved."""
    assert subject.levels is not None
    off, strongest = subject.levels

    def at(share: float) -> Batch:
        level = strongest if share == 1 else off + share * (strongest - off)
        with _failing(subject, f"at level {level:g}"):
            return subject.apply_level(images, level, seed=7)

    _require(same(at(0), images), subject, "changes inputs at the level that is off", f"level {off:g}")
    shares = [step / (_SWEEP - 1) for step in range(_SWEEP)]
    sweep = [at(share) for share in shares]
    whole = _distance(sweep[-1], images)
    _require(whole > 0, subject, "changes nothing at its strongest level", f"level {strongest:g}")
    steps = [_distance(*pair) for pair in pairwise(sweep)]
    # The first step, for an off end that is none, and the largest.
    for place in {0, int(np.argmax(steps))}:
        low, high = shares[place : place + 2]
        before, after = sweep[place : place + 2]
        for _ in range(_HALVINGS):
            middle = at((low + high) / 2)
            if _distance(middle, before) > _distance(after, middle):
                high, after = (low + high) / 2, middle
            else:
                low, before = (low + high) / 2, middle
        jump = _distance(after, before)
        # A third of a step is left after five halvings, and more than rounding makes: this is no steep place.
        _require(
            jump < max(steps[place] / 3, 0.02 * whole, 1),
            subject,
            f"its levels jump by {jump:.3g} grey levels",
            f"level {off + low * (strongest - off):g}",
        )


def _check_boxes(subject: Perturbation) -> None:
    """Check that a box moves with the light rectangle inside it, and does not depend on its batch."""
    height, width = 48, 60
    box = np.array([20.0, 16.0, 42.0, 34.0])
    dark = np.zeros((4, height, width), np.uint8)
    light = dark.copy()
    light[:, 16:34, 20:42] = 255
    indices = np.arange(4) * 5 + 2
    given = [np.stack([box, [0, 0, width, height]]), box[None], np.empty((0, 4)), box[None]]
    for severity in range(1, len(subject.severities)):
        where = f"boxes, severity {severity}"
        with _failing(subject, f"on {where}"):
            moved, alone = (
                subject.apply_boxes(given[first:], severity, (height, width), seed=7, indices=indices[first:])
                for first in (0, 3)
            )
        _require(same(alone[0], moved[3]), subject, "a box depends on the batch it is in", where)
        # What the perturbation does to a dark image is no part of the rectangle.
        changed = [np.asarray(_apply(subject, images, severity, indices, where), int) for images in (light, dark)]
        seen = changed[0] - changed[1] > 127
        for rows, mask in zip(moved, seen, strict=True):
            inside = (rows >= 0) & (rows <= [width, height, width, height])
            _require(bool(inside.all()), subject, "moves a box out of the image", where)
            _require(bool((rows[:, :2] <= rows[:, 2:]).all()), subject, "turns a box inside out", where)
            if len(rows):
                _check_box(subject, rows[0], mask, where)


def _check_box(subject: Perturbation, row: Floats, mask: Bools, where: str) -> None:
    across, down = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    if len(across) == 0:
        near = bool(min(row[2:] - row[:2]) <= _BOX_TOLERANCE)
        shown = "nowhere"
    else:
        hull = np.array([across[0], down[0], across[-1] + 1, down[-1] + 1])
        near = bool(np.abs(row - hull).max() <= _BOX_TOLERANCE)
        shown = f"at {hull.tolist()}"
    _require(near, subject, f"moves a box to {row.round(1).tolist()} and what it surrounds is {shown}", where)


def _check_smooth(subject: Perturbation) -> None:
    """Check that the smooth formula, rounded and clipped, is the perturbation; it may reject colour, or grey."""
    assert subject.smooth is not None
    fitting = 0
    for form in ((28, 28, 1), (32, 32, 3)):
        images = example_photographs(3, form)
        for severity, parameter in enumerate(subject.severities):
            try:
                made = np.clip(subject.smooth(OnArrays, images.astype(np.float64), parameter), 0, 255)
            except InputError:
                continue
            where = f"images of shape {form}, severity {severity}"
            off = np.abs(made - _apply(subject, images, severity, np.arange(3), where)).max()
            _require(bool(off <= _ROUNDING), subject, f"its smooth formula is off by {off:.3g} grey levels", where)
            fitting += 1
    _require(fitting > 0, subject, "its smooth formula refuses every image", "grey and colour")


@contextmanager
def _failing(subject: Perturbation, where: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise AssertionError(f"{subject.name}: fails {where}: {error}") from error


def _apply(subject: Perturbation, batch: Batch, severity: int, indices: NDArray[np.int64], where: str) -> Batch:
    with _failing(subject, f"on {where}"):
        return subject.apply(batch, severity, seed=7, indices=indices)


def _require(holds: bool, subject: Perturbation, complaint: str, where: str) -> None:
    if not holds:
        raise AssertionError(f"{subject.name}: {complaint} ({where})")


def _finite(batch: Batch) -> bool:
    return isinstance(batch, list) or batch.dtype.kind not in "fc" or bool(np.isfinite(batch).all())


def _distance(changed: Batch, original: Batch) -> float:
    """Return the mean absolute difference of numbers, or the mean share of a text that differs."""
    if isinstance(original, list):
        texts = (chain.from_iterable(batch) if are_pairs(batch) else batch for batch in (original, changed))
        pairs = zip(*texts, strict=True)
        return float(np.mean([1 - difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs]))
    if original.dtype.kind in "biuf":
        before, after = np.asarray(original, dtype=np.float64), np.asarray(changed, dtype=np.float64)
        # A value that is missing now, as in tables, is off by one.
        return float(np.nanmean(np.where(np.isnan(after) & ~np.isnan(before), 1, np.abs(after - before))))
    return float(np.mean(np.asarray(changed) != original))
