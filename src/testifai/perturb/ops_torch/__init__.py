"""Primitive operations on images as torch tensors, on any device; the names and meanings of `testifai.perturb.ops`.

Images are uint8 (N, H, W, C) with one or three channels, a *layer* is float32 (N, H, W), a *field* int32 (N, …) of
words 0 to 65,535. Everything works on whole batches with few passes over memory and without waiting for the device;
tables and matrices are sent there once. An image comes out the same whatever batch it is in: element-wise
arithmetic, or sums that are exact in any order. Given the same arguments, results are those of the arrays'
primitives to within rounding.
"""

# ruff: noqa: F401, F403  what perturbations see as `ops`

from torch import roll

from testifai.perturb.ops_torch.filters import *
from testifai.perturb.ops_torch.geometry import *
from testifai.perturb.ops_torch.jpeg import *
from testifai.perturb.ops_torch.values import *
