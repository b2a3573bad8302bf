"""Primitive operations on images as torch tensors, on any device; the names and meanings of `testifai.perturb.ops`.

Images are uint8 (N, H, W, C) with one or three channels, a *layer* is float32 (N, H, W), a *field* int32 (N, …) of
words 0 to 65,535. Everything works on whole batches with few passes over memory and without waiting for the device;
tables and matrices are sent there once. An image comes out the same whatever batch it is in: element-wise
arithmetic, or sums that are exact in any order. Given the same arguments, results are those of the arrays'
primitives to within rounding.
"""

from testifai.perturb.ops_torch.edges import canny, distance, equalise
from testifai.perturb.ops_torch.filters import (
    bilateral_blur,
    box_blur,
    disc_blur,
    gaussian,
    line_blur,
    median_blur,
)
from testifai.perturb.ops_torch.geometry import (
    about_centre,
    displace,
    grid,
    mean_of_warps,
    pixelate,
    resample,
    resize,
    warp,
)
from testifai.perturb.ops_torch.jpeg import jpeg
from testifai.perturb.ops_torch.shuffle import shuffle
from testifai.perturb.ops_torch.values import (
    Images,
    brighten,
    channel_means,
    clip,
    crops,
    draw_levels,
    floats,
    image_shape,
    largest,
    levels,
    lookup,
    luma,
    maximum,
    minimum,
    per_image,
    roll,
    saturate,
    stretch,
    take,
    uniform,
    where,
    zeros,
)

__all__ = [
    "Images",
    "about_centre",
    "bilateral_blur",
    "box_blur",
    "brighten",
    "canny",
    "channel_means",
    "clip",
    "crops",
    "disc_blur",
    "displace",
    "distance",
    "draw_levels",
    "equalise",
    "floats",
    "gaussian",
    "grid",
    "image_shape",
    "jpeg",
    "largest",
    "levels",
    "line_blur",
    "lookup",
    "luma",
    "maximum",
    "mean_of_warps",
    "median_blur",
    "minimum",
    "per_image",
    "pixelate",
    "resample",
    "resize",
    "roll",
    "saturate",
    "shuffle",
    "stretch",
    "take",
    "uniform",
    "warp",
    "where",
    "zeros",
]
