"""Wide blurs of large images, done on smaller ones: what they leave has no detail that a smaller image lacks."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

# The longest shorter side, in pixels, on which blurs that grow with the image are worked out.
MOST = 512


def coarsely(ops: ModuleType, images: Any, change: Callable[[Any], Any]) -> Any:
    """change(images), on images shrunk such that the shorter side is at most MOST, and enlarged again."""
    height, width, _ = ops.image_shape(images)
    shrink = MOST / min(height, width)
    if shrink >= 1:
        return change(images)
    small = ops.resize(images, round(height * shrink), round(width * shrink))
    return ops.resize(change(small), height, width)
