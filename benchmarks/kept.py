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
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import testifai

FOLDER = Path(__file__).parent / ".kept"
SHOWN = ("app", "cli.py", "commands", "present", "report")
Case = tuple[Any, ...]


def cores() -> int:
    """How many processes are of use here."""
    return len(os.sched_getaffinity(0))


@functools.cache
def state() -> str:
    """A short text that changes with the package's source, but for what only shows results."""
    root = Path(testifai.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in SHOWN:
            continue
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
        try:
            running = {pool.submit(simulate, *case): case for case in missing}
            for number, done in enumerate(as_completed(running), start=1):
                found[running[done]] = done.result()
                file.write(json.dumps([running[done], done.result()]) + "\n")
                file.flush()
                _tell(name, number, len(missing))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # or it would go on with all cases that nobody waits for
            raise
    return {case: found[case] for case in cases}


def share(hits: NDArray[np.float64], of: NDArray[np.float64]) -> tuple[float, float]:
    """The share over all seeds with its standard error: seeds are independent, what is counted within one is not."""
    found = hits.sum() / of.sum()
    degrees = max(len(of) - 1, 1) / len(of)
    return float(found), float(np.sqrt(np.sum((hits - found * of) ** 2) / degrees) / of.sum())


def _tell(name: str, done: int, of: int) -> None:
    """How far a run is, for whoever watches it."""
    if sys.stderr.isatty():
        print(f"\r{name}: {done:,} of {of:,}", end="\n" if done == of else "", file=sys.stderr, flush=True)


def _read(path: Path) -> Iterable[tuple[Case, Any]]:
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            case, result = json.loads(line)
        except ValueError:
            continue  # cut short by whoever ended the benchmark
        yield tuple(case), result


def _one_thread() -> None:
    """Cores are shared out among processes, not among the threads of one."""
    import scipy.linalg  # noqa: F401  has a BLAS of its own, whose threads can be limited once it is loaded

    try:
        import threadpoolctl
    except ImportError:  # on a borrowed machine: simulations run all the same, with as many threads as BLAS takes
        sys.modules["threadpoolctl"] = _no_limits()
    else:
        threadpoolctl.threadpool_limits(1)


def _no_limits() -> ModuleType:
    """What stands in for threadpoolctl where it is not installed: nothing is limited."""

    class ThreadpoolController:
        def limit(self, **_: Any) -> ThreadpoolController:
            return self

        def restore_original_limits(self) -> None:
            pass

    module = ModuleType("threadpoolctl")
    module.ThreadpoolController = ThreadpoolController  # type: ignore[attr-defined]
    return module
