"""A run file keeps what it was given, whole or not at all, and says so when it is damaged."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes
from testifai.runs.reader import APPLICATION_ID, BLOCK, VERSION
from testifai.runs.store import Store, identity_changes

IDENTITY = {"seed": 3, "space": {"axes": [], "order_sensitive": False}, "population": "data", "note": "Θ"}
META = {"identity": IDENTITY, "inputs": 2500, "classes": ["naïve", "b"], "nothing": None}


def everything(outcomes: Outcomes):
    """All bits and kept values, to compare."""
    bits = {i: tuple(part.tobytes() for part in outcomes.bits(i)) for i in sorted(outcomes)}
    kept = {(i, name): outcomes.kept(i, name).tobytes() for name in outcomes.kept_names() for i in sorted(outcomes)}
    return outcomes.inputs, bits, kept


def made(inputs: int, tests: int = 4, seed: int = 0) -> Outcomes:
    """Outcomes with whole, partial and scattered blocks, and values."""
    rng = np.random.default_rng(seed)
    outcomes = Outcomes(inputs)
    for configuration in range(tests):
        share = [1.0, 0.5, 0.01, 0.9][configuration % 4]
        places = np.union1d(np.flatnonzero(rng.random(inputs) < share), [inputs - 1])
        values = {"value": rng.normal(size=len(places)).astype(np.float32)}
        outcomes.record(configuration * 10**12, places, rng.random(len(places)) < 0.7, values)
    return outcomes


def touched(store: Store, outcomes: Outcomes, *, reference: bool = False) -> None:
    for configuration in outcomes:
        places = np.flatnonzero(outcomes.attempted(configuration, np.arange(outcomes.inputs)))
        store.touch(configuration, places, reference=reference)


def write(path: Path, outcomes: Outcomes, references=None, labels=None) -> None:
    with Store.create_or_open(path) as store:
        store.put(**META)
        if labels is not None:
            store.put_array("labels", labels)
        touched(store, outcomes, reference=references is not None)
        store.save(outcomes, references)


def contents(path: Path, inputs: int, open_it=Store.open):
    """Everything a file holds."""
    with open_it(path) as store:
        references, labels = store.load_by_place("reference", inputs), store.get_array("labels")
        arrays = [None if array is None else (array.dtype.str, array.tolist()) for array in (references, labels)]
        return everything(store.load(inputs)), arrays, {key: store.get(key) for key in META}


# -- round trips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [1, 7, 8, 1000, BLOCK, BLOCK + 1, 3 * BLOCK - 3])
def test_what_was_saved_is_what_is_loaded(tmp_path, inputs):
    outcomes = made(inputs)
    references = np.random.default_rng(1).normal(size=(inputs, 3)).astype(np.float32)
    labels = np.arange(inputs) % 5
    write(tmp_path / "run.db", outcomes, references, labels)
    loaded, arrays, meta = contents(tmp_path / "run.db", inputs)
    assert loaded == everything(outcomes)
    assert arrays == [("<f4", references.tolist()), ("<i8", labels.tolist())]
    assert meta == META
    assert [file.name for file in tmp_path.iterdir()] == ["run.db"]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), st.sets(st.integers(0, 2 * BLOCK + 4), min_size=1, max_size=12)), max_size=4
        ),
        max_size=4,
    )
)
def test_many_saves_in_any_order_add_up(tmp_path_factory, rounds):
    path = tmp_path_factory.mktemp("store") / "run.db"
    inputs = 2 * BLOCK + 5
    outcomes = Outcomes(inputs)
    for number, listed in enumerate(rounds):
        with Store.create_or_open(path) as store:  # every round in its own session
            for configuration, places in listed:
                where = np.array(sorted(places))
                passed = (where * 7 + configuration) % 3 > 0
                outcomes.record(configuration, where, passed, {"value": (where + number).astype(np.float32)})
                store.touch(configuration, where)
            store.save(outcomes)
    if rounds:
        with Store.open(path) as store:
            assert everything(store.load(inputs)) == everything(outcomes)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.float64, bool, ">i4", np.uint8])
def test_arrays_keep_their_values_and_shape(tmp_path, dtype):
    array = np.arange(24).reshape(4, 3, 2).astype(dtype)
    with Store.create_or_open(tmp_path / "run.db") as store:
        store.put_array("a", array)
        found = store.get_array("a")
        assert found is not None
        assert found.dtype == np.dtype(dtype).newbyteorder("<")
        np.testing.assert_array_equal(found, array)
        assert store.get_array("b") is None
        assert store.load_by_place("reference", 4) is None


def test_a_value_kept_later_does_not_need_the_earlier_ones(tmp_path):
    outcomes = Outcomes(20)
    with Store.create_or_open(tmp_path / "run.db") as store:
        for place in (3, 9):
            outcomes.record(1, np.array([place]), np.array([True]), {"value": np.array([place], np.float32)})
            store.touch(1, np.array([place]))
            store.save(outcomes)
        found = store.load(20).kept(1, "value")
    assert np.flatnonzero(~np.isnan(found)).tolist() == [3, 9]
    assert found[[3, 9]].tolist() == [3, 9]


def test_references_of_blocks_not_measured_yet_are_left_out(tmp_path):
    outcomes = Outcomes(3 * BLOCK)
    references = np.arange(3 * BLOCK)
    outcomes.record(0, np.array([BLOCK + 4]), np.array([True]))
    with Store.create_or_open(tmp_path / "run.db") as store:
        touched(store, outcomes, reference=True)
        store.save(outcomes, references)
        found = store.load_by_place("reference", 3 * BLOCK)
    assert found is not None
    assert found[BLOCK : 2 * BLOCK].tolist() == references[BLOCK : 2 * BLOCK].tolist()
    assert not found[:BLOCK].any()
    assert not found[2 * BLOCK :].any()


def test_a_run_takes_less_than_half_a_megabyte_per_million_outcomes(tmp_path):
    outcomes = Outcomes(10_000)
    rng = np.random.default_rng(0)
    for configuration in range(100):
        outcomes.record(configuration, np.arange(10_000), rng.random(10_000) < 0.5)
    write(tmp_path / "run.db", outcomes)
    assert (tmp_path / "run.db").stat().st_size < 0.5e6


# -- one transaction -------------------------------------------------------------------------------------------------


def test_a_save_that_fails_in_the_middle_leaves_the_file_as_it_was(tmp_path):
    before, after = made(2500, seed=1), made(2500, seed=1)
    after.record(77, np.arange(2500), np.ones(2500, bool))
    write(tmp_path / "run.db", before)
    with Store.create_or_open(tmp_path / "run.db") as store:
        real = store._connection

        class Failing:
            """Refuses the second statement of a save, after the outcomes and before the values."""

            def __getattr__(self, name):
                return getattr(real, name)

            def executemany(self, statement, rows):
                if "kept" in statement:
                    raise sqlite3.OperationalError("database or disk is full")
                return real.executemany(statement, rows)

        store._connection = Failing()
        touched(store, after)
        with pytest.raises(InputError, match="saved before is intact"):
            store.save(after)
        store._connection = real
        assert everything(store.load(2500)) == everything(before)
        store.save(after)  # what could not be saved was not forgotten
        assert everything(store.load(2500)) == everything(after)


def test_an_interrupt_in_the_middle_of_a_save_leaves_the_file_as_it_was(tmp_path):
    before = made(2500)
    write(tmp_path / "run.db", before)
    with Store.create_or_open(tmp_path / "run.db") as store:

        def interrupted():
            with store._transaction():
                store._connection.execute("DELETE FROM kept")
                store._connection.execute("DELETE FROM outcomes")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert everything(store.load(2500)) == everything(before)


def test_a_kept_value_belongs_to_an_outcome(tmp_path):
    with Store.create_or_open(tmp_path / "run.db") as store:
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            store._connection.execute("INSERT INTO kept VALUES (1, 0, 'value', x'00', 0)")
        store._connection.execute("INSERT INTO outcomes VALUES (1, 0, NULL, x'00', 0)")
        store._connection.execute("INSERT INTO kept VALUES (1, 0, 'value', x'00', 0)")
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            store._connection.execute("DELETE FROM outcomes")


def test_a_full_disk_is_one_line_and_loses_nothing_saved(tmp_path):
    path = tmp_path / "run.db"
    before = made(2500)
    write(path, before)
    with Store.create_or_open(path) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        after = made(2500)
        for configuration in range(1, 500):
            after.record(configuration, np.arange(2500), np.ones(2500, bool))
        touched(store, after)
        with pytest.raises(InputError, match=r"full.*make room and run the same command again") as caught:
            store.save(after)
        assert "\n" not in str(caught.value)
        with Store.open(path) as reader:
            assert everything(reader.load(2500)) == everything(before)
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.save(after)
    with Store.open(path) as reader:
        assert everything(reader.load(2500)) == everything(after)


def test_a_disk_full_from_the_start_leaves_nothing_that_looks_like_a_run(tmp_path, monkeypatch):
    real = sqlite3.connect

    def connect(*args, **options):
        connection = real(*args, **options)
        connection.execute("PRAGMA max_page_count = 2")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(InputError, match="full"):
        Store.create_or_open(tmp_path / "run.db")
    monkeypatch.undo()
    write(tmp_path / "run.db", made(100))  # the same command works once there is room
    assert contents(tmp_path / "run.db", 100)[0] == everything(made(100))


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    path = tmp_path_factory.mktemp("healthy") / "run.db"
    outcomes = made(2500, tests=8)
    write(path, outcomes, np.arange(2500), np.arange(2500) % 2)
    return path, contents(path, 2500)


def refused_or_equal(path: Path, whole, open_it=Store.open) -> str:
    found, refusal = None, ""
    try:
        found = contents(path, 2500, open_it)
    except InputError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith("run file: ")
        assert "\n" not in refusal
        return refusal
    assert found == whole, "a damaged file was read as if it were another run"
    return ""


def test_a_file_cut_off_anywhere_is_reported(tmp_path, healthy):
    path, whole = healthy
    data = path.read_bytes()
    cut = tmp_path / "cut.db"
    random.seed(0)
    places = {1, 15, 16, 99, 100, 101, 511, 4095, len(data) - 1, len(data) - 4096, *range(4096, len(data), 4096)}
    for size in sorted(places | {random.randrange(1, len(data)) for _ in range(60)}):
        cut.write_bytes(data[:size])
        for open_it in (Store.open, Store.create_or_open):
            reason = refused_or_equal(cut, whole, open_it)
            # The end of the last page may be unused.
            assert "damaged" in reason or (not reason and size > len(data) - 4096), (size, reason)
        assert cut.read_bytes() == data[:size], "a damaged file is left as it is"


@pytest.mark.parametrize(("step", "elsewhere"), [(5, 60), pytest.param(1, 1500, marks=pytest.mark.simulation)])
def test_flipped_bytes_are_harmless_or_reported(tmp_path, healthy, step, elsewhere):
    path, whole = healthy
    data = path.read_bytes()
    bad = tmp_path / "bad.db"
    dice = random.Random(1)
    # Bytes of the header and of the first table's page, and others anywhere else.
    places = [*range(0, 200, step), *(dice.randrange(len(data)) for _ in range(elsewhere))]
    reported = 0
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= dice.choice([1, 2, 4, 8, 16, 32, 64, 128, dice.randrange(1, 256)])
        bad.write_bytes(flipped)
        reported += bool(refused_or_equal(bad, whole, dice.choice([Store.open, Store.create_or_open])))
    assert reported > len(places) / 4


def test_many_flips_at_once_and_zeroed_pages_are_reported(tmp_path, healthy):
    path, whole = healthy
    data = path.read_bytes()
    bad = tmp_path / "bad.db"
    dice = random.Random(2)
    for _ in range(20):
        flipped = bytearray(data)
        for place in dice.sample(range(100, len(data)), 20):
            flipped[place] ^= dice.randrange(1, 256)
        bad.write_bytes(flipped)
        refused_or_equal(bad, whole)
    for start in range(0, len(data), 4096):
        bad.write_bytes(data[:start] + bytes(4096) + data[start + 4096 :])
        assert refused_or_equal(bad, whole) or not any(data[start : start + 4096])


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("outcomes", "passed = x'ff' || substr(passed, 2) WHERE configuration = 0 AND block = 1"),
        ("outcomes", "attempted = NULL WHERE configuration = 1000000000000 AND block = 0"),
        ("outcomes", "configuration = 5 WHERE configuration = 2000000000000 AND block = 0"),
        ("outcomes", "passed = substr(passed, 1, 10) WHERE configuration = 0 AND block = 0"),
        ("outcomes", "passed = 'text' WHERE configuration = 0 AND block = 0"),
        ("outcomes", "attempted = 7 WHERE configuration = 0 AND block = 0"),
        ("kept", "data = zeroblob(length(data)) WHERE configuration = 0 AND block = 0"),
        ("kept", "name = 'predicted' WHERE configuration = 0 AND block = 0"),
        ("arrays", "dtype = '<f8' WHERE name = 'labels'"),
        ("arrays", "shape = '[1250, 2]' WHERE name = 'labels'"),
        ("arrays", "block = block + 3 WHERE name = 'reference'"),
        ("arrays", "data = x'00' WHERE name = 'labels'"),
        ("meta", "value = replace(value, '3', '4') WHERE key = 'identity'"),
        ("meta", "value = '{' WHERE key = 'classes'"),
    ],
)
def test_a_changed_cell_is_noticed_even_when_the_pages_are_sound(tmp_path, healthy, table, change):
    path, whole = healthy
    bad = tmp_path / "bad.db"
    shutil.copy(path, bad)
    with sqlite3.connect(bad) as connection:
        assert connection.execute(f"UPDATE {table} SET {change}").rowcount >= 1
    connection.close()
    assert "damaged" in refused_or_equal(bad, whole)


def test_a_damaged_log_is_an_earlier_state_or_reported(tmp_path):
    """What a killed writer left in the write-ahead log may be damaged, too."""
    path = tmp_path / "run.db"
    states = [everything(Outcomes(300))]
    outcomes = Outcomes(300)
    store = Store.create_or_open(path)
    for configuration in range(6):
        outcomes.record(configuration, np.arange(300), np.arange(300) % (configuration + 2) == 0)
        touched(store, outcomes)
        store.save(outcomes)
        states.append(everything(store.load(300)))
    left = {ending: Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal")}  # as kill -9 leaves them
    store.close()
    dice = random.Random(3)
    seen, refusals = set(), []
    for _ in range(150):
        copy = tmp_path / "copy.db"
        for ending in ("-wal", "-shm", ""):
            Path(f"{copy}{ending}").unlink(missing_ok=True)
        log = bytearray(left["-wal"])
        log[dice.randrange(len(log))] ^= dice.randrange(1, 256)
        copy.write_bytes(left[""])
        Path(f"{copy}-wal").write_bytes(log[: dice.choice([len(log), dice.randrange(len(log))])])
        try:
            with Store.open(copy) as reader:
                seen.add(states.index(everything(reader.load(300))))
        except InputError as error:
            refusals.append(str(error))
    assert len(seen) > 3
    assert all("damaged" in line for line in refusals)


@pytest.mark.parametrize("content", [b"hello", b"x" * 5000, b"PK\x03\x04" + bytes(200), b"\n", b"SQLite format 3\0"])
def test_what_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "notes"
    path.write_bytes(content)
    for open_it in (Store.open, Store.create_or_open):
        with pytest.raises(InputError, match="damaged") as caught:
            open_it(path)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["notes"]


def test_a_file_of_another_application_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE meta (key, value)")
    connection.close()
    before = path.read_bytes()
    for open_it in (Store.open, Store.create_or_open):
        with pytest.raises(InputError, match="not a testifai run"):
            open_it(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("how", ["empty", "no tables", "journal mode set"])
def test_a_file_without_tables_becomes_a_run(tmp_path, how):
    path = tmp_path / "run.db"
    path.touch()
    if how != "empty":
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = WAL" if how == "journal mode set" else "VACUUM")
        connection.close()
    with pytest.raises(InputError, match="holds no run yet"):
        Store.open(path)
    write(path, made(100))
    assert contents(path, 100)[0] == everything(made(100))


def test_a_process_killed_while_it_made_the_file_leaves_one_that_can_be_used(tmp_path):
    script = f"""
        import os, sqlite3
        from testifai.runs import store
        store.reader.SCHEMA = store.reader.SCHEMA.replace("CREATE TABLE kept", "SELECT die(); CREATE TABLE kept")
        real = sqlite3.connect
        def connect(*args, **options):
            connection = real(*args, **options)
            connection.create_function("die", 0, lambda: os.kill(os.getpid(), 9))
            return connection
        sqlite3.connect = connect
        store.Store.create_or_open({str(tmp_path / "run.db")!r})
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert ended.returncode == -9
    assert (tmp_path / "run.db").exists()
    write(tmp_path / "run.db", made(100))
    assert contents(tmp_path / "run.db", 100)[0] == everything(made(100))


# -- schema ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [VERSION - 1, VERSION + 1])
@pytest.mark.parametrize("open_it", [Store.open, Store.create_or_open])
def test_another_format_is_refused_and_left_alone(tmp_path, other, open_it):
    path = tmp_path / "run.db"
    write(path, made(100))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {other}")
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"has format {other}, this testifai reads format {VERSION}; start a new run"):
        open_it(path)
    assert path.read_bytes() == before


def test_the_file_says_what_it_is(tmp_path):
    write(tmp_path / "run.db", made(10))
    connection = sqlite3.connect(tmp_path / "run.db")
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    connection.close()


# -- where it lies ---------------------------------------------------------------------------------------------------


def test_a_place_that_cannot_hold_a_file_is_named(tmp_path):
    with pytest.raises(InputError, match="is a folder, not a run file; choose another place"):
        Store.create_or_open(tmp_path)
    with pytest.raises(InputError, match=r"the folder .*missing does not exist"):
        Store.create_or_open(tmp_path / "missing" / "run.db")
    with pytest.raises(InputError, match="is a folder, not a run file; make one with: testifai run"):
        Store.open(tmp_path)
    with pytest.raises(InputError, match="does not exist; make one with: testifai run"):
        Store.open(tmp_path / "missing.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_read_only_folder_can_be_read_and_not_written(tmp_path):
    path = tmp_path / "run.db"
    write(path, made(100))
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert contents(path, 100)[0] == everything(made(100))
        with pytest.raises(InputError, match=r"cannot write in .*; choose another place with --out"):
            Store.create_or_open(path)
    finally:
        tmp_path.chmod(0o755)
    assert contents(path, 100)[0] == everything(made(100))


@pytest.fixture
def read_only_folder(monkeypatch):
    """SQLite as it is where no file may be made: it cannot open a file with a log unless told nobody writes it."""
    real = sqlite3.connect

    def connect(target, **options):
        if "immutable" not in str(target):
            raise sqlite3.OperationalError("unable to open database file")
        return real(target, **options)

    def no_lock(*args):
        raise PermissionError(13, "Permission denied")

    def start():
        monkeypatch.setattr(sqlite3, "connect", connect)
        monkeypatch.setattr(os, "open", no_lock)

    return start


def test_a_copy_on_read_only_media_can_be_read(tmp_path, read_only_folder):
    path = tmp_path / "a b#c?.db"
    write(path, made(100))
    read_only_folder()
    assert contents(path, 100)[0] == everything(made(100))
    with pytest.raises(InputError, match=r"cannot write in .* \(Permission denied\); choose another place with --out"):
        Store.create_or_open(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a b#c?.db"]


def test_outcomes_that_are_still_in_the_log_are_not_passed_over_on_read_only_media(tmp_path, read_only_folder):
    path, copy = tmp_path / "run.db", tmp_path / "copy.db"
    with Store.create_or_open(path) as store:
        outcomes = made(100)
        touched(store, outcomes)
        store.save(outcomes)
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", f"{copy}{ending}")
    read_only_folder()
    with pytest.raises(InputError, match=r"copy.db-wal.*copy both files"):
        Store.open(copy)


def test_a_reader_reads_while_a_writer_writes(tmp_path):
    path = tmp_path / "run.db"
    outcomes = Outcomes(2000)
    with Store.create_or_open(path) as writer:
        for configuration in range(20):
            outcomes.record(configuration, np.arange(2000), np.arange(2000) % 3 == 0)
            writer.touch(configuration, np.arange(2000))
            writer.save(outcomes)
            with Store.open(path) as reader:
                assert everything(reader.load(2000)) == everything(outcomes)
        with Store.open(path) as reader, writer._transaction():
            writer._connection.execute("DELETE FROM outcomes WHERE configuration = 0")
            assert len(reader.load(2000)) == 20


# -- words -----------------------------------------------------------------------------------------------------------


def test_changes_are_said_in_words():
    same = {"seed": 1, "space": {"axes": [1, 2]}}
    assert identity_changes(same, dict(same)) == []
    assert identity_changes(same, {**same, "seed": 2}) == ["seed was 1, now 2"]
    assert identity_changes({"a": "x" * 100}, {"a": "y"}) == [f"a was {'x' * 59}…, now y"]
    assert identity_changes({}, {"a": 1}) == ["a was null, now 1"]
