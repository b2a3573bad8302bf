"""Every block and command of README.md and docs runs, or says to its reader why the tests do not run it."""

from __future__ import annotations

import pytest
from tests.docs.blocks import Page, pages, read
from tests.docs.mentions import unknown_in
from tests.docs.running import failure_of, runs

PAGES = [read(path) for path in pages()]


def _case(page: Page):
    return pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.slow else [])


@pytest.mark.parametrize("page", [_case(page) for page in PAGES])
def test_page(page, tmp_path, record_property):
    wrong = [f"line {one.line}: `{one.text}`: {said}" for one in page.mentions if (said := unknown_in(one.text))]
    if problems := [*page.problems, *wrong]:
        pytest.fail("\n".join(f"{page.name}, {problem}" for problem in problems), pytrace=False)
    if any(runs(step) for step in page.steps) and (failure := failure_of(page, tmp_path)):
        pytest.fail(failure, pytrace=False)
    record_property("docs", page.name)
