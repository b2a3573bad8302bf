"""Formulas as MathML, which browsers show by themselves: no script, no font, nothing from elsewhere."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

# What pymdownx.arithmatex (generic) makes of $…$ and of $$…$$.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
ALIGNED = re.compile(r"\\(begin|end)\{aligned\}")  # known to latex2mathml under another name


def with_formulas(page: str) -> str:
    """A page's HTML with every formula as MathML."""
    page = BLOCK.sub(lambda found: f'<div class="formula">{_mathml(found[1], "block")}</div>', page)
    return INLINE.sub(lambda found: _mathml(found[1], "inline"), page)


def _mathml(latex: str, display: str) -> str:
    """One formula; what cannot be said is an error, since a reader would see LaTeX."""
    formula = html.unescape(latex).strip()
    made: str = convert(ALIGNED.sub(r"\\\1{split}", formula), display=display)
    if re.search(r"[\\&]", html.unescape(re.sub(r"<[^>]*>", "", made))):
        raise ValueError(f"formula: {formula!r} holds something that latex2mathml does not know")
    return made
