"""Data sets too large to be read before a run: what is read, and how a change is noticed all the same."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time

import cv2
import numpy as np
import pytest

import testifai as ta
from testifai.data import image_files, lazy, load, wrap
from testifai.data.lazy import MappedInputs
from testifai.errors import InputError
from testifai.runs.merge import merge
from testifai.runs.outcomes import visiting_order
from testifai.runs.store import Store
from testifai.session.assembly import session_of
from testifai.support import fingerprints

FADE = ta.Perturbation("fade", lambda x, by, rng: (x * by).astype(np.uint8), [1.0, 0.9, 0.8])
SPACE = ta.Space({"fade": FADE, "again": FADE})


@pytest.fixture(scope="module")
def opened():
    """How often an image was opened, as a list whose items are counted up."""
    counting = threading.Event()
    count = [0]

    def look(event, arguments):
        if event == "open" and counting.is_set() and str(arguments[0]).endswith(".bmp"):
            count[0] += 1

    sys.addaudithook(look)  # stays, so it is told when to count
    counting.set()
    yield count
    counting.clear()


def bright(batch):
    return (batch.mean(axis=(1, 2, 3)) > 100).astype(int)


def link(root, number, files=200):
    """A folder of two classes with so many images, hard links to a few."""
    (root / "files").mkdir(parents=True)
    for name in ("dark", "light"):
        (root / "images" / name).mkdir(parents=True)
    for source in range(files):
        image = np.full((4, 4, 3), 10 + source // 2 + 110 * (source % 2), np.uint8)
        cv2.imwrite(str(root / "files" / f"{source}.bmp"), image)
    for one in range(number):
        name = ("dark", "light")[one % files % 2]
        os.link(root / "files" / f"{one % files}.bmp", f"{root}/images/{name}/{one:07d}.bmp")
    return root / "images"


@pytest.fixture
def many(tmp_path, monkeypatch):
    """What counts as many, made small."""
    monkeypatch.setattr(image_files, "MAX_FILES", 50)
    monkeypatch.setattr(fingerprints, "SAMPLED_INPUTS", 8)
    for module in (image_files, lazy):
        monkeypatch.setattr(module, "MAX_BYTES", 20_000)
    root = tmp_path / "images"
    for name, value in (("dark", 10), ("light", 150)):
        (root / name).mkdir(parents=True)
        for number in range(100):
            cv2.imwrite(str(root / name / f"{number:03d}.bmp"), np.full((4, 4, 3), value + number // 2, np.uint8))
    return root


def scan(images, store, budget=60, **options):
    data = load("folder", images)
    made = ta.scan(bright, data, SPACE, strategy="balanced", budget=budget, store=store, **options)
    return data, made


def measured(store):
    """Places of the inputs that a run file knows the contents of, and those that were tried."""
    with Store.open(store) as opened_:
        held = opened_.load_by_place("contents", 200)
        outcomes = opened_.load(200)
    tried = np.unique(np.concatenate([outcomes.trials(test)[0] for test in outcomes]))
    return np.flatnonzero(held.any(axis=1)), tried


def change(data, places):
    """Other content under the same name and of the same size, of the first input at these places that is no sample."""
    rows = visiting_order(len(data), 0)[places]
    file = data.inputs.files[int(rows[~np.isin(rows, fingerprints.sampled(len(data)))][0])]
    cv2.imwrite(str(file), cv2.imread(str(file)) + 1)
    return file


@pytest.mark.parametrize("number", [4_000, pytest.param(1_000_000, marks=pytest.mark.simulation)])
def test_a_run_over_very_many_images_reads_what_it_uses_and_starts_at_once(
    tmp_path, opened, request, monkeypatch, number
):
    monkeypatch.setattr(image_files, "MAX_FILES", min(number // 2, image_files.MAX_FILES))
    images = link(tmp_path, number)
    request.addfinalizer(lambda: shutil.rmtree(tmp_path))  # pytest would leave a million files behind
    first = []

    def model(batch):
        first.append((time.perf_counter(), opened[0])) if not first else None
        return bright(batch)

    before, begin = opened[0], time.perf_counter()
    made = ta.scan(model, load("folder", images), SPACE, budget=2_000, store=tmp_path / "run.db")
    when, files = first[0]
    used = {place for test in made.outcomes for place in made.outcomes.trials(test)[0].tolist()}
    assert made.inferences == 2_000
    assert files - before <= fingerprints.SAMPLED_INPUTS + 20 + len(used)
    assert opened[0] - before <= fingerprints.SAMPLED_INPUTS + 20 + 4 * len(used)
    assert when - begin < (4 if number < 100_000 else 30)  # on a busy machine
    assert (tmp_path / "run.db").stat().st_size < 1_000_000


def test_small_data_sets_are_told_by_all_contents_as_ever(many, monkeypatch):
    monkeypatch.setattr(image_files, "MAX_FILES", 1000)
    monkeypatch.setattr(image_files, "MAX_BYTES", 1 << 30)
    data = load("folder", many)
    assert data.inputs.contents is None
    assert data.fingerprint == fingerprints.fingerprint_data(
        data.inputs, data.labels, data.classes, identity=data.inputs.whole_identity()
    )


def test_names_and_some_contents_tell_a_large_one(many):
    before = load("folder", many).fingerprint
    assert load("folder", many).fingerprint == before
    file = many / "dark" / "000.bmp"  # the first is always among the sample
    was = file.read_bytes()
    cv2.imwrite(str(file), np.full((4, 4, 3), 77, np.uint8))
    assert load("folder", many).fingerprint != before
    file.write_bytes(was)
    assert load("folder", many).fingerprint == before
    (many / "light" / "050.bmp").rename(many / "light" / "05x.bmp")
    assert load("folder", many).fingerprint != before


def test_a_run_file_knows_what_its_inputs_held(many, tmp_path):
    scan(many, tmp_path / "run.db")
    held, tried = measured(tmp_path / "run.db")
    assert held.tolist() == tried.tolist()
    assert len(tried) < 200


def test_a_run_is_not_continued_where_a_measured_input_changed(many, tmp_path):
    data, _ = scan(many, tmp_path / "run.db")
    file = change(data, measured(tmp_path / "run.db")[0])
    with pytest.raises(
        InputError, match=rf"was measured on \d+ inputs, and 1 of them have changed since, such as {file}"
    ):
        scan(many, tmp_path / "run.db", budget=120)


def test_a_change_of_an_input_that_was_not_measured_changes_nothing(many, tmp_path):
    data, _ = scan(many, tmp_path / "run.db")
    change(data, np.setdiff1d(np.arange(200), measured(tmp_path / "run.db")[0]))
    assert scan(many, tmp_path / "run.db", budget=120)[1].inferences == 120


def test_an_input_that_changes_while_a_run_goes_on_ends_it(many, tmp_path):
    data = load("folder", many)
    data.inputs[np.array([5, 6])]
    cv2.imwrite(str(data.inputs.files[6]), np.full((4, 4, 3), 99, np.uint8))
    with pytest.raises(InputError, match=r"006\.bmp is not what it was when it was read before"):
        data.inputs[np.array([6, 7])]


def test_a_run_cut_short_and_continued_is_the_run_left_alone(many, tmp_path):
    whole = scan(many, tmp_path / "whole.db", budget=90)[1]
    scan(many, tmp_path / "parts.db", budget=90)
    with Store.create_or_open(tmp_path / "parts.db") as store:  # as a kill leaves it: some outcomes, nothing of files
        store._connection.execute("DELETE FROM kept")
        store._connection.execute("DELETE FROM outcomes WHERE configuration > 4")
        store._connection.execute("DELETE FROM arrays WHERE name = 'files'")
    again = scan(many, tmp_path / "parts.db", budget=90)[1]
    assert {test: again.outcomes.bits(test)[1].tobytes() for test in again.outcomes} == {
        test: whole.outcomes.bits(test)[1].tobytes() for test in whole.outcomes
    }
    with Store.open(tmp_path / "parts.db") as one, Store.open(tmp_path / "whole.db") as other:
        assert np.array_equal(one.load_by_place("contents", 200), other.load_by_place("contents", 200))


def test_parts_measured_on_other_contents_are_not_merged(many, tmp_path):
    for number in (1, 2):
        session_of(bright, load("folder", many), SPACE, strategy="full", part=(number, 2)).run(
            tmp_path / f"{number}.db"
        )
    merge([tmp_path / "1.db", tmp_path / "2.db"], tmp_path / "whole.db")
    assert len(measured(tmp_path / "whole.db")[0]) == 200
    with Store.create_or_open(tmp_path / "2.db") as store:
        held = store.load_by_place("contents", 200)
        store.put_array("contents", np.where(held.any(axis=1, keepdims=True), held, 7).astype(np.uint64))
    with pytest.raises(InputError, match=r"2\.db was measured on other contents of the data"):
        merge([tmp_path / "1.db", tmp_path / "2.db"], tmp_path / "other.db")


def test_arrays_in_files_are_told_by_some_rows_and_checked_as_they_are_read(many, tmp_path):
    rows = np.random.default_rng(0).random((600, 10)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=rows, y=np.arange(600) % 2)
    data = wrap(tmp_path / "rows.npz")
    told = data.fingerprint
    with (tmp_path / "rows.npz").open("r+b") as file:
        place = file.read().index(rows[17].tobytes())
        data.inputs[np.array([17])]
        file.seek(place)
        file.write(np.full(1, np.nan, np.float32).tobytes())
    with pytest.raises(InputError, match="row 17 is not what it was"):
        data.inputs[np.array([3, 17])]
    again = wrap(tmp_path / "rows.npz")
    assert again.fingerprint == told
    with pytest.raises(InputError, match="row 17 holds NaN or infinity"):
        again.inputs[np.array([3, 17])]


def test_a_mapped_array_stays_in_its_file(many, tmp_path):
    rows = np.arange(12_000.0).reshape(600, 20)
    np.save(tmp_path / "rows.npy", rows)
    data = wrap(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    assert isinstance(data.inputs, MappedInputs)
    assert data.inputs.contents is not None
    assert np.array_equal(data.inputs[np.array([5, 599])], rows[[5, 599]])
    part = wrap(np.load(tmp_path / "rows.npy", mmap_mode="r")[10:]).inputs
    assert np.array_equal(part[:2], rows[10:12])
