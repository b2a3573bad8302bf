"""With torch, NumPy, SciPy, scikit-learn, pydantic and nothing else, perturb tensors and scan."""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = [
    "cv2", "jinja2", "onnx", "onnxruntime", "pandas", "plotly", "rapidfuzz", "rich", "typer",
]  # fmt: skip
WITHOUT = f"import sys\nfor name in {MISSING!r}: sys.modules[name] = None\n"


def run(code: str) -> list[str]:
    made = subprocess.run(
        [sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, timeout=300, check=False
    )
    assert made.returncode == 0, made.stderr[-2000:]
    return made.stdout.splitlines()


def test_scans_of_python_functions_run_and_answer(tmp_path):
    code = f"""
import numpy as np, testifai as ta
images, labels = np.arange(200, dtype=np.uint8).reshape(50, 2, 2), np.arange(50) % 2
dark = ta.perturbation("dark", [1, 0.5, 0.2])(lambda batch, factor, rng: (batch * factor).astype(np.uint8))
space = ta.Space({{"dark": dark, "light": "deeptest.brightness"}})
path = {str(tmp_path / "run.db")!r}
made = ta.scan(lambda batch: batch[:, 0, 0] % 2, (images, labels), ta.Space({{"dark": dark}}), budget=80, store=path)
print(made.query("dark >= 1").tests, ta.open(path).query("order <= 1").tests)
for wrong in ({{"budget": 1}}, {{"keep": "value"}}, {{"sead": 3}}):
    try: ta.scan(lambda batch: batch[:, 0, 0], (images, labels), space, **wrong)
    except ta.InputError as error: print(str(error).partition(" (known")[0])
for action in (
    lambda: ta.apply({{"deeptest.shear": 2}}, images),
):
    try: action()
    except ta.InputError as error: print(error)
"""
    assert run(code) == [
        "2 3",
        "budget: must be a whole number, at least 2, got 1",
        "keep: must be a list of value, predicted, detections, got 'value'",
        "scan: no option 'sead'; did you mean 'seed'?",
        "perturbation 'deeptest.shear': OpenCV is needed for this and not installed; "
        "install it with: pip install opencv-python-headless",
    ]


def test_tensors_are_perturbed_and_modules_scanned():
    pytest.importorskip("torch")
    code = """
import numpy as np, torch, testifai as ta
images, labels = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), dtype=np.uint8), np.arange(20) % 3
names = [name for suite in ("mnist_c", "cifar_c", "imagenet_c", "cure", "deeptest") for name in ta.perturb.names(suite)]
space = ta.Space({name.replace(".", "_"): name for name in names})
changed = [ta.perturb.get(name).apply(torch.from_numpy(images[:2]), 2) for name in names]
print(len(space.axes) == len(changed) > 60, {one.dtype for one in changed})
dark = ta.perturbation("dark", [1, 0.5, 0.2])(lambda batch, factor, rng: (batch * factor).astype(np.uint8))
module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 3))
print(ta.scan(module, (images, labels), ta.Space({"dark": dark})).query("order <= 1").tests)
"""
    assert run(code) == ["True {torch.uint8}", "3"]
