"""What is swept: eight alterations with ranges of our own, and the seven of the ASAP paper with theirs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from testifai import perturb
from testifai.perturb import corruptions
from testifai.perturb.images import GROUPED, image_perturbation
from testifai.perturb.ops import about_centre

Alterations = dict[str, tuple[perturb.Perturbation, tuple[float, float]]]


@image_perturbation("sweep.compression", [0.0, 1.0], levels=(0.0, 1.0))
def compression(ops: ModuleType, images: Any, level: float, rng: Any) -> Any:
    """JPEG with a quality from 100 (level 0) to 1."""
    return ops.jpeg(images, round(100 - 99 * level))


@image_perturbation("sweep.vertical_translation", [0.0, 0.5], slab=GROUPED)
def vertical_translation(ops: ModuleType, images: Any, share: float, rng: Any) -> Any:
    """Move the image down by a share of its height."""
    return ops.warp(images, [[1, 0, 0], [0, 1, -share * ops.image_shape(images)[0]]])


@image_perturbation("sweep.horizontal_translation", [0.0, 0.5], slab=GROUPED)
def horizontal_translation(ops: ModuleType, images: Any, share: float, rng: Any) -> Any:
    """Move the image to the right by a share of its width."""
    return ops.warp(images, [[1, 0, -share * ops.image_shape(images)[1]], [0, 1, 0]])


@image_perturbation("sweep.blur", [0.0, 4.0], levels=(0.0, 4.0))
def blur(ops: ModuleType, images: Any, sigma: float, rng: Any) -> Any:
    """Gaussian blur, sigma in pixels."""
    return ops.gaussian(images, sigma)


@image_perturbation("sweep.brightness", [0.0, 0.5], slab=GROUPED)
def brightness(ops: ModuleType, images: Any, amount: float, rng: Any) -> Any:
    """Add a share of white to all values."""
    return ops.lookup(images, np.clip(np.rint(np.arange(256) + 255 * amount), 0, 255).astype(np.uint8))


@image_perturbation("sweep.zoom", [0.0, 1.0], levels=(0.0, 1.0), slab=GROUPED)
def zoom(ops: ModuleType, images: Any, more: float, rng: Any) -> Any:
    """Enlarge about the centre: 0 as it is, 1 twice as large."""
    return ops.warp(images, about_centre(np.eye(2) / (1 + more), *ops.image_shape(images)[:2]))


# Level 0 is the original in all of them.
OURS: Alterations = {
    "gaussian noise": (perturb.get("classic.gaussian_noise"), (0.0, 0.5)),
    "compression": (compression, (0.0, 1.0)),
    "vertical trans.": (vertical_translation, (-0.25, 0.25)),
    "horizontal trans.": (horizontal_translation, (-0.25, 0.25)),
    "blur": (blur, (0.0, 4.0)),
    "brightness": (brightness, (-0.5, 0.5)),
    "zoom": (zoom, (0.0, 1.0)),
    "rotation": (perturb.get("classic.rotation"), (0.0, 45.0)),
}


# ---- the paper's, as its authors' tool ROBY describes them

# The side of the part that is left when a border is cut off, and how far it can be moved.
KEPT, MOVED = 159 / 200, 20 / 200


@image_perturbation("roby.gaussian_noise", [0.0, 1.0], levels=(0.0, 1.0))
def roby_noise(ops: ModuleType, images: Any, level: float, rng: Any) -> Any:
    """Noise with a variance of 0.01 times the level, white being 1."""
    return corruptions.gaussian_noise(ops, images, 0.1 * level**0.5, rng)


@image_perturbation("roby.compression", [0.0, 1.0], levels=(0.0, 1.0))
def roby_compression(ops: ModuleType, images: Any, level: float, rng: Any) -> Any:
    """JPEG with a quality from 100 (level 0) down to the least there is."""
    return ops.jpeg(images, max(1, round(100 - 100 * level)))


@image_perturbation("roby.vertical_translation", [0.0, 1.0], levels=(-1.0, 1.0), slab=GROUPED)
def roby_vertical_translation(ops: ModuleType, images: Any, level: float, rng: Any) -> Any:
    """Cut a tenth off on every side, move what is looked at by up to that tenth, and enlarge it to the full size."""
    return ops.warp(images, _cut(ops.image_shape(images)[:2], (level, 0.0)))


@image_perturbation("roby.horizontal_translation", [0.0, 1.0], levels=(-1.0, 1.0), slab=GROUPED)
def roby_horizontal_translation(ops: ModuleType, images: Any, level: float, rng: Any) -> Any:
    """The vertical one to the side."""
    return ops.warp(images, _cut(ops.image_shape(images)[:2], (0.0, level)))


@image_perturbation("roby.blur", [0.0, 1.0], levels=(0.0, 1.0))
def roby_blur(ops: ModuleType, images: Any, level: float, rng: Any) -> Any:
    """Gaussian blur, sigma twice the level."""
    return ops.gaussian(images, 2 * level)


@image_perturbation("roby.brightness", [0.0, 0.5], levels=(-0.5, 0.5), slab=GROUPED)
def roby_brightness(ops: ModuleType, images: Any, level: float, rng: Any) -> Any:
    """Multiply all values by 1 + half the level."""
    return ops.lookup(images, np.clip(np.rint(np.arange(256) * (1 + level / 2)), 0, 255).astype(np.uint8))


def _cut(size: tuple[int, int], moved: tuple[float, float]) -> Any:
    """From the places of the new image to those of the old one."""
    matrix = np.array(about_centre(np.eye(2) * KEPT, *size), float).reshape(2, 3)
    matrix[:, 2] += MOVED * moved[1] * size[1], MOVED * moved[0] * size[0]
    return matrix


PAPER: Alterations = {
    "gaussian noise": (roby_noise, (0.0, 1.0)),
    "compression": (roby_compression, (0.0, 1.0)),
    "vertical trans.": (roby_vertical_translation, (-1.0, 1.0)),
    "horizontal trans.": (roby_horizontal_translation, (-1.0, 1.0)),
    "blur": (roby_blur, (0.0, 1.0)),
    "brightness": (roby_brightness, (-0.5, 0.5)),
    "zoom": (zoom, (0.0, 1.0)),
}
