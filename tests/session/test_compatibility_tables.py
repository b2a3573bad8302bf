"""Whether perturbations, columns and model of a run on a table fit together."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import testifai as ta
from testifai.data import from_columns
from testifai.errors import InputError
from testifai.perturb import get

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(80, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)
MODEL = LogisticRegression().fit(ROWS, LABELS)
DATA = from_columns({"age": ROWS[:, 0], "income": ROWS[:, 1], "target": LABELS})


def scan(data=DATA, model=MODEL, **axes):
    return ta.scan(model, data, ta.Space(axes), strategy="full")


def test_columns_by_name():
    alone = scan(age=get("tabular.noise").on("age"), income=get("tabular.noise").on("income"))
    assert alone.estimate[5, 0] < alone.estimate[0, 5]


def test_arrays_have_columns_too():
    found = scan((ROWS, LABELS), noise=get("tabular.noise").on("x0"))
    assert found.estimate[5] < found.estimate[1]


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        (get("tabular.noise").on("agee"), "perturbation 'tabular.noise': columns: the data have no column 'agee'"),
        (get("tabular.swap"), "'tabular.swap': columns: none of age .number., income .number. is of kind boolean or"),
        (get("tabular.missing"), "LogisticRegression takes no missing values"),
    ],
)
def test_what_does_not_fit_is_refused_before_a_run_begins(tmp_path, axis, message):
    space = ta.Space({"noise": "tabular.noise", "other": axis})
    with pytest.raises(InputError, match=message):
        ta.scan(MODEL, DATA, space, store=tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()


def test_images_and_texts_are_no_tables():
    for data in (np.zeros((5, 8, 8), np.uint8), ["a text", "another"]):
        with pytest.raises(InputError, match="is for tables; these inputs are none"):
            scan((data, [0] * len(data)), lambda batch: np.zeros(len(batch), int), noise="tabular.noise")


def test_a_marker_for_missing_values_reaches_the_model():
    seen = []

    def model(rows):
        seen.append(np.array(rows))
        return (rows[:, 0] > 0).astype(int)

    marked = from_columns({"age": ROWS[:, 0], "income": ROWS[:, 1], "target": LABELS}, missing=-99.0)
    scan(marked, model, missing="tabular.missing")
    shown = np.concatenate(seen)
    assert (shown == -99).any()
    assert not np.isnan(shown).any()


def test_a_run_does_not_depend_on_the_size_of_batches():
    runs = [
        ta.scan(MODEL, DATA, ta.Space({"noise": "tabular.noise", "stale": "tabular.stale"}), batch_size=size,
                strategy="full").estimate.tolist()
        for size in (1, 7, 80)
    ]  # fmt: skip
    assert runs[0] == runs[1] == runs[2]
