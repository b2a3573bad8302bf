"""A report page as PDF, printed by a Chromium that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from testifai.errors import InputError
from testifai.report.contents import gather
from testifai.report.markdown import markdown
from testifai.report.page import render
from testifai.support.files import write_bytes

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
VARIABLE = "TESTIFAI_CHROMIUM"
SECONDS = 120


def find_chromium() -> str | None:
    """The browser of the environment variable, else one on the path."""
    named = os.environ.get(VARIABLE)
    return next((found for name in ([named] if named else BROWSERS) if (found := shutil.which(name))), None)


def require_chromium() -> str:
    """The browser; raise InputError if there is none."""
    found = find_chromium()
    if found is None:
        looked = os.environ.get(VARIABLE) or ", ".join(BROWSERS[:3])
        raise InputError(
            f"--pdf: no Chromium was found ({looked}); install it, name it in {VARIABLE}, or print the .html by hand"
        )
    return found


def print_pdf(page: Path, out: Path) -> None:
    """Print an HTML file to a PDF file."""
    browser = require_chromium()
    # A separate profile: a browser that is already open would take over, and print nothing.
    with tempfile.TemporaryDirectory(prefix="testifai-pdf-") as profile:
        made = Path(profile) / "report.pdf"
        command = [
            browser, "--headless", "--disable-gpu-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
            "--no-first-run", "--disable-extensions", f"--user-data-dir={profile}", "--window-size=1040,1400",
            "--virtual-time-budget=30000", "--run-all-compositor-stages-before-draw", "--no-pdf-header-footer",
            f"--print-to-pdf={made}", page.resolve().as_uri(),
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(2, "--no-sandbox")  # needed to run Chromium as root
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise InputError(f"--pdf: {browser} did not finish within {SECONDS} s; print the .html by hand") from None
        except OSError as error:
            raise InputError(f"--pdf: cannot start {browser} ({error.strerror})") from error
        if not made.is_file():
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise InputError(f"--pdf: {browser} printed nothing ({said[0][:200]})")
        try:
            shutil.copyfile(made, out)
        except OSError as error:
            raise InputError(f"cannot write {out} ({error.strerror or error})") from error


def write_report(run_file: Path, folder: Path) -> Path:
    """Write a run's page and its Markdown into a folder, named after the run file; return the page's path."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder} ({error.strerror or error})") from error
    contents = gather(run_file)
    page = folder / f"{run_file.stem}.html"
    write_bytes(page, render(contents).encode())
    write_bytes(page.with_suffix(".md"), markdown(contents).encode())
    return page
