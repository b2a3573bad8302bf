"""Keep what needs an extra that is not installed out of the collection of doctests, and the user's own record alone."""

import atexit
import os
import shutil
import tempfile
from importlib.util import find_spec

# Runs made by tests, and by the commands they start, are noted in a folder of their own.
os.environ["TESTIFAI_STATE"] = tempfile.mkdtemp(prefix="testifai-state-")
atexit.register(shutil.rmtree, os.environ["TESTIFAI_STATE"], ignore_errors=True)

NEED = {
    "dash": ["src/testifai/app/*"],
    "torch": [
        "src/testifai/perturb/ops_torch/*",
        "src/testifai/models/onnx_torch.py",
        "src/testifai/models/onnx_operators.py",
        "src/testifai/models/convolution.py",
        "src/testifai/oracles/tensors.py",
        "src/testifai/engine/device/*",
    ],
    "triton": ["src/testifai/perturb/ops_torch/kernels.py", "src/testifai/models/convolution_kernel.py"],
    "pyagrum": ["src/testifai/locality/network.py", "src/testifai/surrogates/inference.py"],
}

collect_ignore_glob = [pattern for library, patterns in NEED.items() if not find_spec(library) for pattern in patterns]
