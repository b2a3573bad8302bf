# %% [markdown]
# # A detector: boxes that move with the picture
#
# When a picture is shifted, the boxes expected on it shift too, and testifai moves them along. Here a detector finds
# squares and discs on made-up pictures, and the camera is shaken, noisy and in the dark.

# %%
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import testifai as ta
from testifai.tomogram.regions import worst_regions

# %% [markdown]
# ## Pictures with boxes
#
# Boxes are corners in pixels: x1, y1, x2, y2. Your own come from `ta.data.load("coco", "instances.json")` or a YOLO
# folder.

# %%
KINDS = ("square", "disc")
SIZE = 96


def picture(draws: np.random.Generator) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """A grey picture with one to three things on it, in different quarters."""
    image = draws.normal(50, 8, (SIZE, SIZE)).clip(0, 255).astype(np.uint8)
    boxes, labels = [], []
    for quarter in draws.permutation(4)[: draws.integers(1, 4)]:
        kind, radius, grey = int(draws.integers(2)), int(draws.integers(8, 15)), int(draws.integers(130, 220))
        x, y = (int(24 + 48 * place + draws.integers(-6, 7)) for place in divmod(int(quarter), 2))
        if KINDS[kind] == "square":
            cv2.rectangle(image, (x - radius, y - radius), (x + radius, y + radius), grey, -1)
        else:
            cv2.circle(image, (x, y), radius, grey, -1)
        boxes.append([x - radius, y - radius, x + radius + 1, y + radius + 1])
        labels.append(kind)
    return image, {"boxes": boxes, "labels": labels}


draws = np.random.default_rng(0)
made = [picture(draws) for _ in range(300)]
images = np.stack([image for image, _ in made])
expected = [boxes for _, boxes in made]

# %% [markdown]
# ## The detector
#
# Any function from a batch of pictures to boxes, labels and scores of each. This one is classical: smooth, cut at a
# fixed brightness, and tell squares from discs by how much of their box they fill. (ONNX files of YOLOX, YOLOv5,
# YOLOv8 and DETR are detectors too: hand over the path.)


# %%
def detect(batch: NDArray[np.uint8]) -> list[dict[str, Any]]:
    """What is brighter than 100, as boxes."""
    found = []
    for image in batch:
        bright = (cv2.GaussianBlur(image, (5, 5), 0) > 100).astype(np.uint8)
        _, _, areas, _ = cv2.connectedComponentsWithStats(bright)
        kept = [area for area in areas[1:].tolist() if area[4] >= 80]
        filled = [pixels / (width * height) for _, _, width, height, pixels in kept]
        found.append(
            {
                "boxes": [[x, y, x + width, y + height] for x, y, width, height, _ in kept],
                "labels": [0 if share > 0.88 else 1 for share in filled],
                "scores": [min(1.0, 0.5 + 4 * abs(share - 0.88)) for share in filled],
            }
        )
    return found


# %% [markdown]
# ## The scan
#
# The oracle `detection` matches boxes found with boxes expected; a picture passes with an F1 of at least 0.5. F1
# itself is the score. `keep` holds the boxes, for mean average precision afterwards; that one is measured and not
# predicted, so every test is run here (`strategy="full"`).

# %%
data = ta.data.from_arrays(images, expected, classes=KINDS)
space = ta.Space(
    {
        "shift": ("deeptest.translate", [0, 1, 3]),
        "dark": ("classic.brightness", [0, 1, 2, 3]),
        "noise": ("classic.gaussian_noise", [0, 1, 2, 3]),
    }
)
tomogram = ta.scan(detect, data, space, oracle="detection", keep=["detections"], strategy="full", population="future")
print(f"{tomogram.inferences:,} inferences; pictures that pass when nothing is wrong: {tomogram.base:.3f}")

# %% [markdown]
# ## What it costs
#
# `population="future"`: the intervals are for new pictures like these, so they stay open although every picture was
# tried.

# %%
for question in ("shift > 0 and dark == 0 and noise == 0", "dark == 1", "dark == 3", "noise == 3 and dark <= 1"):
    passed, f1 = tomogram.query(question), tomogram.query(question, score="f1")
    print(f"{question:<40} pass {passed.robustness:.3f} ({passed.low:.3f} … {passed.high:.3f})  F1 {f1.robustness:.3f}")
for question in ("order == 0", "dark == 2 and shift == 0 and noise == 0"):
    found = tomogram.average_precision(question, iou=0.5)
    print(f"{question:<40} mean average precision {found.estimate:.3f} ({found.low:.3f} … {found.high:.3f})")

# %% [markdown]
# ## Where it breaks, and what to do next
#
# Shifts cost nothing: the boxes expected moved along. Darkness is what it cannot stand, since the cut is at a fixed
# brightness.

# %%
worst = worst_regions(tomogram, count=1).regions[0]
print(f"worst region: {worst.query}: {worst.answer.robustness:.3f} ({worst.answer.low:.3f} … {worst.answer.high:.3f})")
print("next: cut at a share of each picture's own brightness, scan again, and compare as two_models.py does")
