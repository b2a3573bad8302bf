"""What is kept, answered and shown of detectors and of models that label pixels, through the entry point."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from tests.commands.test_run_detectors import ready  # noqa: F401  a fixture

import testifai as ta
from testifai import merge
from testifai.oracles.average_precision import matches, mean_average_precision
from testifai.present import overlays
from testifai.session.stored_runs import reopen

KEEP = 'strategy = "full"\nkeep = ["detections"]'


@pytest.fixture
def kept(folder, command, spec_text):
    (folder / "kept.toml").write_text(spec_text.replace('strategy = "full"', KEEP).partition("[[gate]]")[0])
    assert command("run", "kept.toml")[0] == 0
    return ta.open("kept.db")


def boxes_of(run):
    places = np.arange(run.outcomes.inputs)
    names = ("detections", "expected")
    return {(name, test): run.outcomes.boxes(name, test, places) for name in names for test in range(run.space.size)}


def same(one, other):
    return all(
        all(np.array_equal(a, b) for a, b in zip(rows, other[key], strict=True)) and len(rows) == len(other[key])
        for key, rows in one.items()
    )


def test_average_precision_of_a_stored_run(kept, command):
    found = boxes_of(kept)
    alone = [
        mean_average_precision(matches(found["detections", t], found["expected", t])) for t in range(kept.space.size)
    ]
    assert alone[0] == pytest.approx(1)
    assert alone[5] < 1  # turned tiles
    code, out, _ = command("query", "kept.db", "order == 2", "--score", "map", "--json")
    assert code == 0
    assert json.loads(out)["estimate"] == pytest.approx(np.mean([alone[4], alone[5]]), abs=1e-6)
    code, out, _ = command("query", "kept.db", "turn == 5", "--score", "map")
    assert code == 0
    assert "mean average precision for turn == 5" in out
    assert "the mean of 2 tests, on 6 images, for images like these" in out
    expected = found["expected", 2][0]
    assert len(expected)
    assert not np.array_equal(expected, found["expected", 0][0])  # as moved


def test_a_run_in_parts_keeps_the_same_boxes(kept, folder, command):
    kept_text = (folder / "kept.toml").read_text()
    (folder / "cut.toml").write_text(kept_text.replace(KEEP, KEEP + "\nbudget = 20"))
    command("run", "cut.toml")
    (folder / "cut.toml").write_text(kept_text)
    assert command("run", "cut.toml")[0] == 0
    assert same(boxes_of(ta.open("cut.db")), boxes_of(kept))
    for part in ("1", "2"):
        assert command("run", "kept.toml", "--part", f"{part}/2", "-o", f"part{part}.db")[0] == 0
    merge(["part1.db", "part2.db"], "merged.db")
    assert same(boxes_of(ta.open("merged.db")), boxes_of(kept))


def test_the_file_is_no_larger_than_check_says(kept, folder, command):
    code, out, _ = command("check", "kept.toml", "--json")
    assert code == 0
    said = json.loads(out)["file_bytes"]
    assert said / 10 < (folder / "kept.db").stat().st_size <= said


def test_boxes_are_exported(kept, command):
    code, out, _ = command("export", "kept.db", "--boxes", "-o", "boxes.npz")
    assert code == 0
    arrays = np.load("boxes.npz")
    assert f"Wrote {len(arrays['boxes'])} boxes" in out
    assert arrays["axes"].tolist() == ["brightness", "turn"]


def test_photographs_are_shown_with_their_boxes(kept, folder, command):
    assert command("report", "kept.db", "-o", "kept.html")[0] == 0
    page = (folder / "kept.html").read_text()
    assert overlays.LEGEND in page
    assert "missed" in page
    assert "photographs" in page
    from testifai.present.examples import examples

    subject = reopen("kept.db").subject
    (shown,) = examples(subject, kept, 5, np.array([0]))
    assert shown.note is not None
    assert shown.changed.picture is not None


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (('oracle = "detection"', 'oracle = "consistency"'), "keep: detections are what the oracle detection judges"),
        (('"detections"', '"boxes"'), "keep"),
    ],
)
def test_what_cannot_be_kept_is_one_line(folder, command, spec_text, change, line):
    (folder / "bad.toml").write_text(spec_text.replace('strategy = "full"', KEEP).replace(*change))
    code, _, err = command("run", "bad.toml")
    assert code == 2
    assert line in err
    assert err.count("\n") == 1


def test_a_run_without_boxes_has_no_average_precision(folder, command):
    assert command("run", "spec.toml")[0] == 0
    for arguments in (
        ["query", "spec.db", "order == 1", "--score", "map"],
        ["export", "spec.db", "--boxes", "-o", "b.npz"],
    ):
        code, _, err = command(*arguments)
        assert code == 2
        assert 'this run kept no detections; add keep = ["detections"] to [scan]' in err


# -- label maps -------------------------------------------------------------------------------------------------------

BY_GREY = "import numpy as np\n\ndef labels(images):\n    return np.digitize(images[..., 0], [105, 195])\n"
SEGMENTATION = """[model]
python = "pixels:labels"
[data]
masks = "scenes/masks"
classes = ["ground", "disc", "bar"]
[space]
turn = { use = "classic.rotation", severities = [0, 3] }
dark = { use = "classic.brightness", severities = [0, 1, 5] }
[scan]
strategy = "full"
oracle = "segmentation"
"""


@pytest.fixture
def scenes(folder):
    (folder / "pixels.py").write_text(BY_GREY)
    (folder / "pixels.toml").write_text(SEGMENTATION)
    for name in ("images", "masks"):
        (folder / "scenes" / name).mkdir(parents=True)
    for number in range(5):
        labels = np.zeros((60, 80), np.uint8)
        cv2.circle(labels, (20 + 8 * number, 30), 12, 1, -1)
        cv2.rectangle(labels, (5, 5), (30, 14), 2, -1)
        cv2.imwrite(f"scenes/images/{number}.png", np.stack([np.array([60, 150, 240], np.uint8)[labels]] * 3, axis=-1))
        labels[-6:] = 255
        cv2.imwrite(f"scenes/masks/{number}.png", labels)
    return folder / "scenes"


def test_label_maps_beside_images_from_spec_to_report(scenes, folder, command):
    assert command("run", "pixels.toml")[0] == 0
    run = ta.open("pixels.db")
    assert run.scores == ("iou",)
    assert run.estimate[:, 0].tolist() == [1, 1]
    code, out, _ = command("query", "pixels.db", "dark == 5", "--score", "iou", "--json")
    assert code == 0
    assert json.loads(out)["robustness"] < 0.5
    assert command("report", "pixels.db", "-o", "pixels.html")[0] == 0
    page = (folder / "pixels.html").read_text()
    assert overlays.MAP_LEGEND in page
    assert "mean IoU 0." in page


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (
            lambda s: (s / "masks" / "3.png").unlink(),
            "3.png does not exist; the label map of 3.png is looked",
        ),
        (lambda s: (s / "masks" / "3.png").write_bytes(b"x"), "3.png is not a readable image; a label map is a grey"),
        (lambda s: cv2.imwrite(str(s / "masks/3.png"), np.zeros((60, 80, 3), np.uint8)), "3.png is in colour; a label"),
        (
            lambda s: cv2.imwrite(str(s / "masks/3.png"), np.zeros((60, 81), np.uint8)),
            "3.png is 60×81, the first",
        ),
        (lambda s: (s / "images").rename(s / "pictures"), "images does not exist"),
    ],
)
def test_label_maps_that_cannot_be_are_one_line(scenes, command, spoil, line):
    spoil(scenes)
    code, _, err = command("run", "pixels.toml")
    assert code == 2
    assert line in err
    assert err.count("error: ") == 1
    assert "Traceback" not in err
