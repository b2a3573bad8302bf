"""The line that says what was skipped."""

from .skips import summary


def test_reasons_become_remedies_counted():
    reasons = [
        "Skipped: could not import 'torch': No module named 'torch'",
        "Skipped: could not import 'transformers.models.x': No module named 'transformers'",
        "Skipped: no Chromium",
        "Skipped: could not import 'polars': No module named 'polars'",
        "Skipped: no model (set TESTIFAI_DATA)",
        "Skipped: permissions do not bind root",
    ]
    assert summary(reasons) == (
        "skipped 6: 2 PyTorch and text: make test-torch; 1 a browser: apt-get install chromium; "
        "1 libraries of the development environment: pip install -e '.[dev]'; "
        "1 data that are not in the project: set TESTIFAI_DATA; 1 for other machines or settings"
    )
