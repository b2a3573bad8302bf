"""Contract tests for what a user adds: run them over your own from your own test suite."""

from __future__ import annotations

import difflib
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.perturb import Perturbation, describe, get, rebuild, resolve
from testifai.rows import Batch, take

_IMAGE_FORMS = [(28, 28), (28, 28, 1), (28, 28, 3), (20, 36), (16, 16)]


def check_perturbation(perturbation: Perturbation | str, batch: Batch | None = None, *, growing: bool = True) -> None:
    """Raise AssertionError where a perturbation breaks its contract.

    It must keep shape and dtype, leave its argument alone, repeat itself, give an input the same result in
    every batch, do nothing at severity 0 and, unless `growing` is False, move away from the original as
    severity grows. Without a batch (at least three inputs) it is tried on uint8 images, grey and colour, of
    several sizes.

    >>> check_perturbation("mnist_c.zoom")
    """
    subject = resolve(perturbation)
    _check_description(subject)
    if batch is not None:
        _check_batch(subject, batch, "the given batch")
        if growing:
            _check_growth(subject, batch)
        return
    for form in _IMAGE_FORMS:
        _check_batch(subject, example_images(6, form), f"images of shape {form}")
    for level in (0, 255):
        _check_batch(subject, np.full((3, 28, 28), level, np.uint8), f"images of constant grey level {level}")
    if growing:
        _check_growth(subject, example_images(64))


def example_images(count: int, form: tuple[int, ...] = (28, 28), seed: int = 0) -> NDArray[np.uint8]:
    """Digit-like images: a light stroke with two bends on black, one tint each where there is colour.

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


def _distance_to_path(pixels: NDArray[np.int64], path: NDArray[np.float64]) -> NDArray[np.float64]:
    distances = []
    for start, end in pairwise(path):
        along = np.clip((pixels - start) @ (end - start) / ((end - start) @ (end - start)), 0, 1)
        distances.append(np.linalg.norm(pixels - start - along[..., None] * (end - start), axis=-1))
    nearest: NDArray[np.float64] = np.min(distances, axis=0)
    return nearest


def _check_batch(subject: Perturbation, batch: Batch, what: str) -> None:
    count = len(batch)
    if count < 3:
        raise InputError(f"batch: it holds {count} inputs; give at least three")
    indices = np.arange(count) * 5 + 2
    off = _apply(subject, batch, 0, indices, what)
    _require(_same(off, batch), subject, "changes inputs at severity 0", what)
    for severity in range(1, len(subject.severities)):
        where = f"{what}, severity {severity}"
        before = batch.copy()
        whole = _apply(subject, batch, severity, indices, where)
        _require(_same(batch, before), subject, "changes its argument", where)
        _require(_finite(whole) or not _finite(batch), subject, "makes numbers that are not finite", where)
        again = _apply(subject, batch, severity, indices, where)
        _require(_same(again, whole), subject, "does not repeat itself", where)
        _check_places(subject, batch, whole, severity, indices, where)
        if isinstance(batch, np.ndarray):
            for layout in (np.repeat(batch, 2, axis=0)[::2], np.asfortranarray(batch)):
                result = _apply(subject, layout, severity, indices, where)
                _require(_same(result, whole), subject, "depends on the memory layout", where)


def _check_places(
    subject: Perturbation, batch: Batch, whole: Batch, severity: int, indices: NDArray[np.int64], where: str
) -> None:
    """An input alone, and the inputs in another order, must come out as they did in the whole batch."""
    last = len(batch) - 1
    for rows in (np.array([last]), np.arange(last, -1, -1), np.array([1, 0])):
        part = _apply(subject, take(batch, rows), severity, indices[rows], where)
        if not _same(part, take(whole, rows)):
            raise AssertionError(
                f"{subject.name}: an input's result depends on the batch it is in ({where}); "
                "draw random numbers from rng, and treat each input by itself"
            )


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


def _check_description(subject: Perturbation) -> None:
    try:
        registered = get(subject.name) is subject
    except InputError:
        registered = False
    if registered and rebuild(describe(subject)) is not subject:
        raise AssertionError(f"{subject.name}: its description does not lead back to it")


def _apply(subject: Perturbation, batch: Batch, severity: int, indices: NDArray[np.int64], where: str) -> Batch:
    try:
        return subject.apply(batch, severity, seed=7, indices=indices)
    except InputError as error:
        raise AssertionError(f"{subject.name}: fails on {where}: {error}") from error


def _require(holds: bool, subject: Perturbation, complaint: str, where: str) -> None:
    if not holds:
        raise AssertionError(f"{subject.name}: {complaint} ({where})")


def _finite(batch: Batch) -> bool:
    return isinstance(batch, list) or batch.dtype.kind not in "fc" or bool(np.isfinite(batch).all())


def _same(one: Batch, other: Batch) -> bool:
    if isinstance(one, list) or isinstance(other, list):
        return one == other
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def _distance(changed: Batch, original: Batch) -> float:
    """Mean absolute difference of numbers, mean share of a text that differs."""
    if isinstance(original, list):
        pairs = zip(original, changed, strict=True)
        return float(np.mean([1 - difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs]))
    if original.dtype.kind in "biuf":
        difference = np.asarray(changed, dtype=np.float64) - np.asarray(original, dtype=np.float64)
        return float(np.nanmean(np.abs(difference)))
    return float(np.mean(np.asarray(changed) != original))
