"""Pictures: read from files, made of arrays, written as files."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.files import write_bytes
from testifai.support.libraries import cv2

Image = NDArray[np.uint8]
PICTURES = (".png", ".jpg", ".jpeg")


def read_image(path: Path) -> Image:
    """An image file as 8-bit RGB, or grey where the file is."""
    try:
        data = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    except OSError as error:
        raise InputError(f"image: cannot read {path} ({error.strerror})") from error
    try:
        image = cv2.imdecode(data, cv2.IMREAD_ANYCOLOR) if data.size else None
    except cv2.error:
        image = None
    if image is None:
        raise InputError(f"image: {path} is not an image that can be read; give a .png or .jpg file")
    return np.ascontiguousarray(image[..., ::-1] if image.ndim == 3 else image, dtype=np.uint8)


def as_image(array: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Grey (H, W) or RGB (H, W, 3) bytes, where the array is a picture."""
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if min(array.shape, default=0) < 1 or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)):
        return None
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    # Floats are either levels 0 … 255 or 0 … 1, and whatever lies outside cannot be shown.
    scale = 1.0 if array.dtype.kind in "iu" or array.max(initial=0) > 2 else 255.0
    return np.clip(np.rint(array * scale), 0, 255).astype(np.uint8)


def shrunk(image: Image, largest: int) -> Image:
    """An image of at most so many pixels on its longer side."""
    scale = largest / max(image.shape[:2])
    if scale >= 1:
        return image
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def data_uri(image: Image, largest: int, lossless: int) -> str:
    """A thumbnail, grey or RGB, as the address of its own data: text that can stand in an HTML file.

    Images are shrunk to `largest` pixels on the longer side. Up to `lossless` pixels every one is kept as it is;
    photographs, which are larger, take less room as JPEG.

    >>> data_uri(np.zeros((28, 28), np.uint8), 192, 96)[:22]
    'data:image/png;base64,'
    """
    image = shrunk(image, largest)
    kind = "png" if max(image.shape[:2]) <= lossless else "jpeg"
    blue_first = image[..., ::-1] if image.ndim == 3 else image  # as OpenCV has it
    _, encoded = cv2.imencode(f".{kind}", np.ascontiguousarray(blue_first))
    return f"data:image/{kind};base64,{base64.b64encode(encoded.tobytes()).decode()}"


def write_picture(path: Path, make: Callable[[], Image], *, field: str) -> None:
    """Write an RGB picture as .png or .jpg; it is made once the name is known to be one of a picture."""
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"{field}: {path.name!r} is not a picture; use a name that ends in .png or .jpg")
    written, encoded = cv2.imencode(path.suffix, make()[..., ::-1])
    if not written:
        raise InputError(f"{field}: could not draw {path}")
    try:
        write_bytes(path, encoded.tobytes())
    except InputError as error:
        raise InputError(f"{field}: {error}") from error
