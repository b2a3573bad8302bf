"""Images: read from files, converted from arrays, written to files."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.files import write_bytes
from testifai.support.optional_imports import cv2
from testifai.support.types import Array

Image = NDArray[np.uint8]
PICTURES = (".png", ".jpg", ".jpeg")


def read_image(path: Path) -> Image:
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


def as_image(array: Array) -> NDArray[np.uint8] | None:
    """Return an array as grey (H, W) or RGB (H, W, 3) bytes; None if it is not an image."""
    if array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if min(array.shape, default=0) < 1 or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)):
        return None
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    # Floats are either in 0 … 255 or in 0 … 1; values outside are clipped.
    scale = 1.0 if array.dtype.kind in "iu" or array.max(initial=0) > 2 else 255.0
    return np.clip(np.rint(array * scale), 0, 255).astype(np.uint8)


def shrunk(image: Image, largest: int) -> Image:
    scale = largest / max(image.shape[:2])
    if scale >= 1:
        return image
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def data_uri(image: Image, largest: int, lossless: int) -> str:
    """Return a thumbnail of at most `largest` pixels as a data URI for HTML; above `lossless` pixels as JPEG."""
    image = shrunk(image, largest)
    kind = "png" if max(image.shape[:2]) <= lossless else "jpeg"
    blue_first = image[..., ::-1] if image.ndim == 3 else image  # as OpenCV has it
    _, encoded = cv2.imencode(f".{kind}", np.ascontiguousarray(blue_first))
    return f"data:image/{kind};base64,{base64.b64encode(encoded.tobytes()).decode()}"


def write_picture(path: Path, make: Callable[[], Image], *, field: str) -> None:
    """Write an RGB image as .png or .jpg; it is made after the name was checked."""
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"{field}: {path.name!r} is not a picture; use a name that ends in .png or .jpg")
    written, encoded = cv2.imencode(path.suffix, make()[..., ::-1])
    if not written:
        raise InputError(f"{field}: could not draw {path}")
    try:
        write_bytes(path, encoded.tobytes())
    except InputError as error:
        raise InputError(f"{field}: {error}") from error


_PNM = re.compile(rb"P[1-7]\s(?:\s*#[^\n]*\n)*\s*(\d{1,9})\s+(?:#[^\n]*\n\s*)*(\d{1,9})\s")
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of a frame, which has the size
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without content
_TIFF_WIDTH, _TIFF_HEIGHT, _TIFF_SHORT = 256, 257, 3


def size(head: bytes) -> tuple[int, int] | None:
    """Height and width of a PNG, JPEG, BMP, GIF, TIFF, WebP or PNM image from its header; None if unknown."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack_from(">II", head, 16)
        elif head.startswith(b"BM"):
            layout = "<ii" if struct.unpack_from("<I", head, 14)[0] > 12 else "<HH"
            width, height = map(abs, struct.unpack_from(layout, head, 18))
        elif head.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack_from("<HH", head, 6)
        elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            width, height = _webp(head)
        elif head.startswith(b"\xff\xd8"):
            width, height = _jpeg(head)
        elif head.startswith((b"II*\0", b"MM\0*")):
            width, height = _tiff(head)
        elif found := _PNM.match(head):
            width, height = map(int, found.groups())
        else:
            return None
    except (struct.error, IndexError, KeyError, ValueError):
        return None
    return height, width


def _webp(head: bytes) -> tuple[int, int]:
    if head[12:16] == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", head, 26))
    elif head[12:16] == b"VP8L":
        bits = struct.unpack_from("<I", head, 21)[0]
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif head[12:16] == b"VP8X":
        width, height = (int.from_bytes(head[start : start + 3], "little") + 1 for start in (24, 27))
    else:
        raise ValueError("unknown kind of WebP")
    return width, height


def _jpeg(head: bytes) -> tuple[int, int]:
    place = 2
    while head[place] == 0xFF:
        marker = head[place + 1]
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", head, place + 5)
            return width, height
        if marker == 0xFF or marker in _JPEG_BARE:
            place += 1 if marker == 0xFF else 2
        else:
            place += 2 + struct.unpack_from(">H", head, place + 2)[0]
    raise ValueError("no marker of a frame")


def _tiff(head: bytes) -> tuple[int, int]:
    order = "<" if head[:1] == b"I" else ">"
    start = struct.unpack_from(order + "I", head, 4)[0]
    found: dict[int, int] = {}
    for entry in range(struct.unpack_from(order + "H", head, start)[0]):
        place = start + 2 + 12 * entry
        tag, kind = struct.unpack_from(order + "HH", head, place)
        if tag in (_TIFF_WIDTH, _TIFF_HEIGHT):
            found[tag] = struct.unpack_from(order + ("H" if kind == _TIFF_SHORT else "I"), head, place + 8)[0]
    return found[_TIFF_WIDTH], found[_TIFF_HEIGHT]
