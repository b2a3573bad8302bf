"""What tests of several packages share."""

from __future__ import annotations

import os
import warnings

import pytest

from testifai.report.pdf import find_chromium

FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@pytest.fixture(scope="module")
def browser():
    """A real Chromium; without one, tests that need it are skipped, loudly."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    missing = [name for name, found in (("playwright", sync_playwright), ("Chromium", find_chromium())) if not found]
    if missing:
        warnings.warn(f"no {' and no '.join(missing)} here: the pages were NOT tested in a browser", stacklevel=1)
        pytest.skip(f"no {' and no '.join(missing)}")
    flags = [*FLAGS, "--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else FLAGS
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        yield launched
        launched.close()
