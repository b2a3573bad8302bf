"""Says at the end how many blocks and commands of the documentation ran."""

from __future__ import annotations

from tests.docs.blocks import ROOT, read
from tests.docs.count import summary


def pytest_terminal_summary(terminalreporter):
    """One line for the pages whose tests passed."""
    passed = terminalreporter.stats.get("passed", [])
    named = [value for report in passed for key, value in report.user_properties if key == "docs"]
    if named:
        terminalreporter.write_line(summary(read(ROOT / name) for name in named))
