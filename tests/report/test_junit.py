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
    assert root.find("./testsuite/testcase").get("name").startswith("a\\x00\\x1b\\ud800]]>&:")


def test_no_gates(contents):
    assert ElementTree.fromstring(junit(replace(contents, verdicts=()))).get("tests") == "0"


# What may stand where: element -> (attributes that must be there, further ones, elements inside); what is allowed by
# both junit-10.xsd of Jenkins' xUnit plug-in and the schema of Ant's reports, as far as times are not asked for.
ALLOWED = {
    "testsuites": (set(), {"name", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors"}, {"skipped"}, {"properties", "testcase"}),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": ({"name", "classname"}, set(), {"failure"}),
    "failure": ({"type"}, {"message"}, set()),
}


def test_it_keeps_to_the_schema(contents):
    root = ElementTree.fromstring(junit(contents))
    assert root.tag == "testsuites"
    for element in root.iter():
        needed, further, inside = ALLOWED[element.tag]
        assert needed <= set(element.keys()) <= needed | further
        assert {child.tag for child in element} <= inside
        assert element.tag == "failure" or not (element.text or "").strip()
    suite = root.find("testsuite")
    assert [child.tag for child in suite] == ["properties", *["testcase"] * 3]
    assert (int(suite.get("tests")), int(suite.get("failures"))) == (3, len(root.findall(".//failure")))
