"""ImageNet-C by D. Hendrycks and T. Dietterich (2019, arXiv:1903.12261): the published parameters.

The numbers are for photographs of 224×224; see `testifai.perturb.corruptions` for what they mean.
"""

from __future__ import annotations

from testifai.perturb.base import Parameter
from testifai.perturb.corruptions import EXTRA as EXTRA
from testifai.perturb.corruptions import register

SEVERITIES: dict[str, list[Parameter]] = {
    "gaussian_noise": [0.0, 0.08, 0.12, 0.18, 0.26, 0.38],
    "shot_noise": [None, 60, 25, 12, 5, 3],
    "impulse_noise": [0.0, 0.03, 0.06, 0.09, 0.17, 0.27],
    "defocus_blur": [None, (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)],
    "glass_blur": [None, (0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)],
    "motion_blur": [None, (10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
    "zoom_blur": [None, (1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    "snow": [
        None,
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ],
    "frost": [None, (1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)],
    "fog": [None, (1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
    "brightness": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
    "contrast": [1.0, 0.4, 0.3, 0.2, 0.1, 0.05],
    # Published as 12.5 to 30 times noise of ±0.005 of the side; nothing moves as a whole.
    "elastic_transform": [
        None,
        (0.0625, 0.01, 0),
        (0.08125, 0.01, 0),
        (0.10625, 0.01, 0),
        (0.125, 0.01, 0),
        (0.15, 0.01, 0),
    ],
    "pixelate": [None, 0.6, 0.5, 0.4, 0.3, 0.25],
    "jpeg_compression": [None, 25, 18, 15, 10, 7],
    "speckle_noise": [0.0, 0.15, 0.2, 0.35, 0.45, 0.6],
    "gaussian_blur": [0.0, 1, 2, 3, 4, 6],
    "spatter": [
        None,
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ],
    "saturate": [None, (0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)],
}

# On photographs these move away from the original and back again: more frost makes up for the darker image below it,
# glass of severity 3 scatters three times and that of 4 twice, colours first fade and then get stronger, the fewer
# flakes of the third severity of snow make up for their size, and mud covers less than the water before it.
register("imagenet_c", SEVERITIES, not_growing=["frost", "glass_blur", "saturate", "snow", "spatter"])
