"""Primitive operations on images, on NumPy and OpenCV; `ops_torch` has the same names for tensors.

A perturbation is a formula over these. Images are uint8 (N, H, W, C) with one or three channels; a *layer* is
float32 (N, H, W), one number per pixel; a *field* is uint16 (N, …), uniform random words. Nothing here
changes its argument, and an image comes out the same whatever batch it is in: sums are over whole numbers, or
in an order that does not depend on the batch.
"""

# ruff: noqa: F401, F403  what perturbations see as `ops`

from numpy import clip, maximum, minimum, roll

from testifai.perturb.ops.filters import *
from testifai.perturb.ops.geometry import *
from testifai.perturb.ops.jpeg import *
from testifai.perturb.ops.values import *
