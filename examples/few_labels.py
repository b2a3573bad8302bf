# %% [markdown]
# # A stream that has drifted, and money for 200 labels
#
# A model is in operation. The stream has no labels, it is no longer what the model was trained on, and people can
# look at 200 of 8,000 examples. Which ones, what accuracy follows, and how sure is it?

# %%
import numpy as np
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

import testifai as ta

# %% [markdown]
# ## The model and the stream
#
# Made up, so that the truth is known here, and the answers can be judged in the end. In operation nobody knows it.

# %%
rows, labels = make_classification(
    10_000, n_features=12, n_informative=8, n_redundant=0, class_sep=1.8, flip_y=0, random_state=1
)
model = MLPClassifier((64,), early_stopping=True, random_state=0).fit(rows[:1000], labels[:1000])
print(f"accuracy when it was released: {model.score(rows[1000:2000], labels[1000:2000]):.3f}")

stream, truth = rows[2000:] + np.random.default_rng(0).normal(size=(8000, 12)), labels[2000:]  # noisier …
stream[:, :3] += 1.5  # … and three columns are off

# %% [markdown]
# ## What the model says about itself
#
# Its mean confidence is what it would expect to get right. After a drift that is not to be trusted as a number, but
# its order still means something: where it is unsure, it is wrong more often. That is all that is used.

# %%
probabilities = np.asarray(model.predict_proba(stream))
predicted, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
print(f"the model's own mean confidence on the stream: {confidence.mean():.3f}")

# %% [markdown]
# ## Labels
#
# `ask` stands for a person: it is called only for examples that were chosen, each once. With people, `testifai label
# select` writes a file to fill in, and `testifai label estimate` reads it.

# %%
asked: list[int] = []


def ask(example: int) -> bool:
    """Is the model wrong here?"""
    asked.append(example)
    return bool(truth[example] != predicted[example])


answer = ta.operational.estimate("balanced", risk=1 - confidence, failed=ask, tests=200, balance=0)
print(f"accuracy {answer.accuracy:.3f} ({answer.low:.3f} … {answer.high:.3f}) from {len(asked)} labels")
print(f"the interval takes for granted {answer.assumes}")

# %% [markdown]
# ## Was it worth it?
#
# Two other ways to spend 200 labels. `balance=0.3` gives up some certainty for failures to learn from. Labels drawn
# at random (`srs`) have an interval that takes nothing for granted, and find few failures.

# %%
wrong = truth != predicted
ways = {
    "balanced, for the estimate (0)": answer,
    "balanced, also for failures (0.3)": ta.operational.estimate(
        "balanced", risk=1 - confidence, failed=wrong, tests=200, balance=0.3
    ),
    "at random": ta.operational.estimate("srs", failed=wrong, tests=200),
}
for name, way in ways.items():
    print(f"{name:<34} {way.accuracy:.3f} ({way.low:.3f} … {way.high:.3f}), {way.failures} failures found")
print(f"the truth, which only this example knows: {1 - wrong.mean():.3f}")

# %% [markdown]
# ## Next
#
# The examples that were looked at are in `answer.selected`: train on those that failed. Which drift does the harm is
# another question, for `ta.scan`: see `sklearn_table.py`. With people, the same by files:
#
# ```
# testifai label select SPEC.toml --tests 200 -o to_label.csv
# testifai label page to_label.csv
# testifai label estimate to_label.csv --require 0.95
# ```

# %%
decision = "holds" if answer.low >= 0.95 else "fails" if answer.high < 0.95 else "is open: label more"
print(f"next: the requirement of 0.95 {decision}; train on the failures found, and estimate again")
