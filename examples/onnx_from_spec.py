# %% [markdown]
# # An ONNX file, from a spec to a report
#
# The way that needs no Python of yours: a model file, a data file, and a spec that says what to ask. The spec can be
# kept beside the model and read by a colleague; every command here can be typed into a terminal as it stands.

# %%
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from testifai.data.sample import demo_model_path

# %% [markdown]
# ## The files
#
# The demonstration's LeNet-5 and its thousand MNIST digits come with testifai. With your own: any `.onnx` file, and
# data that `testifai init` can read (`.npz` with x and y, a folder of class folders, IDX, CSV, …).

# %%
for name in ("lenet5.onnx", "digits.npz"):
    shutil.copy(demo_model_path().with_name(name), name)


def testifai(*words: str) -> None:
    """Type a command, and show what it says."""
    done = subprocess.run([sys.executable, "-m", "testifai", *words], capture_output=True, text=True, check=False)
    print(f"$ testifai {shlex.join(words)}\n{done.stdout}{done.stderr}")
    done.check_returncode()


# %% [markdown]
# ## A spec
#
# `testifai init lenet5.onnx digits.npz` looks at both files, checks that they fit and writes a spec with comments, to
# be cut down. This is what it may look like then. Without a budget, a run goes on until every test is known to ±
# 0.02.

# %%
Path("digits.toml").write_text("""\
[model]
onnx = "lenet5.onnx"

[data]
npz = "digits.npz"

[space]
zoom = "mnist_c.zoom"
blur = "mnist_c.motion_blur"

[scan]
budget = 4000

[[gate]]
name = "a little zoomed and blurred"
query = "zoom <= 1 and blur <= 1"
at_least = 0.90
""")

# %% [markdown]
# ## Check, run, ask
#
# `check` measures nothing: it says how many tests and inferences there are to come, and how long they take. `run`
# ends with exit code 1 if a gate fails, so a script can stop there. An interrupted run goes on where it was.
#
# Before its verdict `run` says how far to trust the run: how well tests that were left out, and inputs that were
# held back, are foretold. A warning there is a reason to measure more before anybody signs.

# %%
testifai("check", "digits.toml")
testifai("run", "digits.toml")

# %%
testifai("query", "digits.db", "zoom >= 3 and blur >= 3")

# %% [markdown]
# ## A report to pass on
#
# One page with everything, that needs no network to be read.

# %%
testifai("report", "digits.db", "-o", "report.html")

# %% [markdown]
# ## Next
#
# `testifai explore digits.db` shows the same in the browser (`pip install dash`); `testifai show digits.db` in the
# terminal. The gate belongs into CI: see `ci_gate.py`.

# %%
print("next: open report.html, then put the gate into your test suite as ci_gate.py does")
