"""How large an image is, from the first bytes of its file: what is too large is never decoded."""

from __future__ import annotations

import re
import struct

_PNM = re.compile(rb"P[1-7]\s(?:\s*#[^\n]*\n)*\s*(\d{1,9})\s+(?:#[^\n]*\n\s*)*(\d{1,9})\s")
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of a frame, which holds the size
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers that nothing follows
_TIFF_WIDTH, _TIFF_HEIGHT, _TIFF_SHORT = 256, 257, 3


def size(head: bytes) -> tuple[int, int] | None:
    """Height and width of a PNG, JPEG, BMP, GIF, TIFF, WebP or PNM image; None where they cannot be told.

    >>> size(b"GIF89a" + struct.pack("<HH", 640, 480))
    (480, 640)
    """
    try:
        return _size(head)
    except (struct.error, IndexError, ValueError):
        return None


def _size(head: bytes) -> tuple[int, int] | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = struct.unpack_from(">II", head, 16)
    elif head.startswith(b"BM"):
        layout = "<ii" if struct.unpack_from("<I", head, 14)[0] > 12 else "<HH"
        width, height = map(abs, struct.unpack_from(layout, head, 18))
    elif head.startswith((b"GIF87a", b"GIF89a")):
        width, height = struct.unpack_from("<HH", head, 6)
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _webp(head)
    elif head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    elif head.startswith((b"II*\0", b"MM\0*")):
        return _tiff(head)
    elif found := _PNM.match(head):
        width, height = map(int, found.groups())
    else:
        return None
    return height, width


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", head, 26))
    elif kind == b"VP8L":
        bits = struct.unpack_from("<I", head, 21)[0]
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8X":
        width, height = (int.from_bytes(head[start : start + 3], "little") + 1 for start in (24, 27))
    else:
        return None
    return height, width


def _jpeg(head: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 4 <= len(head):
        if head[place] != 0xFF:
            return None
        marker = head[place + 1]
        if marker == 0xFF or marker in _JPEG_BARE:
            place += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", head, place + 5)
            return height, width
        place += 2 + struct.unpack_from(">H", head, place + 2)[0]
    return None


def _tiff(head: bytes) -> tuple[int, int] | None:
    """The largest of the images in the first directory; a file may say its size in two lengths of numbers."""
    order = "<" if head[:1] == b"I" else ">"
    start = struct.unpack_from(order + "I", head, 4)[0]
    found: dict[int, int] = {}
    for entry in range(struct.unpack_from(order + "H", head, start)[0]):
        place = start + 2 + 12 * entry
        tag, kind = struct.unpack_from(order + "HH", head, place)
        if tag in (_TIFF_WIDTH, _TIFF_HEIGHT):
            found[tag] = struct.unpack_from(order + ("H" if kind == _TIFF_SHORT else "I"), head, place + 8)[0]
    return (found[_TIFF_HEIGHT], found[_TIFF_WIDTH]) if len(found) == 2 else None
