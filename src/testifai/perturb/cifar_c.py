"""CIFAR-10-C by D. Hendrycks and T. Dietterich (2019, arXiv:1903.12261): the published parameters.

The numbers are for photographs of 32×32; see `testifai.perturb.corruptions` for what they mean.
"""

from __future__ import annotations

from testifai.perturb.base import Parameter
from testifai.perturb.corruptions import EXTRA as EXTRA
from testifai.perturb.corruptions import register

SEVERITIES: dict[str, list[Parameter]] = {
    "gaussian_noise": [0.0, 0.04, 0.06, 0.08, 0.09, 0.10],
    "shot_noise": [None, 500, 250, 100, 75, 50],
    "impulse_noise": [0.0, 0.01, 0.02, 0.03, 0.05, 0.07],
    "defocus_blur": [None, (0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
    "glass_blur": [None, (0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
    "motion_blur": [None, (6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
    "zoom_blur": [None, (1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)],
    "snow": [
        None,
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ],
    # The textures are shrunk to a fifth.
    "frost": [None, (1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)],
    "fog": [None, (0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
    "brightness": [0.0, 0.05, 0.1, 0.15, 0.2, 0.3],
    "contrast": [1.0, 0.75, 0.5, 0.4, 0.3, 0.15],
    "elastic_transform": [
        None,
        (0, 0, 0.08),
        (0.05, 0.2, 0.07),
        (0.08, 0.06, 0.06),
        (0.1, 0.04, 0.05),
        (0.1, 0.03, 0.03),
    ],
    "pixelate": [None, 0.95, 0.9, 0.85, 0.75, 0.65],
    "jpeg_compression": [None, 80, 65, 58, 50, 40],
    "speckle_noise": [0.0, 0.06, 0.1, 0.12, 0.16, 0.2],
    "gaussian_blur": [0.0, 0.4, 0.6, 0.7, 0.8, 1],
    "spatter": [
        None,
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ],
    "saturate": [None, (0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)],
}

# On photographs these move away from the original and back again: the affine part of elastic_transform shrinks, more
# frost makes up for the darker image below it, glass_blur blurs more where it swaps less, colours first fade and then
# get stronger, and mud covers less than the water before it.
register("cifar_c", SEVERITIES, not_growing=["elastic_transform", "frost", "glass_blur", "saturate", "spatter"])
