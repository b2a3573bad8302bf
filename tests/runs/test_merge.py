"""Parts of a run made apart become the run made in one piece."""

import itertools

import numpy as np
import pytest

from testifai import merge
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.present.export import table
from testifai.runs.store import Store
from testifai.session.assembly import session_of
from testifai.session.stored_runs import open_run
from testifai.space import Space

SHIFT = Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.3])
NOISE = Perturbation("noise", lambda x, by, rng: x + by * rng.normal((2,)), [0.0, 0.2, 0.4])
SPACE = Space({"shift": SHIFT, "noise": NOISE})
ROWS = np.random.default_rng(0).random((1030, 2))
LABELS = (ROWS[:, 0] > 0.5).astype(int)


def model(rows):
    return np.stack([0.5 - rows[:, 0], rows[:, 0] - 0.5], axis=1)


def other_model(rows):
    return np.stack([0.4 - rows[:, 0], rows[:, 0] - 0.4], axis=1)


def run(path, part=None, under=model, data=None, space=SPACE, **options):
    options = {"strategy": "full", "keep": ("value",), "batch_size": 500, **options}
    return session_of(under, data or (ROWS, LABELS), space, part=part, **options).run(path)


def everything(path):
    """All that a run answers from."""
    with Store.open(path) as store:
        outcomes = store.load(len(ROWS))
        bits = {i: tuple(part.tobytes() for part in outcomes.bits(i)) for i in sorted(outcomes)}
        kept = {(i, name): outcomes.kept(i, name).tobytes() for name in outcomes.kept_names() for i in bits}
        references, labels = store.load_by_place("reference", len(ROWS)), store.get_array("labels")
        arrays = [None if array is None else array.tolist() for array in (references, labels)]
        return bits, kept, arrays, store.get("identity"), store.get("inputs"), store.get("classes")


@pytest.mark.parametrize("oracle", ["consistency", {"use": "tolerance", "eps": 0.2}])
def test_three_parts_are_the_whole_in_any_order_and_grouping(tmp_path, oracle):
    whole = run(tmp_path / "whole.db", oracle=oracle)
    parts = [tmp_path / f"part{i}.db" for i in (1, 2, 3)]
    shares = [run(path, part=(i, 3), oracle=oracle).inferences for i, path in enumerate(parts, start=1)]
    assert sum(shares) == whole.inferences
    assert max(shares) - min(shares) <= SPACE.size
    for number, order in enumerate(list(itertools.permutations(parts))[::2]):
        merge(order, tmp_path / f"flat{number}.db")
        merge(order[:2], tmp_path / f"pair{number}.db")
        merge([order[2], tmp_path / f"pair{number}.db"], tmp_path / f"nested{number}.db")
        for name in ("flat", "nested"):
            found = tmp_path / f"{name}{number}.db"
            assert everything(found) == everything(tmp_path / "whole.db")
            assert table(open_run(found)) == table(whole)


def test_parts_merge_with_themselves_and_with_the_whole(tmp_path):
    run(tmp_path / "whole.db")
    run(tmp_path / "part.db", part=(2, 3))
    merge([tmp_path / "part.db", tmp_path / "part.db"], tmp_path / "twice.db")
    assert everything(tmp_path / "twice.db") == everything(tmp_path / "part.db")
    merge([tmp_path / "part.db", tmp_path / "whole.db"], tmp_path / "both.db")
    assert everything(tmp_path / "both.db") == everything(tmp_path / "whole.db")


def test_a_merge_with_a_part_missing_is_continued_to_the_whole(tmp_path):
    oracle = "consistency"
    run(tmp_path / "whole.db", oracle=oracle)
    for i in (1, 3):
        run(tmp_path / f"part{i}.db", part=(i, 3), oracle=oracle)
    merge([tmp_path / "part1.db", tmp_path / "part3.db"], tmp_path / "merged.db")
    run(tmp_path / "merged.db", oracle=oracle)
    assert everything(tmp_path / "merged.db") == everything(tmp_path / "whole.db")


CALLS = []  # not in a closure: what a function holds is part of what it is


def counted(rows):
    CALLS.append(len(rows))
    return model(rows)


def test_a_part_is_continued_as_that_part(tmp_path):
    CALLS.clear()
    run(tmp_path / "part.db", part=(1, 3), under=counted)
    spent = sum(CALLS)
    run(tmp_path / "part.db", part=(1, 3), under=counted)
    assert sum(CALLS) == spent
    run(tmp_path / "part.db", part=(2, 3), under=counted)
    run(tmp_path / "part.db", under=counted)
    assert sum(CALLS) == SPACE.size * len(ROWS)


OTHER = Space({"shift": SHIFT, "noise": (NOISE, [0, 2])})


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"under": other_model}, "model"),
        ({"data": (ROWS + 1e-9, LABELS)}, "data"),
        ({"data": (ROWS, 1 - LABELS)}, "data"),
        ({"seed": 1}, "seed was 0, now 1"),
        ({"space": OTHER}, "space"),
        ({"oracle": "consistency"}, "oracle"),
        ({"strategy": "ordered"}, "strategy"),
        ({"keep": ()}, "keep"),
    ],
)
def test_parts_of_another_run_are_refused_with_what_differs(tmp_path, options, field):
    run(tmp_path / "one.db", part=(1, 2))
    run(tmp_path / "two.db", part=(2, 2), **options)
    with pytest.raises(InputError, match=f"two.db is not a part of the same run as .*one.db: {field}") as caught:
        merge([tmp_path / "one.db", tmp_path / "two.db"], tmp_path / "out.db")
    assert "\n" not in str(caught.value)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.db", "two.db"]


def test_contradicting_outcomes_are_refused_and_nothing_is_left_behind(tmp_path):
    for name in ("one.db", "two.db"):
        run(tmp_path / name)
    with Store.create_or_open(tmp_path / "two.db") as store:
        outcomes = store.load(len(ROWS))
        row = outcomes.bits(4)[1]
        row[3] ^= 0b100
        store.touch(4, np.array([24]))
        store.save(outcomes)
    with pytest.raises(InputError, match=r"contradict each other: 1 inputs .*configuration 4") as caught:
        merge([tmp_path / "one.db", tmp_path / "two.db"], tmp_path / "out.db")
    assert "\n" not in str(caught.value)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.db", "two.db"]


def test_an_existing_file_is_never_overwritten(tmp_path):
    run(tmp_path / "one.db", part=(1, 2))
    (tmp_path / "out.db").write_text("mine")
    with pytest.raises(InputError, match=r"out\.db exists; give a new file"):
        merge([tmp_path / "one.db"], tmp_path / "out.db")
    with pytest.raises(InputError, match=r"one\.db exists"):
        merge([tmp_path / "one.db"], tmp_path / "one.db")
    assert (tmp_path / "out.db").read_text() == "mine"


def test_files_with_a_name_like_the_output_are_left_alone(tmp_path):
    parts = [tmp_path / "run.db.part", tmp_path / "run.db.part1", tmp_path / "run.db.part2"]
    for path, part in zip(parts, [(1, 3), (2, 3), (3, 3)], strict=True):
        run(path, part=part)
    before = [path.read_bytes() for path in parts]
    merge(parts, tmp_path / "run.db")
    assert [path.read_bytes() for path in parts] == before
    assert sorted(tmp_path.iterdir()) == sorted([*parts, tmp_path / "run.db"])


def test_mistakes_are_one_line_and_leave_nothing_behind(tmp_path):
    run(tmp_path / "one.db", part=(1, 2))
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at " * 10)
    Store.create_or_open(tmp_path / "started.db").close()
    before = sorted(tmp_path.iterdir())
    for sources, out, words in [
        ([], "out.db", "at least one run"),
        (["missing.db"], "out.db", "missing.db does not exist"),
        (["one.db", "missing.db"], "out.db", "missing.db does not exist"),
        (["one.db", "text.db"], "out.db", "text.db is damaged"),
        (["one.db", "started.db"], "out.db", "started.db holds no run yet"),
        (["started.db", "one.db"], "out.db", "started.db holds no run yet"),
        (["one.db"], "missing/out.db", "missing does not exist"),
    ]:
        with pytest.raises(InputError, match=words) as caught:
            merge([tmp_path / name for name in sources], tmp_path / out)
        assert "\n" not in str(caught.value)
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("part", [(0, 3), (4, 3), (1, 0)])
def test_a_part_that_does_not_exist_is_refused(part):
    with pytest.raises(InputError, match="part: expected I/N with I from 1 to N"):
        session_of(model, (ROWS, LABELS), SPACE, part=part)


def test_a_part_cannot_stop_early():
    with pytest.raises(InputError, match="part: a stopping rule needs all outcomes"):
        session_of(model, (ROWS, LABELS), SPACE, part=(1, 2), stopping="window")
