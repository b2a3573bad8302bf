"""Every output of a run that is not finished says so first, and none of its gates passes the run."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import testifai as ta
from testifai.app.state import RunStatus
from testifai.gates.verdicts import judge, stored_gates
from testifai.report.contents import gather
from testifai.report.junit import junit
from testifai.report.markdown import markdown
from testifai.report.page import render
from testifai.report.sign_off import outcome
from testifai.runs import keys
from testifai.session.assembly import session_of
from testifai.session.stored_runs import open_run

SHIFT = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.1, 0.2, 0.3])
SPACE = ta.Space({"up": SHIFT, "on": SHIFT})
GATES = [{"query": "order >= 0", "at_least": 0.1}, {"query": "order >= 0", "at_least": 0.1, "basis": "estimate"}]


class KilledError(Exception):
    pass


def session():
    rows = np.linspace(0, 1, 200)[:, None]
    model = lambda x: (x[:, 0] > 0.5).astype(int)  # noqa: E731
    return session_of(model, (rows, model(rows)), SPACE, strategy="full", batch_size=50)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """A run that was killed, and one that ended."""
    folder = tmp_path_factory.mktemp("runs")

    def stop(step):
        if step.done >= 2_000:
            raise KilledError

    with pytest.raises(KilledError):
        session().run(folder / "killed.db", stop, {keys.GATES: GATES})
    session().run(folder / "ended.db", extra={keys.GATES: GATES})
    return folder / "killed.db", folder / "ended.db"


@pytest.fixture(scope="module")
def line(paths):
    return f"UNFINISHED: {open_run(paths[0]).outcomes.total():,} of 3,200 inferences"


def test_commands_say_it_first(paths, line, call):
    killed, ended = map(str, paths)
    for arguments in (["show", killed], ["show", killed, "--by", "order"], ["query", killed, "up > 1"],
                      ["compare", killed, ended]):  # fmt: skip
        code, out, _ = call(*arguments)
        assert (code, out.splitlines()[0]) == (0, line)
    assert "UNFINISHED" not in call("show", ended)[1]


def test_json_has_it(paths, call):
    done = open_run(paths[0]).outcomes.total()
    for path, state in zip(paths, [(False, 3_200, done), (True, 3_200, 3_200)], strict=True):
        for arguments in (["show", str(path)], ["query", str(path), "up > 1"], ["show", str(path), "--by", "order"]):
            found = json.loads(call(*arguments, "--json")[1])
            assert (found["finished"], found["planned"], found["done"]) == state
        assert json.loads(call("compare", str(path), str(paths[1]), "--json")[1])["runs"]["a"]["finished"] == state[0]


def test_a_report_never_passes(paths, line, call, tmp_path):
    contents = gather(paths[0], examples=0)
    status, sentence = outcome(contents.verdicts, contents.unfinished)
    assert (status, sentence.startswith(line), "Passed" in sentence) == ("undecided", True, False)
    assert not contents.holds
    assert markdown(contents).startswith(f"**{line}**")
    page = render(contents)
    assert page.index(line) < page.index("On clean inputs")
    assert "I have read this report" not in page
    first = next(ElementTree.fromstring(junit(contents)).iter("testcase"))
    assert (first.get("name"), first.find("failure").get("message")) == ("the run is finished", line)
    code, out, _ = call("report", str(paths[0]), "-o", str(tmp_path / "killed.html"), "--examples", "0")
    assert (code, out.splitlines()[0]) == (1, line)


def test_a_report_of_a_finished_run_passes(paths):
    contents = gather(paths[1], examples=0)
    assert contents.holds
    assert outcome(contents.verdicts, contents.unfinished)[1].startswith("Passed")
    assert "I have read this report" in render(contents)


def test_a_gate_on_the_estimate_needs_the_bound_until_the_run_is_finished(paths):
    run = open_run(paths[0])
    (_, found) = judge(stored_gates(run), run)
    assert not found.reason.startswith("estimate")
    run = open_run(paths[1])
    assert judge(stored_gates(run), run)[1].reason.startswith("estimate")


def test_the_explorer_says_it(paths, line):
    assert RunStatus.of(paths[0], open_run(paths[0])).words.startswith(line)
    assert "UNFINISHED" not in RunStatus.of(paths[1], open_run(paths[1])).words


def test_a_resumed_run_is_finished(paths, tmp_path):
    path = tmp_path / "again.db"
    path.write_bytes(paths[0].read_bytes())
    session().run(path)
    assert outcome([], None)[0] == "undecided"
    assert gather(path, examples=0).unfinished is None
