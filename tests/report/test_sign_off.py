"""What somebody signs: named, hashed, reasoned, and honest about what is not recorded."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import replace

import pytest

from testifai.report import sign_off
from testifai.report.contents import gather
from testifai.report.junit import junit
from testifai.report.markdown import markdown
from testifai.report.page import render
from testifai.runs import keys


@pytest.fixture(scope="module")
def contents(run_folder):
    return gather(run_folder / "spec.db", examples=0)


def section(page):
    return re.search(r'<section id="sign-off">.*?</section>', page, re.DOTALL).group()


def with_gates(contents, **changes):
    listed = [replace(one, gate=one.gate.model_copy(update=changes)) for one in contents.verdicts]
    return replace(contents, verdicts=tuple(listed))


def test_files_are_named_with_what_sha256sum_says(contents, run_folder):
    found = {(one.part, one.name, one.kind): one.hash for one in sign_off.named(contents)}
    for part, name in (("model", "lenet5.onnx"), ("data", "digits.npz")):
        expected = hashlib.sha256((run_folder / name).read_bytes()).hexdigest()
        assert found[part, name, "SHA-256"] == expected
        assert expected in section(render(contents))
    assert found["data", "digits.npz", "fingerprint"] == contents.made_of["data"].fingerprint


def test_the_whole_spec_is_there_as_it_was_run(contents):
    stored = contents.tomogram.provenance["spec"]
    assert tomllib.loads(sign_off.spec(contents)) == stored
    assert "at_least = 0.99" in render(contents)


def test_every_format_says_why_a_gate_is_there(contents):
    evil = with_gates(contents, because="hazard <b>H-12</b>")
    assert section(render(evil)).count("hazard &lt;b&gt;H-12&lt;/b&gt;") == len(evil.verdicts)
    assert "hazard" in markdown(evil)
    assert "because    hazard" in junit(evil)
    assert [gate["because"] for gate in evil.as_dict()["gates"]] == ["hazard <b>H-12</b>"] * len(evil.verdicts)
    assert "no reason was given" in section(render(contents))


def test_who_and_when_are_only_there_if_asked_for(contents):
    assert "Not recorded." in section(render(contents))
    entry = {"by": "Ada <i>", "started": "2026-01-01 10:00:00 UTC", "ended": "2026-01-01 10:01:00 UTC", "inferences": 7}
    known = replace(contents.tomogram, provenance={**contents.tomogram.provenance, "ran": [entry]})
    text = section(render(replace(contents, tomogram=known)))
    assert "Ada &lt;i&gt;" in text
    assert "2026-01-01 10:01:00 UTC" in text


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        (["holds", "holds"], "Passed: every gate holds (2 of 2)."),
        (["holds", "undecided"], "Undecided: 1 of 2 gates could not be decided, and none failed."),
        (["holds", "undecided", "fails"], "Failed: 1 of 3 gates failed."),
    ],
)
def test_the_worst_verdict_is_that_of_all(contents, statuses, words):
    verdicts = [replace(contents.verdicts[0], status=status) for status in statuses]
    assert sign_off.outcome(verdicts)[1] == words
    assert words in section(render(replace(contents, verdicts=tuple(verdicts))))


def test_a_run_without_hashes_of_files_says_what_is_not_recorded(contents):
    """As of a model that was passed as a function."""
    known = {key: value for key, value in contents.tomogram.provenance.items() if key != keys.HASHES}
    found = replace(contents, tomogram=replace(contents.tomogram, provenance=known))
    kinds = {one.part: one.kind for one in sign_off.named(found)}
    assert kinds == {"model": "fingerprint of the model", "data": "fingerprint"}
    assert "is not recorded" in section(render(found))


def test_the_foot_of_a_page_names_the_run_and_nothing_gets_out_of_it(contents):
    style = re.search(r"@bottom-left \{ content: (.*?); \}", render(replace(contents, run='a"}</style><b>.db'))).group(
        1
    )
    assert style == r'"a\22 \7d \3c \2f style\3e \3c b\3e .db"'
