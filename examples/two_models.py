# %% [markdown]
# # Two models before a release: is the new one better everywhere?
#
# A new model has the same clean accuracy or a better one. Is it safe to replace the old one? Both are scanned over
# the same conditions with the same seed, so that they meet the same inputs under the same draws, and the difference
# is known much better than either of them.

# %%
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import testifai as ta

# %% [markdown]
# ## The old and the new model
#
# Both read scikit-learn's digits. The new one was also trained on noisy and turned copies: `ta.apply` perturbs a
# batch as a scan would.

# %%
digits: Any = load_digits()
images = np.kron(digits.images * (255 / 16), np.ones((1, 3, 3))).astype(np.uint8)  # 24 × 24
train, test = slice(0, 1000), slice(1000, None)


def flat(batch: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Pixels as the classifiers take them."""
    return np.asarray(batch.reshape(len(batch), -1) / 255)


noisy = ta.apply({"classic.gaussian_noise": 2}, images[train], seed=1)
turned = ta.apply({"mnist_c.rotate": 1}, images[train], seed=2)
more, labels = np.concatenate([images[train], noisy, turned]), np.tile(digits.target[train], 3)
old, new = (MLPClassifier((48,), early_stopping=True, random_state=0) for _ in range(2))
old.fit(flat(images[train]), digits.target[train])
new.fit(flat(more), labels)

# %% [markdown]
# ## The same conditions for both

# %%
space = ta.Space({"noise": "classic.gaussian_noise", "tilt": "mnist_c.rotate", "dark": "classic.brightness"})
data = (images[test], digits.target[test])
before = ta.scan(lambda batch: old.predict(flat(batch)), data, space, budget=10_000, seed=0)
after = ta.scan(lambda batch: new.predict(flat(batch)), data, space, budget=10_000, seed=0)
for name, run in (("old", before), ("new", after)):
    answer = run.query("order >= 1")
    found = f"{answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f})"
    print(f"{name}: clean {run.base:.3f}, over all conditions {found}")

# %% [markdown]
# ## The difference
#
# New less old, on the inputs that both met. An interval that leaves out 0 settles a question.

# %%
questions = ["order == 0", "noise >= 1 and order == 1", "tilt >= 1", "dark >= 4 and order == 1"]
comparison = ta.compare(before, after, questions)
for region in [comparison.overall, *comparison.regions]:
    print(f"{region.query:<26} {region.difference:+.3f} ({region.low:+.3f} … {region.high:+.3f})  {region.verdict}")

# %% [markdown]
# ## Test by test
#
# A mean can hide a loss. Each test is judged by itself too, with an allowance for looking at 216 of them.

# %%
print(
    ", ".join(f"{count} {verdict}" for verdict, count in comparison.counts.items()),
    "of",
    len(comparison.tests),
    "tests",
)
if comparison.worst:
    worst = comparison.worst[0]
    told = ", ".join(f"{name} {severity}" for name, severity in zip(space.names, worst.configuration, strict=True))
    print(f"largest loss seen: {told}: {worst.difference:+.3f} ({worst.low:+.3f} … {worst.high:+.3f}), {worst.verdict}")

# %% [markdown]
# ## The decision
#
# The rule should be made before looking: here, better over all, and no question answered "worse".

# %%
lost = [region.query for region in comparison.regions if region.verdict == "worse"]
if comparison.overall.verdict == "better" and not lost:
    print("release the new model; what is undecided needs a larger budget to be settled")
else:
    reason = f"the new one is worse where {lost[0]}" if lost else "the new one is not shown to be better"
    print(f"keep the old model: {reason}")

# %% [markdown]
# ## Next
#
# With runs in files (`store="old.db"`), `testifai compare old.db new.db -q "tilt >= 1"` says the same, and
# `testifai explore old.db new.db` shows both side by side.

# %%
print("next: store both runs, and let CI compare every candidate with the released one")
