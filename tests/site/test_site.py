"""What needs the tools of the site, which `make docs` installs."""

from __future__ import annotations

import pytest


def test_formulas_become_mathml():
    pytest.importorskip("latex2mathml")
    from formulas import with_formulas

    page = r'<p>at <span class="arithmatex">\(\hat p &lt; 1\)</span></p><div class="arithmatex">\[\frac{a}{b}\]</div>'
    made = with_formulas(page)
    assert made.count("<math") == 2
    assert "arithmatex" not in made
    assert 'display="block"' in made


def test_aligned_lines_are_a_table():
    pytest.importorskip("latex2mathml")
    from formulas import with_formulas

    made = with_formulas(r'<div class="arithmatex">\[\begin{aligned} a &amp;= b \\ &amp;= c \end{aligned}\]</div>')
    assert made.count("<mtr>") == 2


def test_a_formula_that_cannot_be_shown_is_refused():
    pytest.importorskip("latex2mathml")
    from formulas import with_formulas

    with pytest.raises(ValueError, match="nosuchcommand"):
        with_formulas(r'<span class="arithmatex">\(\nosuchcommand{x}\)</span>')


def test_doctests_become_code():
    pytest.importorskip("griffe")
    from docstrings import fenced

    assert fenced("Adds.\n\n>>> 1 + 1\n2\n\nMore.") == "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert fenced("Nothing to run.") == "Nothing to run."
