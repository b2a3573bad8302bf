"""Printing needs a browser; without one, a line says so before any work is done."""

from __future__ import annotations

import warnings

import pytest

from testifai.errors import InputError
from testifai.report import pdf


def test_no_browser(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(pdf.VARIABLE, raising=False)
    with pytest.raises(InputError, match="no Chromium was found"):
        pdf.require_chromium()


def test_a_browser_that_prints_nothing(monkeypatch, tmp_path):
    fake = tmp_path / "chromium"
    fake.write_text("#!/bin/sh\necho it is broken >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv(pdf.VARIABLE, str(fake))
    with pytest.raises(InputError, match=r"printed nothing \(it is broken\)"):
        pdf.print_pdf(tmp_path / "page.html", tmp_path / "page.pdf")


def test_prints_pages(tmp_path):
    if pdf.find_chromium() is None:
        warnings.warn("no Chromium here: printing was NOT tested", stacklevel=1)
        pytest.skip("no Chromium")
    (tmp_path / "page.html").write_text("<h1>One</h1><h1 style='break-before: page'>Two</h1>")
    pdf.print_pdf(tmp_path / "page.html", tmp_path / "page.pdf")
    content = (tmp_path / "page.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.count(b"/Type /Page\n") == 2
