"""Run the examples, each in an empty folder, and say how long they take or why they were skipped.

python examples/tools/run.py                    all of them; make examples
python examples/tools/run.py detector text_pairs --show
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1]
SKIPPED = "skipped: "  # how the last line of an example begins that lacks a library


@dataclass(frozen=True)
class Ran:
    """What became of an example."""

    name: str
    seconds: float
    processors: float  # seconds of all its processes: on a busy machine they tell more
    code: int
    output: str

    @property
    def skipped(self) -> bool:
        return self.code == 0 and self._last.startswith(SKIPPED)

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.name:<22}       {self._last}"
        failed = f"  failed with exit code {self.code}" if self.code else ""
        return f"{self.name:<22} {self.seconds:5.1f} s  ({self.processors:.1f} s of processors){failed}"

    @property
    def _last(self) -> str:
        return (self.output.splitlines() or [""])[-1]


def scripts(names: list[str]) -> list[Path]:
    """The examples of these names, or all."""
    found = {path.stem: path for path in sorted(EXAMPLES.glob("*.py"))}
    unknown = [name for name in names if name not in found]
    if unknown:
        sys.exit(f"no example {unknown[0]!r}; there are {', '.join(found)}")
    return [found[name] for name in names or found]


def run(script: Path) -> Ran:
    """Run an example where it finds nothing and leaves nothing."""
    with tempfile.TemporaryDirectory(prefix="testifai-example-") as folder:
        begin, used = time.perf_counter(), _processors()
        done = subprocess.run(
            [sys.executable, script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8", env={**os.environ, "PYTHONIOENCODING": "utf-8"}, check=False,
        )  # fmt: skip
        return Ran(script.stem, time.perf_counter() - begin, _processors() - used, done.returncode, done.stdout)


def _processors() -> float:
    """Seconds of processors of all that was run so far."""
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples to run; default: all")
    parser.add_argument("--show", action="store_true", help="also what they print")
    options = parser.parse_args()
    ran = []
    for script in scripts(options.names):
        ran.append(run(script))
        if options.show or ran[-1].code:
            print(ran[-1].output)
        print(ran[-1], flush=True)
    failed, skipped = (sum(map(bool, kind)) for kind in zip(*((one.code, one.skipped) for one in ran), strict=True))
    print(f"{len(ran) - failed - skipped} examples ran, {skipped} skipped, {failed} failed")
    sys.exit(min(failed, 1))


if __name__ == "__main__":
    main()
