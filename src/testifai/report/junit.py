"""A run's gates as JUnit XML, which continuous integration shows as tests."""

from __future__ import annotations

from xml.etree import ElementTree

from testifai.gates.verdicts import Verdict
from testifai.present.gate_page import asked_words
from testifai.present.terminal import bounded, rate
from testifai.report.contents import Contents
from testifai.support.formatting import printable


def junit(contents: Contents) -> str:
    """Every gate as a test case; one that fails or is undecided is a failure, with its reason and the worst tests.

    A run that is not finished is a failure of its own, which comes first.

    Valid for both schemas in use, of Jenkins' xUnit plug-in (junit-10.xsd) and of Ant.
    """
    verdicts, unfinished = contents.verdicts, contents.unfinished
    failed = str(sum(not verdict.holds for verdict in verdicts) + (unfinished is not None))
    counts = {"tests": str(len(verdicts) + (unfinished is not None)), "failures": failed, "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "testifai", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": printable(contents.run), **counts})
    properties = ElementTree.SubElement(suite, "properties")
    tomogram = contents.tomogram
    for name, value in {
        "clean_accuracy": rate(tomogram.base),
        "clean_inputs": str(tomogram.estimator.clean.trials),
        "robustness": rate(contents.everything.robustness),
        "tests": str(tomogram.space.size),
        "inferences": str(tomogram.inferences),
        "population": tomogram.settings.population,
        **{part: str(made) for part, made in contents.made_of.items()},
    }.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": printable(value)})
    if unfinished is not None:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": printable(contents.run), "name": "the run is finished"}
        )
        ElementTree.SubElement(case, "failure", {"type": "unfinished", "message": unfinished})
    for number, verdict in enumerate(verdicts, start=1):
        _case(suite, contents, number, verdict)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n")
    )


def _case(suite: ElementTree.Element, contents: Contents, number: int, verdict: Verdict) -> None:
    gate, answer = verdict.gate, verdict.answer
    asked = asked_words(gate)
    name = f"{gate.name or f'gate {number}'}: {asked} >= {gate.at_least:g}"
    case = ElementTree.SubElement(suite, "testcase", {"classname": printable(contents.run), "name": printable(name)})
    if verdict.holds:
        return
    message = f"{verdict.status}: {verdict.reason}"
    failure = ElementTree.SubElement(case, "failure", {"type": verdict.status, "message": printable(message)})
    lines = [
        f"query      {asked}",
        f"required   {gate.at_least:g} by the {'lower bound' if gate.basis == 'bound' else 'estimate'}",
        *([f"because    {gate.because}"] if gate.because else []),
        f"estimate   {bounded(answer.robustness, answer.low, answer.high)}",
        "worst tests",
        *(f"  {contents.tomogram.space.words(sigma)}: {bounded(*estimate)}" for sigma, *estimate in answer.worst),
    ]
    failure.text = "\n".join(map(printable, lines))
