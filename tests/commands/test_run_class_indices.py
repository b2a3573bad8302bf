"""Labels numbered otherwise than the model's outputs, as a new user meets them: one line says what to add."""

from __future__ import annotations

import re

import numpy as np
import pytest

NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SPEC = """
[space]
blur = { use = "mnist_c.motion_blur", severities = [0, 3] }
[scan]
strategy = "full"
"""


@pytest.fixture(scope="module")
def ready(digits):
    """Digits in folders named in words, whose alphabet is another order than that of the outputs."""
    cv2 = pytest.importorskip("cv2")
    folder = digits(200)
    with np.load(folder / "digits.npz") as data:
        for number, (image, label) in enumerate(zip(data["x"], data["y"], strict=True)):
            kind = folder / "images" / NUMBERS[label]
            kind.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(kind / f"{number}.png"), image)
    (folder / "spec.toml").write_text(f'[model]\nonnx = "lenet5.onnx"\n[data]\nfolder = "images"\n{SPEC}')
    return folder


def suggested(text):
    found = re.search(r"classes = \[[^]]*\]", text)
    assert found is not None, text
    return found.group()


def test_init_check_and_run_say_which_line_to_add(command, folder, spec_text, caplog):
    code, out, _ = command("init", "lenet5.onnx", "images", "-o", "new.toml")
    assert code == 0
    line = suggested(out)
    assert line == f"classes = {NUMBERS}".replace("'", '"')
    for name in ("check", "run"):
        caplog.clear()
        _, _, err = command(name, "spec.toml")
        assert suggested(err + caplog.text) == line
        assert "under [data]" in err + caplog.text
    caplog.clear()
    (folder / "right.toml").write_text(spec_text.replace('"images"\n', f'"images"\n{line}\n'))
    code, out, err = command("run", "right.toml")
    assert code == 0
    assert "numbered otherwise" not in err + caplog.text
    assert "clean accuracy 0.9" in out


def test_names_that_are_not_there_are_one_line(command, folder, spec_text):
    (folder / "wrong.toml").write_text(spec_text.replace('"images"\n', '"images"\nclasses = ["zero", "one"]\n'))
    code, _, err = command("check", "wrong.toml")
    assert code == 2
    assert "is not listed" in err


def test_init_is_told_classes_and_brings_images_to_the_models_size(command, folder):
    cv2 = pytest.importorskip("cv2")
    path = next((folder / "images" / "zero").glob("*.png"))
    cv2.imwrite(str(path), cv2.resize(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE), (35, 40)))
    code, out, err = command("init", "lenet5.onnx", "images", "-o", "told.toml", "--classes", ",".join(NUMBERS))
    assert (code, err) == (0, "")
    assert "all are brought to 28×28, which the model takes" in out
    assert "numbered otherwise" not in out
    text = (folder / "told.toml").read_text()
    assert "size = [28, 28]" in text
    assert 'classes = ["zero", "one"' in text
    code, out, _ = command("check", "told.toml")
    assert code == 0
    assert "clean accuracy 0.9" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--size", "28"], "--size: '28'; accepted: height and width in pixels, such as 32x32"),
        (["--task", "translation"], "--task"),
        (["--task", "detection"], "is no detector with photographs"),
        (["--target", "y"], "--target: is for data of the kind table; images is folder"),
        (["--classes", "zero,one"], "is not listed"),
    ],
)
def test_what_init_is_told_wrongly_is_one_line(command, options, said):
    code, _, err = command("init", "lenet5.onnx", "images", "-o", "new.toml", *options)
    assert code == 2
    assert said in err
    assert err.count("\n") <= 1
