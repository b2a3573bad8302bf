"""Record what the library imagecorruptions makes of two photographs; run by hand, the tests read its files.

    pip install imagecorruptions-imaug scikit-image && python record.py

`exact.png` is a sheet with the two photographs in its first row and, below, the results of what draws nothing at
random, five rows each. `statistics.json` has, for what does, the mean and the standard deviation over draws of the
statistics below. Results are rounded: the library cuts decimals off, which takes half a grey level from the mean
of everything it makes.

The photographs come with scikit-image: `astronaut` (Eileen Collins, NASA, public domain) and `chelsea` (the
photographer, Stéfan van der Walt, gave it to the public domain, CC0).
"""

# The library draws from NumPy's global generator.
# ruff: noqa: NPY002

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np

FOLDER = Path(__file__).parent
# The smaller a photograph, the more its borders count, where implementations differ most easily.
HEIGHT, WIDTH = 88, 104
DRAWS = 60
BANDS = 6
EXACT = (
    "brightness",
    "contrast",
    "defocus_blur",
    "gaussian_blur",
    "jpeg_compression",
    "pixelate",
    "saturate",
    "zoom_blur",
)
RANDOM = (
    "elastic_transform",
    "fog",
    "frost",
    "gaussian_noise",
    "glass_blur",
    "impulse_noise",
    "motion_blur",
    "shot_noise",
    "snow",
    "spatter",
    "speckle_noise",
)


def statistics(original: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """Of a batch of changed images, (N, 2 + BANDS): mean and variance of the change and its power in bands.

    The bands split the wave numbers from 0 to the highest (half a cycle per pixel) evenly, without the mean;
    power is in squared grey levels, so that all bands together are close to the variance.
    """
    change = changed.astype(np.float64) - original
    height, width = change.shape[1:3]
    spectrum = np.abs(np.fft.fft2(change, axes=(1, 2))) ** 2 / (height * width) ** 2
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width))
    band = np.minimum((radius / 0.5 * BANDS).astype(int), BANDS - 1)
    band[0, 0] = BANDS
    power = [spectrum[:, band == number].sum(axis=1).mean(axis=-1) for number in range(BANDS)]
    return np.stack([change.mean(axis=(1, 2, 3)), change.var(axis=(1, 2, 3)), *power], axis=1)


def sheet_rows() -> np.ndarray:
    """The rows of the sheet, (rows, 2, HEIGHT, WIDTH, 3)."""
    sheet = cv2.imread(str(FOLDER / "exact.png"))[..., ::-1]
    return sheet.reshape(-1, HEIGHT, 2, WIDTH, 3).transpose(0, 2, 1, 3, 4).copy()


def photographs() -> np.ndarray:
    from skimage import data

    astronaut, chelsea = data.astronaut()[20:290, 80:395], data.chelsea()[20:290, 60:375]
    return np.stack(
        [cv2.resize(photo, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA) for photo in (astronaut, chelsea)]
    )


def reference(photo: np.ndarray, name: str, severity: int) -> np.ndarray:
    from imagecorruptions import corruptions
    from PIL import Image

    result = getattr(corruptions, name)(Image.fromarray(photo), severity)
    return np.clip(np.floor(np.asarray(result, dtype=np.float64) + 0.5), 0, 255).astype(np.uint8)


def main() -> None:
    np.random.seed(0)
    photos = photographs()
    rows = [photos, *(_each(photos, name, severity) for name in EXACT for severity in range(1, 6))]
    sheet = np.concatenate([np.concatenate(list(row), axis=1) for row in rows])
    cv2.imwrite(str(FOLDER / "exact.png"), sheet[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 9])
    found: dict[str, list[list[dict[str, list[float]]]]] = {}
    for name in RANDOM:
        found[name] = [[_over_draws(photo, name, severity) for photo in photos] for severity in range(1, 6)]
    (FOLDER / "statistics.json").write_text(json.dumps({"draws": DRAWS, "statistics": found}) + "\n")


def _each(photos: np.ndarray, name: str, severity: int) -> list[np.ndarray]:
    return [reference(photo, name, severity) for photo in photos]


def _over_draws(photo: np.ndarray, name: str, severity: int) -> dict[str, list[float]]:
    made = statistics(photo, np.stack([reference(photo, name, severity) for _ in range(DRAWS)]))
    rounded = [[float(f"{number:.5g}") for number in row] for row in (made.mean(axis=0), made.std(axis=0, ddof=1))]
    return dict(zip(("mean", "spread"), rounded, strict=True))


if __name__ == "__main__":
    main()
