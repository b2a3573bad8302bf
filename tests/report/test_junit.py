"""JUnit XML, read back with an XML parser."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from testifai.report.contents import gather
from testifai.report.junit import junit


@pytest.fixture(scope="module")
def contents(run_folder):
    return gather(run_folder / "spec.db", examples=0)


def test_every_gate_is_a_case(contents):
    root = ElementTree.fromstring(junit(contents))
    cases = root.findall("./testsuite/testcase")
    assert [case.get("name").partition(":")[0] for case in cases] == ["clean & <b>bold</b>", "gate 2", "open"]
    failed = [case.find("failure") for case in cases]
    assert failed[0] is None
    assert failed[1].get("type") == "fails"
    assert failed[2].get("type") == "undecided"
    assert "required   0.99 by the lower bound" in failed[1].text
    assert "worst tests" in failed[1].text
    assert (root.get("tests"), root.get("failures")) == ("3", "2")


def test_what_xml_cannot_hold(contents):
    verdict = contents.verdicts[1]
    gate = verdict.gate.model_copy(update={"name": "a\x00\x1b\ud800]]>&"})
    root = ElementTree.fromstring(junit(replace(contents, verdicts=(replace(verdict, gate=gate),))))
    assert root.find("./testsuite/testcase").get("name").startswith("a���]]>&:")


def test_no_gates(contents):
    assert ElementTree.fromstring(junit(replace(contents, verdicts=()))).get("tests") == "0"
