"""The four papers' evaluations beside ours, on one page: docs/results.md.

    python benchmarks/papers.py [--only SECTION ...] [--page docs/results.md] [--grids benchmarks/grids] [--workers 2]
                                [--tiny]

Works from recorded grids, and from the data of TESTIFAI_DATA where a section wants them; what is missing is said on the
page and at the end. `--only` replaces these sections of the page and leaves the others. `--tiny` repeats next to
nothing: to see that all of it runs. Two runs give equal pages, times (marked by a clock) aside.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from common import FOLDER
from evaluation import SECTIONS
from evaluation.page import Page
from evaluation.setting import Setting

HERE = Path(__file__).parent
HEAD = """# The papers' evaluations, beside ours

*Not run by the tests (this section): needs models and data of others, and minutes to hours.*

Written by `make papers`; never edited by hand. Below each table and figure stand the command and the seeds behind it.
Error = estimate − truth, so positive is optimistic. Times depend on the machine and are marked by ⏱.
"""


def written(name: str, setting: Setting, figures: Path) -> Page:
    """One section, in a process of its own."""
    begin = time.perf_counter()
    page = Page(name, figures)
    importlib.import_module(f"evaluation.{name}").write(page, setting)
    page.say(f"done in {time.perf_counter() - begin:.0f} s")
    return page


def sections(names: Sequence[str], setting: Setting, figures: Path, workers: int) -> list[Page]:
    """Some sections, so many at a time."""
    # Fresh processes with one thread each: what one section leaves behind cannot change another's numbers.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1) as pool:
        return [one.result() for one in [pool.submit(written, name, setting, figures) for name in names]]


def marks(name: str) -> tuple[str, str]:
    return f"<!-- section {name} -->", f"<!-- end of {name} -->"


def kept(text: str) -> dict[str, str]:
    """The sections of an earlier page."""
    found = {}
    for name in SECTIONS:
        begin, end = (re.escape(mark) for mark in marks(name))
        match = re.search(rf"{begin}\n(.*?)\n{end}", text, re.DOTALL)
        if match:
            found[name] = match[1]
    return found


def whole(parts: Mapping[str, str]) -> str:
    """The page of some sections, in their order."""
    chosen = [name for name in SECTIONS if name in parts]
    listed = [f"- {link(parts[name])}" for name in chosen]
    return "\n".join(
        [HEAD, *listed, "", *("\n".join([marks(name)[0], parts[name], marks(name)[1], ""]) for name in chosen)]
    )


def link(section: str) -> str:
    """To a section's title, as pages of Markdown name their parts.

    >>> link("## ASAP: sweeps, and more\\n\\ntext")
    '[ASAP: sweeps, and more](#asap-sweeps-and-more)'
    """
    title = section.splitlines()[0].removeprefix("## ")
    place = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{place})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "results.md")
    parser.add_argument("--grids", type=Path, default=HERE / "grids")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    begin = time.perf_counter()
    setting = Setting(options.grids.resolve(), FOLDER.resolve(), options.tiny)
    names = [name for name in SECTIONS if options.only is None or name in options.only]
    pages = sections(names, setting, options.page.parent / options.page.stem, options.workers)
    earlier = kept(options.page.read_text(encoding="utf-8")) if options.only and options.page.exists() else {}
    parts = earlier | {page.name: page.markdown() for page in pages}
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(whole(parts), encoding="utf-8")
    for page in pages:
        for line in page.missing:
            print(f"not run: {page.name}: {line} not found", file=sys.stderr)
    print(f"{options.page}: {len(parts)} sections; {time.perf_counter() - begin:.0f} s for {len(pages)} of them")


if __name__ == "__main__":
    main()
