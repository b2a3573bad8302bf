# %% [markdown]
# # A system built on a model: how robust is the whole?
#
# A classifier is rarely the product. Here two digits are read and added, as from a form: the sum is right if both are
# read correctly, or if two mistakes cancel. Both pictures come from the same scanner, so they are blurred or turned
# alike.

# %%
import numpy as np

from testifai import locality
from testifai.data.sample import demo_data, demo_model_path

# %% [markdown]
# ## The parts
#
# Local robustness: how often each class survives each property at each severity, and what it is taken for. Fifty
# digits of each class are tried.

# %%
model, data = str(demo_model_path()), demo_data()
properties = {"turned": "classic.rotation", "noise": "classic.gaussian_noise", "small": "mnist_c.zoom"}
local = locality.local(model, data, properties, per_class=50)
whole = local.overall()
print(f"one digit, over all properties and severities: {whole.rate:.3f} ({whole.low:.3f} … {whole.high:.3f})")

cells = local.by_class_and_property()
place = np.unravel_index(int(np.nanargmin(cells.rate)), cells.rate.shape)
weakest, under = local.classes[place[0]], local.properties[place[1]]
print(f"weakest: {weakest} when {under}: {cells.rate[place]:.3f} ({cells.low[place]:.3f} … {cells.high[place]:.3f})")

# %% [markdown]
# ## The whole, predicted
#
# From these tables alone, without running the system once: every pair of classes, with mistakes that cancel. It holds
# if the parts fail independently of each other, given classes, property and severity.

# %%
predicted = locality.compose(local)
print(f"the sum, predicted: {predicted.overall.rate:.3f} ({predicted.overall.low:.3f} … {predicted.overall.high:.3f})")
for number, name in enumerate(predicted.conditions):
    means = predicted.by_condition
    print(f"  {name:<8} {means.rate[number]:.3f} ({means.low[number]:.3f} … {means.high[number]:.3f})")

# %% [markdown]
# ## The whole, measured
#
# On real pairs of digits that the prediction does not rest on. Where the two disagree, parts depend on each other.

# %%
assert local.sampled is not None  # a table that was read from a file may not know its inputs
measured = locality.composed(model, data, properties, exclude=local.sampled.ids, pairs=20)
print(f"the sum, measured:  {measured.overall.rate:.3f} ({measured.overall.low:.3f} … {measured.overall.high:.3f})")
agreement = locality.agreement(predicted, measured)
print(agreement.statements()[0])

# %% [markdown]
# ## Where it breaks, and what to do next

# %%
place = np.unravel_index(int(np.nanargmin(predicted.mean.rate)), predicted.mean.rate.shape)
pair, condition = " + ".join(predicted.tuples[place[0]]), predicted.conditions[place[1]]
mean = predicted.mean
print(f"worst sum: {pair} when {condition}: {mean.rate[place]:.3f} ({mean.low[place]:.3f} … {mean.high[place]:.3f})")
print(f"next: train on {weakest} when {under}; testifai errors SPEC.toml --arity 2 ranks what fixing each would give")
