"""Primitive operations on images as torch tensors, on any device; the names and meanings of `testifai.perturb.ops`.

Images are uint8 (N, H, W, C) with one or three channels, a *layer* is float32 (N, H, W), a *field* int32 (N, …) of
words 0 to 65,535. Everything works on whole batches with few passes over memory and without waiting for the device;
tables and matrices are sent there once. An image comes out the same whatever batch it is in: element-wise
arithmetic, or sums that are exact in any order. Given the same arguments, results are those of the arrays'
primitives to within rounding.
"""

# ruff: noqa: F401, I001  what perturbations see as `ops`

from torch import roll

from testifai.perturb.ops.geometry import about_centre
from testifai.perturb.ops_torch.filters import (
    bilateral_blur, box_blur, canny, disc_blur, distance, equalise, gaussian, line_blur, median_blur,
)  # fmt: skip
from testifai.perturb.ops_torch.geometry import (
    displace, grid, mean_of_warps, pixelate, resample, resize, shuffle, warp,
)  # fmt: skip
from testifai.perturb.ops_torch.jpeg import jpeg
from testifai.perturb.ops_torch.values import (
    brighten, channel_means, clip, crops, draw_levels, floats, image_shape, largest, levels, lookup, luma, maximum,
    minimum, per_image, saturate, stretch, take, uniform, where, zeros,
)  # fmt: skip
