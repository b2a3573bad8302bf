"""Simulations of many seeds that are kept one by one: an interrupted benchmark goes on, and all cores are used.

Results lie in a folder outside version control, one line of JSON each, apart for every state of the package's source:
what another version found is never mixed in.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import testifai

FOLDER = Path(__file__).parent / ".kept"
Case = tuple[Any, ...]


def cores() -> int:
    """How many processes are of use here."""
    return len(os.sched_getaffinity(0))


@functools.cache
def state() -> str:
    """A short text that changes with the package's source."""
    root = Path(testifai.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def results(
    name: str, simulate: Callable[..., Any], cases: Sequence[Case], *, workers: int | None = None
) -> dict[Case, Any]:
    """What `simulate(*case)` gives for each case, in their order; only those not kept yet are run.

    Cases are tuples of texts and numbers, results are what JSON can hold; `simulate` stands at the top of a module.
    """
    function = simulate.func if isinstance(simulate, functools.partial) else simulate
    source = hashlib.sha256(inspect.getsource(inspect.getmodule(function) or function).encode()).hexdigest()[:8]
    path = FOLDER / f"{name}-{state()}-{source}.jsonl"
    found = dict(_read(path))
    missing = [case for case in cases if case not in found]
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file, ProcessPoolExecutor(workers or cores(), initializer=_one_thread) as pool:
        running = {pool.submit(simulate, *case): case for case in missing}
        for done in as_completed(running):
            found[running[done]] = done.result()
            file.write(json.dumps([running[done], done.result()]) + "\n")
            file.flush()
    return {case: found[case] for case in cases}


def _read(path: Path) -> Iterable[tuple[Case, Any]]:
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            case, result = json.loads(line)
        except ValueError:
            continue  # cut short by whoever ended the benchmark
        yield tuple(case), result


def _one_thread() -> None:
    import scipy.linalg  # noqa: F401  has a BLAS of its own, whose threads can be limited once it is loaded
    import threadpoolctl

    threadpoolctl.threadpool_limits(1)
