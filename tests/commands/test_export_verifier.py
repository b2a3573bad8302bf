"""`testifai export --verifier`: the files a verifier reads, and mistakes in one line."""

from __future__ import annotations

import json

import onnxruntime
import pytest

SPEC = """
[space]
contrast = "deeptest.contrast"
brightness = "deeptest.brightness"
zoom = "mnist_c.zoom"
"""
REGION = "contrast <= 1 and brightness <= 2 and zoom == 0"


@pytest.fixture(scope="module")
def ready(digits):
    return digits(20, spec=SPEC)


def test_files_for_a_verifier_are_written(command, folder):
    code, out, _ = command("export", "spec.toml", "--verifier", "7", "--region", REGION, "-o", "handed")
    assert code == 0
    assert "at 100 points of the region the graph answers as perturbed inference at 100" in out
    assert "contrast (deeptest.contrast): 1 to 1.2" in out
    session = onnxruntime.InferenceSession(folder / "handed" / "model.onnx")
    assert session.get_inputs()[0].shape == [1, 2]
    text = (folder / "handed" / "property.vnnlib").read_text()
    assert "(assert (<= X_1 40.0))" in text
    assert "(declare-network" in (folder / "handed" / "property-2.0.vnnlib").read_text()
    assert "abcrown.py" in (folder / "handed" / "README.md").read_text()


def test_levels_and_json(command, folder):
    code, out, _ = command(
        "export", "spec.toml", "--verifier", "7", "--level", "brightness=0:12.5", "-o", "h", "--rounded", "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert found["region"] == {"brightness": [0, 12.5]}
    assert found["rounded"]
    assert found["agreement"]["difference"] < 1e-4
    assert len(found["files"]) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--verifier", "20", "--region", REGION], "input"),
        (["--verifier", "7", "--level", "brightness=1"], "AXIS=LOW:HIGH"),
        (["--verifier", "7", "--region", "brightness <= 2"], "zoom == 0"),
        (["--verifier", "7"], "give a query"),
        (["--verifier", "7", "--grid"], "--verifier cannot be combined with --grid"),
        (["--region", REGION], "--region needs --verifier"),
        (["--limit", "3"], "--limit needs --inputs"),
        (["--verifier", "7", "--region", "bright <= 2"], "bright"),
    ],
)
def test_mistakes_are_one_line(command, folder, arguments, words):
    code, _, err = command("export", "spec.toml", *arguments, "-o", "handed")
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (folder / "handed").exists()


def test_files_of_others_are_not_written_over_and_our_own_are(command, folder):
    arguments = ["export", "spec.toml", "--verifier", "7", "--region", REGION, "-o", "mine"]
    (folder / "mine").mkdir()
    (folder / "mine" / "model.onnx").write_bytes(b"a model of my own")
    code, _, err = command(*arguments)
    assert code == 2
    assert "--out: mine has a model.onnx that was not written by this command" in err
    assert (folder / "mine" / "model.onnx").read_bytes() == b"a model of my own"
    (folder / "mine" / "model.onnx").unlink()
    assert [command(*arguments)[0] for _ in range(2)] == [0, 0]
