# %% [markdown]
# # A Hugging Face folder and a folder of pictures
#
# Somebody hands you two folders: a classifier as `save_pretrained` writes it, and pictures sorted by class. Nothing
# else is needed: size, normalisation and the names of the classes are read from the folder, nothing is downloaded,
# and no code in it is run.
#
# Needs transformers, PyTorch and Pillow: `pip install transformers torch pillow`.

# %%
import json
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from sklearn.datasets import load_digits

import testifai as ta
from testifai.tomogram.regions import worst_regions

try:
    import PIL  # noqa: F401
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification
    from transformers.utils import logging
except ImportError as missing:
    print(f"skipped: needs transformers, PyTorch and Pillow (pip install transformers torch pillow): {missing}")
    sys.exit(0)

# %% [markdown]
# ## The two folders
#
# So that this example needs no download, both are made here: a small ResNet learns five of scikit-learn's digits.
# With a folder of your own, begin at "The scan".

# %%
NAMES = ["zero", "one", "two", "three", "four"]
digits: Any = load_digits(n_class=len(NAMES))
images = np.kron(digits.images * (255 / 16), np.ones((1, 4, 4))).astype(np.uint8)  # 32 × 32
train, test = slice(0, 600), slice(600, None)

torch.manual_seed(0)
torch.set_num_threads(1)  # for so small a network more would wait for each other
config = ResNetConfig(
    num_channels=3, embedding_size=8, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic",
    id2label=dict(enumerate(NAMES)), label2id={name: number for number, name in enumerate(NAMES)},
)  # fmt: skip
network = ResNetForImageClassification(config)
pixels = (torch.from_numpy(images[train]).float() / 255 - 0.5).unsqueeze(1).repeat(1, 3, 1, 1) / 0.5
labels = torch.from_numpy(digits.target[train]).long()
optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
for _ in range(6):
    for rows in torch.randperm(len(pixels)).split(50):
        optimizer.zero_grad()
        network(pixel_values=pixels[rows], labels=labels[rows]).loss.backward()
        optimizer.step()

logging.disable_progress_bar()
network.save_pretrained("digits-resnet")
preparation = {
    "image_processor_type": "BitImageProcessor", "size": {"height": 32, "width": 32}, "resample": 2,
    "do_center_crop": False, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
}  # fmt: skip
Path("digits-resnet/preprocessor_config.json").write_text(json.dumps(preparation))
for number, (picture, label) in enumerate(zip(images[test], digits.target[test], strict=True)):
    folder = Path("pictures", NAMES[label])
    folder.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(folder / f"{number:03}.png"), cv2.cvtColor(picture, cv2.COLOR_GRAY2BGR))

# %% [markdown]
# ## The scan
#
# Two paths and the conditions to expect: here blur, noise and glare, of the published suite CIFAR-10-C. With
# `store`, everything measured is in one file: the same call continues an interrupted run.

# %%
space = ta.Space({"blur": "cifar_c.motion_blur", "noise": "cifar_c.gaussian_noise", "glare": "cifar_c.brightness"})
tomogram = ta.scan("digits-resnet", "pictures", space, budget=5_000, store="pictures.db")
print(f"accuracy on clean pictures {tomogram.base:.3f}; {tomogram.inferences:,} inferences over {space.size} tests")

# %%
for question in ("severity <= 2", "blur >= 4", "noise >= 3 and glare >= 3"):
    answer = tomogram.query(question)
    print(f"{question:<28} {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f}), {answer.drop:+.3f} to clean")

# %% [markdown]
# ## Where it breaks, and for whom
#
# A class that never fails while the others do is no good sign: it may be what the model answers when it cannot tell.

# %%
worst = worst_regions(tomogram, count=1).regions[0]
print(f"worst region: {worst.query}: {worst.answer.robustness:.3f} ({worst.answer.low:.3f} … {worst.answer.high:.3f})")
for name, answer in tomogram.by_class().items():
    print(f"  {name:<6} {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f})")

# %% [markdown]
# ## Next
#
# The same in two commands, with a report to pass on:
#
# ```
# testifai init digits-resnet pictures
# testifai run testifai.toml && testifai report testifai.db -o report.html
# ```

# %%
print("next: testifai report pictures.db -o report.html, or testifai explore pictures.db")
