"""Whether what the documentation promises about probabilities holds: simulations whose truth is known, page by page.

    python benchmarks/guarantees.py [--only NAME ...] [--seeds N] [--workers N] [--page docs/guarantees.md]

Each promise is a `Promise` in a module of `benchmarks/promises/`. Every seed is kept (`kept.py`), so that an
interrupted run continues. Seeds are independent, trials of one seed are not: the standard error is that over seeds.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path

import kept
import numpy as np
import promises
from promises import Promise


def collected() -> list[Promise]:
    """The promises of all modules, in the order of the modules' names."""
    names = sorted(module.name for module in pkgutil.iter_modules(promises.__path__))
    return [promise for name in names for promise in importlib.import_module(f"promises.{name}").PROMISES]


def figure(promise: Promise, seeds: int, workers: int | None) -> tuple[float, float, int]:
    """The share over all seeds, its standard error and the number of seeds."""
    found = kept.results(promise.name, promise.simulate, [(seed,) for seed in range(seeds)], workers=workers)
    hits, of = np.array(list(found.values()), float).T
    return *kept.share(hits, of), seeds


def row(promise: Promise, share: float, error: float, seeds: int) -> str:
    verdict = "yes" if promise.holds(share, error) else "**no**"
    return (
        f"| {promise.promised} | {promise.assumes} | `{promise.name}` | {promise.bound} | "
        f"{share:.3f} ({error:.3f}), {seeds} seeds | {verdict} |"
    )


def page(rows: Sequence[str]) -> str:
    return "\n".join(
        [
            "# What is promised, and what simulations say",
            "",
            "Written by `python benchmarks/guarantees.py`; never edited by hand. A figure is a share over all seeds",
            "with its standard error in brackets. A promise holds where the figure is on the right side of what is",
            "promised, or within two standard errors of it.",
            "",
            "| promise | assumes | simulation | promised | found | holds |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = collected()
    parser.add_argument("--only", nargs="*", choices=[promise.name for promise in known])
    parser.add_argument("--seeds", type=int, help="for every promise; otherwise what each asks for")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--page", type=Path, help="where to write the table of all promises")
    options = parser.parse_args()
    rows = []
    for promise in known:
        if options.only is None or promise.name in options.only:
            rows.append(row(promise, *figure(promise, options.seeds or promise.seeds, options.workers)))
            print(rows[-1], flush=True)
    if options.page:
        options.page.write_text(page(rows))


if __name__ == "__main__":
    main()
