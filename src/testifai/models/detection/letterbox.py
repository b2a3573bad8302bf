"""Images of any size on the canvas that a detector takes, and its boxes back on the images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.support.optional_imports import cv2

Size = tuple[int, int]  # height, width
GREY = 114


@dataclass(frozen=True)
class Letterbox:
    """Fits images to a grey canvas, in its middle or first corner; `stretch` ignores their proportions."""

    canvas: Size
    centred: bool = True
    stretch: bool = False

    def placed(self, size: Size) -> Placed:
        """Return the position of images of a size."""
        (height, width), (tall, wide) = size, self.canvas
        if self.stretch:
            return Placed((tall / height, wide / width), (0, 0), self.canvas)
        scale = min(tall / height, wide / width)
        fitted = min(tall, round(height * scale)), min(wide, round(width * scale))
        corner = ((tall - fitted[0]) // 2, (wide - fitted[1]) // 2) if self.centred else (0, 0)
        return Placed((scale, scale), corner, fitted)

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        place = self.placed((images.shape[1], images.shape[2]))
        if place.size == images.shape[1:3] == self.canvas:
            return images
        (top, left), (height, width) = place.corner, place.size
        canvases = np.full((len(images), *self.canvas, *images.shape[3:]), GREY, np.uint8)
        for canvas, image in zip(canvases, images, strict=True):
            resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
            canvas[top : top + height, left : left + width] = resized.reshape(height, width, *canvas.shape[2:])
        return canvases


@dataclass(frozen=True)
class Placed:
    scale: tuple[float, float]  # down, across
    corner: tuple[int, int]  # top, left
    size: Size

    def back(self, corners: NDArray[np.floating], size: Size) -> NDArray[np.float32]:
        """Return boxes (…, 4) on the canvas as boxes on images of this size, clipped at their edges."""
        (down, across), (top, left), (height, width) = self.scale, self.corner, size
        moved = (corners - np.array([left, top, left, top])) / np.array([across, down, across, down])
        return np.asarray(np.clip(moved, 0, np.array([width, height, width, height])), np.float32)
