"""Section `locality`: the paper's worked example, what the network answers, and the error summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evaluation.locality_answers import SUBJECTS, halves
from evaluation.locality_words import one_of, rates, short
from evaluation.page import Page
from evaluation.setting import Setting
from testifai.locality import Local, Network, Rates, Trend, explain
from testifai.locality.summary import gain_text, span

SEED = 0
DRAWS = 200
MOST = 3  # states of an answer
TRENDS = 5
NAMED = 6  # classes of a trend
PUBLISHED = {("5", "noise"): 0.85, ("5", "rotation"): 0.78, ("0", "noise"): 0.90, ("0", "rotation"): 0.88}
INPUTS = 200  # of each class in the example: as many as the paper samples
DIGITS, SIGNS = SUBJECTS
ASKED: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("mnist", {"class": "5", "property": "noise"}, ("correct", "predicted")),
    ("mnist", {"predicted": "8"}, ("class", "property", "severity")),
    ("mnist", {"correct": False}, ("property", "severity", "class")),
    ("gtsrb", {"correct": False}, ("property", "severity", "class")),
)
SYSTEM_ASKED: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
    ({"class_1": "5", "class_2": "0", "property": "noise"}, ("composed", "output")),
    ({"class_1": "5", "class_2": "0", "composed": False}, ("property", "severity", "correct_1", "correct_2")),
)


def write(page: Page, setting: Setting) -> None:
    """From the example, which needs nothing, to what the models' own networks say."""
    with page.part("The paper's worked example: 5 + 0"):
        _example(page)
    with page.part("The same question to LeNet-5"):
        _own_example(page, halves(DIGITS.answers(setting), SEED)[0])
    with page.part("What the network answers"):
        _answers(page, setting)
    with page.part("Error summary"):
        _trends(page, setting)


def example() -> Local:
    """The example's rates from 200 inputs each: noisy fives are read as 6, whatever else fails as anything."""
    classes, properties = [str(one) for one in range(10)], ("noise", "rotation")
    counts = np.zeros((2, 1, 10, 10))
    for which, name in enumerate(properties):
        counts[which, 0] = INPUTS * np.eye(10)
        for digit in ("5", "0"):
            failing = INPUTS * (1 - PUBLISHED[digit, name])
            row = counts[which, 0, int(digit)]
            if (digit, name) == ("5", "noise"):
                row[6] = failing
            else:
                row[:] = failing / 9
            row[int(digit)] = INPUTS - failing
    return Local.from_counts(classes, properties, [[1], [1]], counts)


def _example(page: Page) -> None:
    network = Network.of(example(), prior=0, arity=2)
    known = {"class_1": "5", "class_2": "0"}
    noisy = {**known, "property": "noise"}
    blame = network.blame(noisy)
    first = network.diagnose({**known, "output": 6})[0]
    read = network.posterior("predicted_1", given={**known, "output": 6}).ranked(1)[0]
    page.text(
        "LR of 5 is 85 % under noise and 78 % under rotation, of 0 90 % and 88 %; a noisy 5 that fails is read as "
        "6; what any other failure is read as the paper does not say, and is taken to be anything. The "
        f"network made of that says: 5 + 0 under noise is right with {network.predict(noisy):.3f}; if it is wrong, "
        f"5 alone was wrong with {blame[(1,)]:.3f}, 0 alone with {blame[(2,)]:.3f}, both with {blame[(1, 2)]:.3f}. "
        f"If the sum is 6 and it is not known what the digits were under, it was part {first.part}, class "
        f"{first.true_class}, under {first.property} with {first.probability:.3f}, read as {read[0]['predicted_1']} "
        f"with {read[1]:.3f}."
    )
    page.claim(
        "a sum of 6 for 5 + 0 leads back to 5 under noise, read as 6",
        "class A, noise, 6",
        f"class {first.true_class}, {first.property} with {first.probability:.3f}, {read[0]['predicted_1']} with "
        f"{read[1]:.3f}",
        (first.true_class, first.property, read[0]["predicted_1"]) == ("5", "noise", "6"),
    )


def _own_example(page: Page, table: Local) -> None:
    cells = table.by_class_and_property()
    published = {"noise": "noise", "rotation_left": "rotation", "rotation_right": "rotation"}
    rows = []
    for digit in ("5", "0"):
        for name, theirs in published.items():
            place, which = table.classes.index(digit), table.properties.index(name)
            wrong = table.confusion[which, :, place].sum(axis=0) * (np.arange(len(table.outputs)) != place)
            order = np.argsort(-wrong, kind="stable")[:MOST]
            read = ", ".join(f"{table.outputs[at]} ({wrong[at] / wrong.sum():.0%})" for at in order if wrong[at])
            rows.append(
                [digit, short(name), f"{PUBLISHED[digit, theirs]:.2f}", rates(one_of(cells, (place, which))), read]
            )
    page.table(["class", "property", "LR in the example", "LR here", "wrong answers"], rows, f"seed {SEED}")
    five = table.confusion[table.properties.index("noise"), :, table.classes.index("5")].sum(axis=0).astype(float)
    five[table.classes.index("5")] = 0
    most = table.outputs[int(five.argmax())]
    page.claim(
        "a noisy 5 is misread as a 6",
        "6 (an example, not measured)",
        f"{most} in {five.max() / five.sum():.0%} of the failures, 6 in {five[6] / five.sum():.0%}",
        most == "6",
    )


def _answers(page: Page, setting: Setting) -> None:
    page.text(
        "As `testifai errors RUN.db --given class=5,property=noise` prints it. Intervals by resampling the tables, "
        f"inputs as wholes, {DRAWS} times; all classes, properties and severities equally probable beforehand."
    )
    draws = setting.times(DRAWS, least=10)
    networks = {one.name: Network.of(halves(one.answers(setting), SEED)[0]) for one in SUBJECTS}
    titles = {one.name: one.title for one in SUBJECTS}
    rows = []
    for name, given, asked in ASKED:
        rows += _rows(titles[name], networks[name], given, asked, draws)
    adder = Network.of(halves(DIGITS.answers(setting), SEED)[0], arity=2)
    for given, asked in SYSTEM_ASKED:
        rows += _rows("adder of LeNet-5", adder, given, asked, draws)
    page.table(["of", "given", "asked for", "answer"], rows, f"seed {SEED}, {draws} draws")


def _rows(
    title: str, network: Network, given: Mapping[str, Any], asked: tuple[str, ...], draws: int
) -> list[list[str]]:
    said = ", ".join(f"{name} = {state}" for name, state in given.items())
    rows = []
    for belief in network.beliefs(*asked, given=given, draws=draws, seed=SEED):
        answer = "; ".join(
            f"{short(str(state))} {rates(Rates(rate, low, high))}" for state, rate, low, high in belief.ranked(MOST)
        )
        rows.append([title, said, belief.name, answer])
    return rows


def _trends(page: Page, setting: Setting) -> None:
    for one in SUBJECTS:
        table = halves(one.answers(setting), SEED)[0]
        system = 2 if one is DIGITS else 1
        found = explain(table, None, system)
        what = "of the adder" if system == 2 else "of the model alone"
        page.text(
            f"{one.title}, {what}: the first {min(TRENDS, len(found.trends))} of {len(found.trends)} trends that "
            f"are more than chance, all {found.tests:,} tests together at {found.alpha:.0%}; gains suppose all of "
            "it fixed."
        )
        header = ["class", "under", "severity", "read as", "failures", "tries", "gain"]
        page.table(header, [_trend(trend) for trend in found.trends[:TRENDS]], f"seed {SEED}")


def _trend(one: Trend) -> list[str]:
    read = ", ".join(one.answers[:MOST]) + (", …" if len(one.answers) > MOST else "")
    classes = ", ".join(one.classes[:NAMED]) + (f", … ({len(one.classes)} in all)" if len(one.classes) > NAMED else "")
    return [
        classes, short(one.property), span(one.severities), read, f"{one.failures:,}", f"{one.trials:,}",
        gain_text(one.gain),
    ]  # fmt: skip
