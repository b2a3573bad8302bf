"""Edges of grey images, and how far away they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.perturb.ops.small import Images
from testifai.support.libraries import cv2


def canny(grey: Images, low: float, high: float) -> Images:
    """Edges by Canny (1986) as 0 and 1, for grey levels (N, H, W): 3×3 Sobel, gradient |dx| + |dy|."""
    edges = np.empty(grey.shape, dtype=np.uint8)
    for image, result in zip(grey, edges, strict=True):
        cv2.Canny(image, low, high, edges=result)
    # OpenCV marks an edge by 255.
    return edges & np.uint8(1)


def distance(edges: Images, most: float) -> NDArray[np.float32]:
    """Distance in pixels to the nearest edge pixel (not 0), at most `most`: Borgefors (1986), 5×5 chamfer mask."""
    away = np.empty(edges.shape, dtype=np.float32)
    for image, result in zip(edges == 0, away, strict=True):
        cv2.distanceTransform(image.view(np.uint8), cv2.DIST_L2, 5, dst=result)
    return np.minimum(away, np.float32(most), out=away)


def equalise(grey: Images) -> Images:
    """Spread the levels of each grey image (N, H, W) so that all are about equally frequent."""
    result = np.empty(grey.shape, dtype=np.uint8)
    for image, target in zip(grey, result, strict=True):
        cv2.equalizeHist(image, dst=target)
    return result
