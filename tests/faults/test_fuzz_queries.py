"""Hostile queries: an answer that an independent reading agrees with, or one line; nothing is ever executed."""

from __future__ import annotations

import itertools
import operator
import random
from typing import Any

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.tomogram import Tomogram

AXES = {"zoom": (0, 1, 2), "blur": (0, 1, 3, 5), "fog": (0, 4)}
LEVELS = {"blur": {"off": 0, "low": 1, "mid": 3, "very high": 5}}
TESTS = [dict(zip(AXES, sigma, strict=True)) for sigma in itertools.product(*AXES.values())]
INPUTS = 16
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
SPELLINGS = {"<=": "≤", ">=": "≥", "==": "=", "!=": "≠"}
HOSTILE = [
    *("__import__('os').system('touch /x')", "().__class__.__bases__[0]", "zoom.__class__", "eval(1)", "lambda: 1"),
    *("@dog", "`id`", "$(id)", "${x}", "%s%n", "; DROP TABLE meta; --", "' OR 1=1", "\x00", "\x1b[2J", "\n", "\r\n"),
    *("(" * 500, ")" * 500, "not " * 200, "[" * 300, "zoom > " * 50, "1e999", "9" * 400, "-" * 300, "0x10", "1_000"),
    *("∞", "NaN", "inf", "١٢", "zoοm", "𝐳oom", "\u202e", "\ufeff", "é" * 300, "\ud800", "True", "None", "if 1 else 2"),
    *(
        "{zoom}",
        "{0.__class__}",
        "zoom := 3",
        "zoom ** 9",
        "zoom % 2",
        "zoom if",
        "*",
        "/",
        "\\",
        "#",
        "//",
        "?",
        "~" * 150,
    ),
]


@pytest.fixture(scope="module")
def tomogram() -> Tomogram:
    """A space small enough to be written down: every test measured, each on so many inputs as its number says."""
    same = Perturbation("same", lambda batch, by, rng: batch, tuple(range(6)))
    space = Space({name: (same, LEVELS.get(name, levels)) for name, levels in AXES.items()})
    outcomes = Outcomes(INPUTS)
    for sigma in space.configurations(None):
        outcomes.record(space.id(sigma), np.arange(INPUTS), np.arange(INPUTS) < passes(sigma))
    return Tomogram(space, outcomes, np.arange(INPUTS), labels=np.arange(INPUTS) % 3)


def passes(sigma) -> int:
    return max(0, INPUTS - sum(sigma))


def columns(test: dict[str, int]) -> dict[str, int]:
    return {**test, "order": sum(map(bool, test.values())), "severity": sum(test.values())}


def grow(dice: random.Random, depth: int) -> tuple[str, Any]:
    """A condition as text, and as a function of a test, written independently of testifai's reader."""
    kind = dice.random()
    if depth and kind < 0.45:
        word, combine = dice.choice([("and", all), ("or", any)])
        parts = [grow(dice, depth - 1) for _ in range(dice.randint(2, 3))]
        sign = dice.choice({"and": ["and", "&", "&&", "∧", "AND"], "or": ["or", "|", "||", "∨", "Or"]}[word])
        text = f" {sign} ".join(f"({part})" for part, _ in parts)
        return text, lambda test: combine(holds(test) for _, holds in parts)
    if depth and kind < 0.55:
        text, holds = grow(dice, depth - 1)
        return f"{dice.choice(['not ', '~', '!', '¬'])}({text})", lambda test: not holds(test)
    name = dice.choice([*AXES, "order", "severity"])
    if kind < 0.7:
        chosen = [dice.randint(0, 6) for _ in range(dice.randint(1, 4))]
        turned = dice.random() < 0.4
        text = f"{name} {'not in' if turned else 'in'} {{{', '.join(map(str, chosen))}}}"
        return text, lambda test: (test[name] in chosen) != turned
    if name == "blur" and kind < 0.8:
        level, value = dice.choice(list(LEVELS["blur"].items()))
        sign = dice.choice(list(SIGNS))
        return f'blur {sign} "{level}"', lambda test: SIGNS[sign](test["blur"], value)
    if kind < 0.9:
        low, high = dice.randint(-1, 4), dice.choice([dice.randint(0, 8), 2.5, 1e3])
        return f"{low} < {name} <= {high}", lambda test: low < test[name] <= high
    sign, value = dice.choice(list(SIGNS)), dice.choice([dice.randint(-2, 12), 0.5])
    written = SPELLINGS.get(sign, sign) if dice.random() < 0.3 else sign
    if dice.random() < 0.5:
        return f"{name}{written}{value}", lambda test: SIGNS[sign](test[name], value)
    return f"{value} {written} {name}", lambda test: SIGNS[sign](value, test[name])


def spoil(text: str, dice: random.Random) -> str:
    """A query with something hostile in it, something missing, or something twice."""
    for _ in range(dice.randint(1, 3)):
        place = dice.randint(0, len(text))
        kind = dice.random()
        if kind < 0.4:
            text = text[:place] + dice.choice(HOSTILE) + text[place:]
        elif kind < 0.6:
            text = text[:place] + text[place + dice.randint(1, 6) :]
        elif kind < 0.75:
            text = text[:place] + chr(dice.choice([dice.randrange(1, 128), dice.randrange(1, 0xD800)])) + text[place:]
        elif kind < 0.85:
            text = text[:place] + text[dice.randint(0, len(text)) :]
        elif kind < 0.95:
            text = text.replace(dice.choice([*AXES, "and", "(", " ", ">"]), dice.choice([*AXES, "", "((", "in", '"']))
        else:
            text = dice.choice([f"not {text}", f"({text})", text * 2, f"{text} and {text}"])
    return text


def expected(holds: Any) -> tuple[int, float] | None:
    """How many tests there are, and how robust they are on average; None where there are none."""
    chosen = [passes(test.values()) / INPUTS for test in TESTS if holds(columns(test))]
    return (len(chosen), float(np.mean(chosen))) if chosen else None


def ask(tomogram: Tomogram, texts: list[str]) -> list[Any]:
    """The answers to a few queries; one that is refused is answered with its error."""
    found: list[Any] = []
    for text in texts:
        try:
            found.append(tomogram.query(text))
        except InputError as error:
            found.append(error)
    return found


@pytest.mark.parametrize("cases", [2_000, pytest.param(100_000, marks=pytest.mark.simulation)])
def test_queries(cases, tomogram, watch, report):
    tomogram.query("order >= 0")  # loads what answers need
    dice = random.Random(16)
    batch = 50
    for first in range(0, cases, batch):
        made = [grow(dice, dice.randint(0, 3)) for _ in range(batch)]
        whole = [dice.random() < 0.3 for _ in made]
        texts = [text if fine else spoil(text, dice) for (text, _), fine in zip(made, whole, strict=True)]
        answers, problems = watch.case(lambda texts=texts: ask(tomogram, texts), seconds=5)
        report.add(f"queries from {first}", problems)
        for text, fine, (_, holds), answer in zip(texts, whole, made, answers or [], strict=False):
            report.count(answer)
            report.add(repr(text)[:120], wrong(answer, expected(holds) if fine else ...))
    report.check()
    assert report.refused > cases / 10
    assert report.answered > cases / 10


def wrong(answer: Any, truth: Any) -> list[str]:
    """What is wrong with one answer; for a query that was spoilt nobody knows the truth."""
    if isinstance(answer, InputError):
        said = str(answer)
        if len(said.splitlines()) != 1:
            return ["not one line"]
        if len(said) > 3_000:  # a query may be 10,000 characters, and is quoted
            return ["a line longer than any query"]
        return [] if truth in (..., None) else ["refused what can be answered"]
    if not 0 <= answer.low <= answer.robustness <= answer.high <= 1:
        return ["bounds that do not hold the estimate"]
    if truth is ...:
        return []
    if truth is None:
        return ["answered where no test is"]
    same = answer.tests == truth[0] and abs(answer.robustness - truth[1]) < 1e-9
    return [] if same else ["a wrong number"]
