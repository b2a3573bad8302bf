# %% [markdown]
# # A scikit-learn model on a table whose columns go wrong
#
# Tables fail in their own ways: a sensor drifts, a form is left half empty, a value comes from yesterday's row. Here
# a gradient boosting classifier reads the 30 measurements of scikit-learn's breast cancer table, and three such
# faults come together.

# %%
from typing import Any

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

import testifai as ta
from testifai.tomogram.regions import worst_regions

# %% [markdown]
# ## The model
#
# Any object with `predict` or `predict_proba` will do. This one takes missing values as they are (NaN).

# %%
table: Any = load_breast_cancer()
train, test = slice(0, 280), slice(280, None)
model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(table.data[train], table.target[train])

# %% [markdown]
# ## The faults
#
# Severities are in units of each column's spread, or shares of its values, so that no one has to know the columns.
# `from_columns` gives them their names: a fault can then be limited to some, such as `get("tabular.drift").on("mean
# area")`.

# %%
columns = {str(name): table.data[test, place] for place, name in enumerate(table.feature_names)}
data = ta.data.from_columns({**columns, "benign": table.target[test]}, target="benign")
space = ta.Space({"drift": "tabular.drift", "gaps": "tabular.missing", "stale": "tabular.stale"})
for fault in ("drift", "missing", "stale"):
    print(f"tabular.{fault}: severities 0 … 5 are {ta.perturb.get(f'tabular.{fault}').severities}")

tomogram = ta.scan(model, data, space, budget=8_000)
print(f"\naccuracy on clean rows {tomogram.base:.3f}; {tomogram.inferences:,} inferences over {space.size} tests")

# %% [markdown]
# ## What each fault costs alone, and together
#
# `order` is how many faults there are at once.

# %%
for axis in space.names:
    others = " and ".join(f"{name} == 0" for name in space.names if name != axis)
    answer = tomogram.query(f"{axis} == 5 and {others}")
    print(f"{axis} alone, at its worst: {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f})")
for order, answer in tomogram.by_order().items():
    print(f"faults at once: {order}, any severity: {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f})")

# %% [markdown]
# ## Who is hit?
#
# The mean over all patients hides that mistakes are not shared alike: 0 are malignant tumours, 1 benign ones.

# %%
worst = worst_regions(tomogram, count=1).regions[0]
print(f"worst region: {worst.query}: {worst.answer.robustness:.3f} ({worst.answer.low:.3f} … {worst.answer.high:.3f})")
for label, name in enumerate(table.target_names):
    answer = tomogram.query(worst.query, inputs=f"label == {label}")
    print(f"  {name} tumours there: {answer.robustness:.3f} ({answer.low:.3f} … {answer.high:.3f})")

# %% [markdown]
# ## Next
#
# A column that drifts can be watched for. Ask which one matters: scan again with `get("tabular.drift").on(NAME)` for
# one column at a time. The same from files, without Python: `testifai init model.skops table.csv`.

# %%
print('next: ta.perturb.get("tabular.drift").on("mean area") limits a fault to one column; try the suspects one by one')
