"""Names and texts of others are shown, never obeyed: on a terminal, in a spreadsheet, in Markdown, by a library."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import shutil
import sys
import types

import numpy as np
import pytest
from plotly.offline import get_plotlyjs
from rich.console import Console

from testifai import cli
from testifai.commands.common import print_json, say
from testifai.errors import InputError
from testifai.gates.verdicts import judge
from testifai.models.texts import encoder, network
from testifai.operational import label_file as labelling
from testifai.perturb import Perturbation
from testifai.present import terminal
from testifai.present.export import write_table
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store
from testifai.session.stored_runs import open_run
from testifai.space import Space
from testifai.spec.parsing import Gate
from testifai.support.formatting import code_in_markdown, harmless, in_html, in_markdown, printable, printable_json
from testifai.tomogram import Tomogram

CLEAR = "\x1b[2J\x1b]0;title\x07"
HIDDEN = [CLEAR, "\x9b31m", "a\rb", "\u202egpj.exe", "\u2066x\u2069", "\x00", "\x7f", "\u2028", "\ud800", "\U000e0041"]
HARMFUL = ("\x1b", "\x9b", "\x07", "\r", "\u202e", "\u2066", "\x00", "\x7f", "\u2028", "\ud800", "\U000e0041")


def is_clean(text: str) -> bool:
    return not any(sign in text for sign in HARMFUL)


# -- terminal ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HIDDEN)
def test_what_is_hidden_is_made_visible(text):
    assert is_clean(printable(text))
    assert is_clean(printable(text, lines=True))
    assert printable(text).isprintable()
    assert json.loads(printable_json(json.dumps([text], ensure_ascii=False))) == [text]


def test_what_people_write_is_left_alone():
    for text in ("naïve Ω 猫", "👩\u200d🔬", "עברית", "a - b = c", "tab\tand\nline"):
        assert printable(text, lines=True) == text


@pytest.fixture
def hostile():
    """A tomogram whose classes and level names are commands to a terminal and markup."""
    fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2))
    space = Space({"fade": (fade, {"[/bold] [red]": 1, "strong": 2})})
    outcomes = Outcomes(40)
    for test in range(3):
        outcomes.record(test, np.arange(40), np.arange(40) < 40 - 10 * test)
    names = (f"cat{CLEAR}", "[/nothing]\x9b2J :cat: \\")
    return Tomogram(space, outcomes, np.arange(40), labels=np.arange(40) % 2, classes=names)


def _shown(draw, monkeypatch) -> str:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    draw(terminal.console())
    return stream.getvalue()


def test_tables_and_gates_show_names_as_they_are(hostile, monkeypatch):
    text = _shown(lambda out: terminal.summary(out, hostile), monkeypatch)
    assert is_clean(text)
    assert "cat\\x1b[2J" in text
    assert "[/nothing]\\x9b2J :cat:" in text
    gate = Gate(query="fade == 1", at_least=0.1, name=f"[/x]{CLEAR}\nholds  everything")
    text = _shown(lambda out: terminal.verdicts(out, judge([gate], hostile)), monkeypatch)
    assert is_clean(text)
    assert not any(line.startswith("holds  everything") for line in text.splitlines())


def test_the_console_still_has_its_own_colours(monkeypatch):
    out = terminal.CleanConsole(force_terminal=True, file=io.StringIO(), color_system="standard")
    out.print(f"[red]{terminal._escape('x' + CLEAR)}[/red]")
    text = out.file.getvalue()
    assert "\x1b[31m" in text
    assert "\x1b[2J" not in text
    assert isinstance(out, Console)


def test_lines_json_errors_and_the_log(capsys, monkeypatch):
    say(f"Wrote {CLEAR}\nand more")
    say(f"note: {CLEAR}", err=True)
    print_json({"name": "".join(HIDDEN)})
    cli._fail(f"model: it said {''.join(HIDDEN)}", 2)
    printed = capsys.readouterr()
    assert is_clean(printed.out + printed.err)
    assert "\nand more\n" in printed.out
    record = logging.LogRecord("x", logging.WARNING, "x", 1, "said %s", (CLEAR,), None)
    assert is_clean(cli._Printable("%(message)s").format(record))


def test_commands_on_a_run_with_such_names(whole_run, tmp_path, call):
    shutil.copy(whole_run / "spec.db", tmp_path / "run.db")
    with Store.create_or_open(tmp_path / "run.db") as store:
        store.put(classes=[f"{CLEAR}{number}" for number in range(10)])
        hidden = "".join(HIDDEN).replace("\ud800", "")  # which no run file can hold
        gate = {"query": "order == 0", "at_least": 0.1, "name": f"gate{CLEAR}", "because": f"hazard {hidden}"}
        store.put(gates=[gate, {**gate, "at_least": 1.0, "query": "order > 0"}])
        store.put(quality={**store.get("quality"), "name": f"[/x]{CLEAR}"})
    for arguments in (
        ["show", tmp_path / "run.db"],
        ["show", tmp_path / "run.db", "--json"],
        [
            "report",
            tmp_path / "run.db",
            "-o",
            tmp_path / "r.html",
            "--md",
            tmp_path / "r.md",
            "--junit",
            tmp_path / "r.xml",
        ],
        ["show", tmp_path / "run.db", "--validity"],
        ["errors", tmp_path / "run.db"],
        ["query", tmp_path / "run.db", f"nothing{CLEAR} > 1"],
        ["show", tmp_path / f"no{CLEAR}.db"],
    ):
        _, out, err = call(*arguments)
        assert is_clean(out + err), arguments
    for name in ("r.md", "r.xml", "r.html"):  # of the page a .pdf is printed
        text = (tmp_path / name).read_text().replace(get_plotlyjs(), "")
        assert is_clean(text), name
        assert "hazard \\x1b[2J" in text.replace("\\\\", "\\").replace("\\[", "["), name
    assert is_clean(open_run(tmp_path / "run.db")._repr_html_())
    assert in_html(f"<b>{CLEAR}") == "&lt;b&gt;\\x1b[2J\\x1b]0;title\\x07"


# -- spreadsheets -----------------------------------------------------------------------------------------------------

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    " =1",
    "\n=1",
    "\t=1",
    "\r\n =1",
    "'=1",
    "\ufeff=1",
    "＝1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(text):
    assert str(harmless(text)).startswith("'")
    content = labelling.table(["id", "where", "label"], [[1, text, ""]]).decode("utf-8-sig")
    cell = next(row for row in csv.reader(io.StringIO(content, newline="")) if row[0] == "1")[1]
    assert cell.startswith("'")


def test_numbers_stay_numbers():
    assert [harmless(cell) for cell in (-1.5, "-1.5", "+3", "1e-5", "", "a = b", None)] == [
        -1.5, "-1.5", "+3", "1e-5", "", "a = b", None,
    ]  # fmt: skip
    assert harmless("-1-1") == "'-1-1"


def test_exported_tables_go_the_same_way(hostile, tmp_path, monkeypatch):
    monkeypatch.setattr("testifai.present.export.table", lambda _: (["=axis", "n"], [["\n=1", -1], [None, 2.5]]))
    write_table(hostile, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [["'=axis", "n"], ["'\n=1", "-1"], ["", "2.5"]]


# -- Markdown ---------------------------------------------------------------------------------------------------------

PAGE = "<img src=x onerror=alert(1)> <script>x</script> [a](javascript:x) | `c` @team \x1b[2J"


def test_markdown_has_no_html_of_others():
    for text in (in_markdown(PAGE), code_in_markdown(PAGE)):
        assert is_clean(text)
        assert "\n" not in text
    assert "<" not in in_markdown(PAGE)
    assert code_in_markdown(PAGE).count("`") == 2


def test_a_sheet_of_texts_in_markdown_shows_them(tmp_path):
    from types import SimpleNamespace

    from testifai.present.contact_sheets import write_examples
    from testifai.quality.predict import Scores

    space = Space({"fade": Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1))})
    scores = Scores(space, "<b>name</b>", True, np.array([0, 1]), np.array([1.0, 0.5]), np.zeros(2))
    texts = [PAGE, "plain text"]
    subject = SimpleNamespace(order=np.arange(2), batch=lambda places: texts, composite=lambda sigma, places: texts)
    write_examples(subject, scores, [0.5], tmp_path / "sheet.md")
    text = (tmp_path / "sheet.md").read_text()
    assert "<" not in text
    assert is_clean(text)
    assert "&lt;script&gt;" in text
    write_examples(subject, scores, [0.5], tmp_path / "sheet.txt")
    text = (tmp_path / "sheet.txt").read_text()
    assert "<script>" in text
    assert is_clean(text)


# -- folders of Hugging Face ------------------------------------------------------------------------------------------


@pytest.fixture
def library(monkeypatch):
    """A stand-in for transformers that notes how it was called, and whether it could have made a request then."""
    calls = []
    constants = types.SimpleNamespace(HF_HUB_OFFLINE=False)

    def from_pretrained(folder, **options):
        calls.append((options, os.environ.get("HF_HUB_OFFLINE"), constants.HF_HUB_OFFLINE))
        tokenizer = types.SimpleNamespace(backend_tokenizer=None, model_input_names=[], model_max_length=8)
        return (object(), {"missing_keys": []}) if "output_loading_info" in options else tokenizer

    log = types.SimpleNamespace(
        get_verbosity=lambda: 0, is_progress_bar_enabled=lambda: False, set_verbosity=lambda level: None,
        disable_progress_bar=lambda: None,
    )  # fmt: skip
    part = types.SimpleNamespace(from_pretrained=from_pretrained)
    made = types.SimpleNamespace(AutoModel=part, AutoTokenizer=part, utils=types.SimpleNamespace(logging=log))
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", constants)
    monkeypatch.setattr(network.optional_imports, "load", lambda name, extra: made)
    monkeypatch.setattr(network, "Tokenizer", lambda backend, max_length: None)
    for name in network.OFFLINE:
        monkeypatch.delenv(name, raising=False)
    return types.SimpleNamespace(calls=calls, constants=constants)


def test_a_folder_is_read_offline_and_without_its_code(library, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert", "auto_map": {"AutoModel": "evil--code.Model"}}')
    network.open_network(tmp_path, "AutoModel", "")
    network._tokenizer(tmp_path, 8)
    assert len(library.calls) == 2
    for options, offline, constant in library.calls:
        assert options["local_files_only"] is True
        assert options["trust_remote_code"] is False
        assert (offline, constant) == ("1", True)
    # What the user does with the library is the user's business.
    assert library.constants.HF_HUB_OFFLINE is False
    assert not any(name in os.environ for name in network.OFFLINE)


@pytest.mark.parametrize("theirs", ["0", "1"])
def test_the_users_own_setting_comes_back(library, tmp_path, monkeypatch, theirs):
    monkeypatch.setenv("HF_HUB_OFFLINE", theirs)
    with network.offline():
        assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert os.environ["HF_HUB_OFFLINE"] == theirs


@pytest.mark.parametrize("config", [
    {"_attn_implementation": "kernels-community/flash-attn"},
    {"attn_implementation": "someone/kernel:forward"},
    {"text_config": {"_attn_implementation_internal": "someone/kernel"}},
    {"parts": [{"attn_implementation": {"text": "someone/kernel"}}]},
])  # fmt: skip
def test_attention_from_elsewhere_is_refused(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", **config}))
    with pytest.raises(InputError, match="asks for the attention"):
        network.read_config(tmp_path)


@pytest.mark.parametrize("name", ["../other/model.safetensors", "/tmp/model.safetensors", "C:\\m", 3])
def test_weights_outside_the_folder_are_refused(tmp_path, name):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "b.safetensors", "c": name}})
    )
    with pytest.raises(InputError, match=r"index.json: expected the name of a file in the model's folder, got"):
        network.read_config(tmp_path)
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "a.Transformer", "path": str(name) + "/.."}]))
    with pytest.raises(InputError, match=r"modules.json: expected the name of a file in the model's folder, got"):
        encoder._modules(tmp_path)


def test_usual_folders_are_read(tmp_path):
    config = {"model_type": "bert", "_attn_implementation": "sdpa", "text_config": {"attn_implementation": None}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert network.read_config(tmp_path) == config
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/base"}')
    with pytest.raises(InputError, match="is an adapter"):
        network.read_config(tmp_path)
