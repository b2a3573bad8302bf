import io
import math

import numpy as np
import pytest
from rich.console import Console

import testifai as ta
from testifai.gates.verdicts import judge
from testifai.perturb import Perturbation
from testifai.present import terminal
from testifai.present.terminal import CleanConsole, blocks, folded
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.space import Space
from testifai.spec.parsing import Gate
from testifai.tomogram import EstimatorSettings, Tomogram
from testifai.tomogram.trust import assess

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, [0, 1, 2, 3])
SPACE = Space({"zoom": (KEEP, [0, 1, 3]), "blur": (KEEP, [0, 2])})


def tomogram(tests=range(6), **options) -> Tomogram:
    outcomes = Outcomes(40)
    for i in tests:
        outcomes.record(i, np.arange(20), np.arange(20) < 20 - 3 * i)
    labels = np.arange(40) % 2
    return Tomogram(SPACE, outcomes, visiting_order(40, 0), labels=labels, classes=("cat", "[dog]"), **options)


def printed(show, *arguments) -> str:
    out = Console(file=io.StringIO(), width=160, highlight=False)
    show(out, *arguments)
    return out.file.getvalue()


def test_numbers_in_words():
    assert terminal.rate(0.12345) == "0.123"
    assert terminal.rate(math.nan) == "–"
    assert terminal.signed(-0.5) == "-0.500"
    assert terminal.signed(0.25) == "+0.250"
    assert terminal.interval(math.nan, math.nan) == "no interval"
    assert terminal.interval(0.5, 0.5) == "exact"
    assert terminal.interval(0.25, 0.5) == "0.250 … 0.500"


def test_a_configuration_in_words():
    assert SPACE.words((0, 0)) == "clean"
    assert SPACE.words((3, 2)) == "zoom 3, blur 2"
    ordered = Space({"zoom": KEEP, "blur": KEEP}, order_sensitive=True)
    assert ordered.words((3, 2, 2, 1)) == "blur 2, then zoom 3"


def test_an_answer_shows_its_numbers():
    run = tomogram()
    found = run.query("zoom in [1, 3]")
    text = printed(terminal.answer, SPACE, "zoom in [1, 3]", found)
    assert f"{found.robustness:.3f}  ({found.low:.3f} … {found.high:.3f})  for zoom in [1, 3]" in text
    assert "4 tests: 0 run on all inputs, 4 on some, 0 not run" in text
    assert f"{found.drop:+.3f} against clean inputs" in text
    worst = [line for line in text.splitlines() if line.startswith("zoom 3, blur 2")]
    assert worst[0].split()[-4] == "0.250"


def test_a_summary_shows_orders_severities_and_classes():
    run = tomogram()
    text = printed(terminal.summary, run)
    assert "6 tests over zoom, blur: 0 run on all inputs, 6 on some, 0 not run; 120 inferences on 40 inputs" in text
    for order, found in run.by_order().items():
        row = next(line.split() for line in text.splitlines() if line.startswith(f"{order:>5}  "))
        assert row[1:4] == [str(found.tests), str(found.measured), f"{found.robustness:.3f}"]
    zoom = next(line.split() for line in text.splitlines() if line.startswith("zoom  "))
    assert zoom[1:] == [f"{found.robustness:.3f}" for found in run.by_severity()["zoom"].values()]
    for name, found in run.by_class().items():
        row = next(line for line in text.splitlines() if line.startswith(name))
        assert f"{found.robustness:.3f}" in row
    assert "no interval" not in text
    assert "no interval" in printed(terminal.summary, tomogram(tests=[0, 1, 2]))


def test_of_many_classes_a_summary_shows_the_worst_and_a_line_for_the_rest():
    outcomes = Outcomes(40)
    outcomes.record(0, np.arange(40), np.arange(40) >= 15)
    order = np.arange(40)
    run = Tomogram(SPACE, outcomes, order, labels=np.arange(40) // 2, classes=tuple(f"c{n}" for n in range(20)))
    lines = printed(terminal.summary, run).splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("the worst 10 of 20 classes"))
    assert [line.split()[0] for line in lines[begin + 2 : begin + 12]] == [f"c{n}" for n in range(10)]
    assert lines[begin + 12].strip() == "10 others: 1.000 … 1.000 (show --by class)"
    everything = terminal.by_class(run)
    assert (everything.row_count, everything.caption) == (20, None)


def test_a_table_too_wide_for_the_terminal_comes_in_pieces():
    narrow = Console(file=io.StringIO(), width=20, highlight=False)
    for piece in folded(narrow, terminal.by_axis(tomogram())):
        narrow.print(piece)
    lines = narrow.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 20
    assert [line.split()[1:] for line in lines if line.startswith("axis")] == [["0", "1"], ["2", "3"]]
    rates = [line.split()[1:] for line in lines if line.startswith("zoom")]
    assert [len(row) for row in rates] == [2, 1], "zoom has no severity 2"


def test_a_summary_of_predictions_ends_with_how_far_to_trust_them():
    space = Space({"zoom": KEEP, "blur": KEEP, "fade": KEEP})
    outcomes = Outcomes(40)
    for i, sigma in zip(space.ids_up_to(2).tolist(), space.configurations(2), strict=True):
        outcomes.record(i, np.arange(40), np.arange(40) < 40 - 4 * sum(sigma))
    run = Tomogram(space, outcomes, visiting_order(40, 0))
    out = Console(file=io.StringIO(), width=400, highlight=False)
    terminal.summary(out, run)
    assert tuple(out.file.getvalue().splitlines()[-2:]) == assess(run).lines()
    assert "left out" not in printed(
        terminal.summary, Tomogram(space, outcomes, visiting_order(40, 0), settings=EstimatorSettings(surrogate=None))
    )


def test_a_summary_of_measurements_alone_says_nothing_of_trust():
    assert "left out" not in printed(terminal.summary, tomogram())
    nothing = dict.fromkeys(("left_out", "held_back", "high_orders", "unknown"))
    assert terminal.trust(tomogram()) == {**nothing, "off_surface": [], "lines": []}


def test_an_empty_run_can_be_shown():
    assert "6 not run" in printed(terminal.summary, tomogram(tests=[]))


@pytest.mark.parametrize(("at_least", "status"), [(0.0, "holds"), (0.6, "undecided"), (1.0, "fails")])
def test_gates_say_how_they_stand(at_least, status):
    gates = [Gate(name="[mild]", query="zoom == 1", at_least=at_least, inputs="label in [0, 1]")]
    outcomes = Outcomes(80)
    for test in range(6):
        outcomes.record(test, np.arange(40), np.arange(40) < 40 - 6 * test)
    run = Tomogram(SPACE, outcomes, np.arange(80), labels=np.arange(80) % 2, classes=("cat", "[dog]"))
    text = printed(terminal.verdicts, judge(gates, run))
    assert text.startswith(f"{status}  [mild]: zoom == 1 for inputs label in [0, 1] >= {at_least:g} (between ")


def test_pooled_estimates_say_how_many_trials_tests_have_of_their_own():
    outcomes = Outcomes(2000)
    for test in range(SPACE.size):
        outcomes.record(
            test, np.arange(1000 if test == 0 else 20 + test), np.ones(1000 if test == 0 else 20 + test, bool)
        )
    run = Tomogram(SPACE, outcomes, visiting_order(2000, 0), settings=EstimatorSettings(surrogate="process"))
    text = printed(terminal.summary, run)
    assert "6 tests over zoom, blur: 0 run on all inputs, 6 on some, 0 not run; each with 21 to 1,000 trials" in text
    assert "trials of its own; estimates pool them; 1," in text
    assert run.estimator.clean.low > 0.997
    assert f"clean accuracy 1.000 ({run.estimator.clean.low:.3f} … 1.000), on 1,000 of 2,000 inputs" in text
    assert "measured" not in text
    rows = [line.split() for line in text.splitlines()]
    assert ["0", "1", "1,000", "1.000", f"{run.estimator.clean.low:.3f}", "…", "1.000"] in rows


def test_a_clean_accuracy_that_others_had_a_part_in_is_said_to_be_one():
    outcomes = Outcomes(2000)
    for test in range(SPACE.size):
        outcomes.record(test, np.arange(30), np.ones(30, bool))
    run = Tomogram(SPACE, outcomes, visiting_order(2000, 0), settings=EstimatorSettings(surrogate="process"))
    assert not run.estimator.clean.alone
    assert terminal.clean(run).endswith(
        "on 30 of 2,000 inputs and the trials of other tests, for these 2,000 inputs only"
    )


def test_a_reader_who_wants_no_more_does_not_end_the_process():
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        CleanConsole(file=Closed()).print("answer")


def test_a_map_has_a_block_for_each_pair_of_severities():
    add = Perturbation("add", lambda x, by, rng: x + by, range(3))
    model, rows = lambda x: (x[:, 0] < 8).astype(int), np.arange(8.0)[:, None]
    space = Space({"fade": add, "blur": add})
    run = ta.scan(model, (rows, model(rows)), space, strategy="full", surrogate="none")
    assert blocks(run) == ["fade 0 ████▓▓", "     1 ██▓▓▒▒", "     2 ▓▓▒▒▒▒", "  blur 0 1 2"]
