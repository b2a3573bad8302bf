"""A sheet of thumbnails to label by: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.support import images

LARGEST = 192  # pixels on the longer side; larger images are shrunk, smaller ones drawn larger by the browser
_JPEG_ABOVE = 96  # photographs take less room as JPEG, small images lose too much by it

_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 24px; color: #222; background: #fff; }
figure { display: inline-block; vertical-align: top; margin: 0 10px 14px 0; padding: 8px; width: 144px;
  border: 1px solid #ccc; border-radius: 6px; break-inside: avoid; }
img { display: block; width: 144px; height: 144px; object-fit: contain; background: #eee; image-rendering: pixelated; }
img.large { image-rendering: auto; }
figcaption { margin-top: 6px; overflow-wrap: anywhere; }
small { color: #666; }
"""


@dataclass(frozen=True)
class Card:
    """One example on the sheet."""

    example: int
    image: NDArray[Any]
    predicted: str
    confidence: float | None
    where: str


def page(title: str, file_name: str, cards: Sequence[Card], classes: Sequence[str] = ()) -> bytes:
    """The sheet, its cards in the order of the rows of the file to fill in."""
    accepted = f"<p>Classes: {html.escape(', '.join(classes))}</p>" if classes else ""
    figures = "\n".join(_figure(row, card) for row, card in enumerate(cards, start=1))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{html.escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
<p>{len(cards)} examples in the order of the rows of <b>{html.escape(file_name)}</b>. Write what each one is into the
column <b>label</b> there. Label from the top: what is filled without a gap can be used at once.</p>
{accepted}
<main>
{figures}
</main>
</body>
</html>
""".encode("utf-8", "replace")


def is_image(inputs: Any) -> bool:
    """Whether inputs can be drawn: (N, H, W) or (N, H, W, C) or (N, C, H, W) with 1, 3 or 4 channels."""
    shape: tuple[int, ...] = getattr(inputs, "shape", ())
    return len(shape) == 3 or (len(shape) == 4 and (shape[3] in (1, 3, 4) or shape[1] in (1, 3, 4)))


def data_uri(image: NDArray[Any]) -> str:
    """A thumbnail as text that can stand in an HTML file."""
    return images.data_uri(drawable(image), LARGEST, _JPEG_ABOVE)


def drawable(image: NDArray[Any]) -> NDArray[np.uint8]:
    """An image of any kind of numbers, channels first or last, as grey or RGB bytes."""
    return _eight_bits(_channels_last(image))


def thumbnail(image: NDArray[Any]) -> NDArray[np.uint8]:
    """An image no larger than it is shown: all photographs of a round would not fit into memory."""
    return images.shrunk(drawable(image), LARGEST)


def _figure(row: int, card: Card) -> str:
    large = ' class="large"' if max(card.image.shape[:2]) > _JPEG_ABOVE else ""
    sure = "" if card.confidence is None else f" ({card.confidence:.2f})"
    return (
        f'<figure><img{large} src="{data_uri(card.image)}" alt="example {card.example}">'
        f"<figcaption>{row}. <b>id {card.example}</b><br>predicted: {html.escape(card.predicted)}{sure}<br>"
        f"<small>{html.escape(card.where)}</small></figcaption></figure>"
    )


def _channels_last(image: NDArray[Any]) -> NDArray[Any]:
    if image.ndim == 3 and image.shape[2] not in (1, 3, 4):
        image = np.moveaxis(image, 0, 2)
    if image.ndim == 3 and image.shape[2] == 1:
        return image[..., 0]
    return image[..., :3] if image.ndim == 3 else image


def _eight_bits(image: NDArray[Any]) -> NDArray[np.uint8]:
    if image.dtype == np.uint8:
        return image
    values = image.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and high <= 255:
        low, high = 0.0, 255.0
    # Anything else, such as inputs that were normalised, is stretched to be seen.
    return np.asarray(np.rint((values - low) / ((high - low) or 1) * 255), np.uint8)
