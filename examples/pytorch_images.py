# %% [markdown]
# # A PyTorch image classifier when the camera is tilted, the sensor noisy and the light poor
#
# One number for accuracy says nothing about the conditions a model will meet. Here a small network learns
# scikit-learn's handwritten digits, and `ta.scan` asks how it does under every combination of three conditions, 216
# of them, from a fraction of the inferences.
#
# Needs PyTorch: `pip install torch`.

# %%
import sys
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import testifai as ta
from testifai.tomogram.regions import worst_regions

try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: needs PyTorch (pip install torch)")
    sys.exit(0)

# %% [markdown]
# ## The model
#
# Images are bytes (N, height, width), as a camera gives them: conditions are applied to those, and whatever the
# network wants (here numbers from 0 to 1, and a channel) is said once, when the network is handed over.

# %%
digits: Any = load_digits()
images = np.kron(digits.images * (255 / 16), np.ones((1, 3, 3))).astype(np.uint8)  # 24 × 24
train, test = slice(0, 1000), slice(1000, None)

torch.manual_seed(0)
torch.set_num_threads(1)  # for so small a network more would wait for each other
network = nn.Sequential(
    nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Linear(32 * 6 * 6, 10),
)  # fmt: skip
pixels = torch.from_numpy(images[train]).unsqueeze(1).float() / 255
labels = torch.from_numpy(digits.target[train]).long()
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(15):
    for rows in torch.randperm(len(pixels)).split(64):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(pixels[rows]), labels[rows]).backward()
        optimizer.step()
network.eval()

model = ta.models.from_torch(network, scale="unit", layout="NCHW")
data = (images[test], digits.target[test])

# %% [markdown]
# ## The conditions
#
# Each has six severities, 0 meaning off: 6 × 6 × 6 tests. Trying all 797 images on each would take 172,152
# inferences; a budget of 6,000 is spread over all tests, and what one test shows teaches its neighbours.

# %%
space = ta.Space({"tilt": "mnist_c.rotate", "noise": "classic.gaussian_noise", "dark": "classic.brightness"})
tomogram = ta.scan(model, data, space, budget=6_000)
print(f"{tomogram.inferences:,} inferences instead of {space.size * len(images[test]):,}")
print(f"accuracy on clean images {tomogram.base:.3f}")

# %% [markdown]
# ## Questions
#
# Any region of the space can be asked about afterwards. The 95 % interval says how far to trust the number: it covers
# what was not tried.

# %%
for question in ("tilt <= 1 and noise <= 1 and dark <= 1", "tilt >= 4", "noise >= 3 and dark >= 3"):
    answer = tomogram.query(question)
    print(f"{question:<40} {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f}) over {answer.tests} tests")

# %% [markdown]
# ## Where it breaks
#
# The search looks through all ranges of severities. Its interval allows for having searched.

# %%
worst = worst_regions(tomogram, count=1).regions[0]
answer = worst.answer
print(f"worst region: {worst.query}: {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f})")
by_digit = tomogram.by_class()
hardest = min(by_digit, key=lambda digit: by_digit[digit].robustness)
answer = by_digit[hardest]
print(f"hardest digit, over all tests tried: {hardest}: {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f})")

# %% [markdown]
# ## Next
#
# - Train on what the worst region names, and compare: `two_models.py`.
# - Want to see the images? Give `ta.scan` a `store="digits.db"` and run `testifai explore digits.db`.
# - On a GPU: `device="cuda"`; nothing else changes.

# %%
print(f"next: train with {worst.query.split()[0]}, then compare the two networks as two_models.py does")
