"""Nobody passes a requirement that nobody set."""

import numpy as np
import pytest

import testifai as ta
from testifai.gates.verdicts import judge
from testifai.report.contents import gather
from testifai.report.markdown import markdown
from testifai.report.sign_off import outcome
from testifai.runs import keys
from testifai.session.assembly import session_of
from testifai.spec.parsing import Gate, parse
from testifai.wizard.inspection import Inspection, spec_text

SHIFT = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.01, 0.02])
CLEAN, SHIFTED = {"query": "order == 0", "at_least": 0.5}, {"query": "up > 0", "at_least": 0.5}


def run(path=None, gates=(), inputs=60, labels=None):
    rows = np.linspace(0, 1, inputs)[:, None]
    model = lambda x: (x[:, 0] > 0.5).astype(int)  # noqa: E731
    made = session_of(
        model, (rows, model(rows) if labels is None else labels), ta.Space({"up": SHIFT}), strategy="full"
    )
    return made.run(path, extra=None if path is None else {keys.GATES: list(gates)})


@pytest.mark.parametrize(
    ("gates", "required"),
    [([], False), ([CLEAN], False), ([CLEAN, {**SHIFTED, "at_least": 0}], False), ([CLEAN, SHIFTED], True)],
)
def test_a_report_says_if_no_robustness_is_required(tmp_path, gates, required, call):
    run(tmp_path / "run.db", gates)
    contents, words = gather(tmp_path / "run.db", examples=0), "no robustness requirement was set"
    sentence = outcome(contents.verdicts, requires_robustness=contents.requires_robustness)[1]
    printed = call("report", str(tmp_path / "run.db"), "--examples", "0")[1]
    assert [words in text for text in (markdown(contents), sentence, printed)] == [not required] * 3
    assert contents.as_dict()["requires_robustness"] is required


def test_init_sets_no_gate_and_says_how_to_choose_them():
    found = Inspection(
        model={"python": "m:f"}, data={"npz": "x.npz"}, inputs=60, kind="images", shape=(8, 8), classes=2,
        outputs="scores", oracle="label", accuracy=0.9, tried=60, tolerance=None,
    )  # fmt: skip
    text = spec_text(found)
    assert "[[gate]]" not in [line.strip() for line in text.splitlines()]
    assert "holds by construction" in text
    active = text.replace("# [[gate]]", "[[gate]]").splitlines()
    fields = ("# name =", "# query =", "# at_least =", "# because =")
    lines = [line.removeprefix("# ") if line.startswith(fields) else line for line in active]
    import tomllib

    assert len(parse(tomllib.loads("\n".join(lines))).gate) == 2


def test_a_few_inputs_decide_no_gate():
    for inputs in (1, 29):
        (verdict,) = judge([Gate(**SHIFTED)], run(inputs=inputs, labels=np.arange(inputs) % 2))
        assert (verdict.status, verdict.reason) == ("undecided", f"too few inputs: {inputs}, and a gate needs 30")


def test_a_single_class_decides_no_gate():
    found = run(labels=np.zeros(60, int))
    for basis in ("bound", "estimate"):
        (verdict,) = judge([Gate(query="order >= 0", at_least=0.1, basis=basis)], found)
        assert verdict.status == "undecided"
        assert verdict.reason.startswith("all inputs have the same label, 0")
