"""A short text that changes when the data change, and is the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from testifai.data.lazy import LazyInputs
from testifai.support.batches import Images, Pair, Side, are_images, are_pairs

_CHUNK_BYTES = 1 << 24


def chunks(inputs: NDArray[Any] | LazyInputs) -> Iterator[NDArray[Any]]:
    """The inputs a few megabytes at a time, so that a memory-mapped file is never held whole."""
    bytes_per_row = max(1, int(np.prod(inputs.shape[1:])) * inputs.dtype.itemsize)
    step = max(1, _CHUNK_BYTES // bytes_per_row)
    for start in range(0, len(inputs), step):
        yield np.asarray(inputs[start : start + step])


def fingerprint(
    inputs: NDArray[Any] | list[str] | list[Pair] | Images | LazyInputs,
    labels: NDArray[Any] | None = None,
    classes: tuple[str, ...] | None = None,
    side: Side = "both",
    *,
    former: bool = False,
    whole: bool = False,
) -> str:
    """BLAKE2b over dtype, shape and contents of inputs and labels, little-endian; and the side, for pairs of texts.

    `former` asks for what version 0.1.0 found, `whole` for all contents also of data too large to be told by them.

    >>> fingerprint(["a", "bc"]) == fingerprint(["ab", "c"])
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    if are_pairs(inputs):
        digest.update(f"pairs {len(inputs)} {side}\n".encode())
        for pair in inputs:
            for text in pair:
                _add_text(digest, text)
    elif are_images(inputs):
        digest.update(f"images {len(inputs)}\n".encode())
        for image in inputs:
            _add_array(digest, image)
    elif isinstance(inputs, list):
        digest.update(f"texts {len(inputs)}\n".encode())
        for text in cast(list[str], inputs):
            _add_text(digest, text)
    elif isinstance(inputs, LazyInputs) and (identity := _identity(inputs, former, whole)) is not None:
        digest.update(identity)
    else:
        _add_array(digest, inputs)
    digest.update(b"labels\n")
    if labels is not None:
        _add_array(digest, labels)
    for name in classes or ():
        _add_text(digest, name)
    return digest.hexdigest()


def _identity(inputs: LazyInputs, former: bool, whole: bool) -> bytes | None:
    if former:
        return inputs.former_identity()
    return inputs.whole_identity() if whole and inputs.contents is not None else inputs.identity()


def _add_text(digest: hashlib.blake2b, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    digest.update(f"{len(data)}\n".encode() + data)


def _add_array(digest: hashlib.blake2b, array: NDArray[Any] | LazyInputs) -> None:
    dtype = array.dtype.newbyteorder("<")
    digest.update(f"{dtype.str} {tuple(int(size) for size in array.shape)}\n".encode())
    for chunk in chunks(array):
        digest.update(np.ascontiguousarray(chunk.astype(dtype, copy=False)).data)
