"""Primitive operations on images, on NumPy and OpenCV; `ops_torch` has the same names for tensors.

A perturbation is a formula over these. Images are uint8 (N, H, W, C) with one or three channels; a *layer* is
float32 (N, H, W), one number per pixel; a *field* is uint16 (N, …), uniform random words. Nothing here
changes its argument, and an image comes out the same whatever batch it is in: sums are over whole numbers, or
in an order that does not depend on the batch.
"""

# ruff: noqa: F401, I001  what perturbations see as `ops`

from numpy import clip, maximum, minimum, roll

from testifai.perturb.ops.filters import (
    bilateral_blur, box_blur, canny, disc_blur, distance, equalise, gaussian, line_blur, median_blur,
)  # fmt: skip
from testifai.perturb.ops.geometry import (
    about_centre, displace, grid, mean_of_warps, pixelate, resample, resize, shuffle, warp,
)  # fmt: skip
from testifai.perturb.ops.jpeg import jpeg
from testifai.perturb.ops.values import (
    brighten, channel_means, crops, draw_levels, floats, image_shape, largest, levels, lookup, luma, per_image,
    saturate, stretch, take, uniform, where, zeros,
)  # fmt: skip
