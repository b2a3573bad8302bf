"""How quick the explorer is: seconds to the first plot, milliseconds to an answer, memory.

python benchmarks/explorer.py [RUN.db …]

Starts the real command and looks at its page in a Chromium that is already open. Without a file, a run of 1,296 tests
over four axes and 10,000 inputs is made first, with 150,000 inferences of a small model. "Floor" is what cannot be
had for less with this toolkit: Python, the import of Dash, and a page of it with one empty figure. All times are of
the clock on the wall, so other programs on the machine count; look at ratios there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import report

import testifai as ta
from testifai.report.pdf import find_chromium

QUERIES = 30
TURNS = 4
EMPTY = """
import dash
from werkzeug.serving import make_server
app = dash.Dash("empty")
app.layout = dash.html.Div(dash.dcc.Graph(figure={"data": [{"y": [1, 2]}]}), id="figures")
server = make_server("127.0.0.1", 0, app.server, threaded=True)
print(f"at http://127.0.0.1:{server.port}/", flush=True)
server.serve_forever()
"""
FIGURE = "#figures .main-svg"  # one that can be zoomed and clicked
SKETCH = ".sketch svg rect"  # pass rates as the server draws them
FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
ANSWER = "document.querySelector('#answer .answer')"
# From the last key to the new answer on the screen.
TYPED = f"""(text) => new Promise(done => {{
    const box = document.querySelector("#query"), begin = performance.now();
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    const look = () => {ANSWER}?.title === text ? done(performance.now() - begin) : requestAnimationFrame(look);
    set.call(box, text);
    box.dispatchEvent(new Event("input", {{bubbles: true}}));
    look();
}})"""


def make_run(path: Path) -> None:
    """A run like that of a small network on 10,000 pictures, in a few seconds."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(10_000, 4)).astype(np.float32)
    weights = rng.normal(size=(4, 3))

    def model(rows: Any) -> Any:
        return rows @ weights

    def shift(rows: Any, by: float, draws: Any) -> Any:
        return rows + by * draws.normal(rows.shape[1:]).astype(np.float32)

    blur = ta.Perturbation("blur", shift, [0.0, 0.1, 0.2, 0.4, 0.6, 0.8])
    space = ta.Space(dict.fromkeys(("fog", "rain", "night", "noise"), blur))
    ta.scan(model, (inputs, model(inputs).argmax(axis=1)), space, budget=150_000, store=path)


@contextlib.contextmanager
def serving(command: list[str]) -> Iterator[tuple[str, int, float]]:
    """A server's address, its process and the seconds until it had one."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        found = re.search(r"http://\S+", line)
        if found is None:
            sys.exit(f"no address in: {line}")
        yield found[0], process.pid, time.perf_counter() - begin
    finally:
        process.terminate()
        process.wait(20)


def resident(pid: int) -> tuple[float, float]:
    """MiB of a process now, and at most so far."""
    words = Path(f"/proc/{pid}/status").read_text()
    now, most = (int(re.search(rf"{key}:\s+(\d+)", words)[1]) / 1024 for key in ("VmRSS", "VmHWM"))  # type: ignore[index]
    return now, most


def processor(pid: int) -> float:
    """Seconds of processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_plot(browser: Any, command: list[str], plot: str = FIGURE) -> tuple[float, float]:
    """Seconds from the start of a command to the first such plot in its page, and processor seconds of its server."""
    begin = time.perf_counter()
    with serving(command) as (address, pid, _), contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(address, wait_until="commit")
        page.wait_for_selector(plot, timeout=60_000)
        return time.perf_counter() - begin, processor(pid)


def queries(path: Path) -> list[str]:
    """Questions about most of the space: those that take longest."""
    axes = ta.open(path).space.axes
    parts = [f"{axis.name} >= {axis.severities[1]}" for axis in axes]
    parts += [f"{axis.name} != {level}" for axis in axes for level in axis.severities]
    wide = [f"order >= 0 and {part}" for part in parts]
    return [*wide, *(" or ".join(pair) for pair in itertools.combinations(parts, 2))][:QUERIES]


def look(browser: Any, path: Path) -> bool:
    """All figures of one run."""
    command = [sys.executable, "-m", "testifai", "explore", str(path), "--port", "0"]
    empty = [sys.executable, "-c", EMPTY]
    # In turns, so that what else the machine does is the same for both; the first turn fills the disk's cache.
    kinds = ((empty, FIGURE), (command, SKETCH), (command, FIGURE))
    turns = [[first_plot(browser, *kind) for kind in kinds] for _ in range(TURNS)][1:]
    floor, plot, figure = (min(turn[which] for turn in turns) for which in range(3))
    asked = queries(path)
    with serving(command) as (address, pid, started), contextlib.closing(browser.new_context()) as context:
        page = context.new_page()
        # Where no figure changes with the query: without a graphics card, cubes keep the processor busy for seconds.
        page.goto(f"{address}?view=curves")
        page.wait_for_selector(FIGURE, timeout=60_000)
        page.wait_for_function(f"() => {ANSWER} !== null", timeout=60_000)
        page.wait_for_timeout(1000)
        times, work = [], []
        for text in asked:
            before = processor(pid)
            times.append(page.evaluate(TYPED, text))
            work.append(1000 * (processor(pid) - before))
            page.wait_for_timeout(200)
        for view in ("pairs", "tests", "space"):
            page.goto(f"{address}?view={view}")
            page.wait_for_selector(FIGURE, timeout=60_000)
        now, most = resident(pid)
    print(path.name)
    report("  floor: first figure of an empty page of Dash", floor[0], "s")
    reached = report("  first plot after starting the command", plot[0], "s", 3)
    report("  first interactive figure, of estimates", figure[0], "s")
    report("  first interactive figure, times the floor", figure[0] / floor[0], "x")
    report("  floor: processor time of the server until then", floor[1], "s")
    report("  processor time of the server until the first figure", figure[1], "s")
    report("  server has its address, in the last turn", started, "s")
    reached &= report(f"  answer after the last key, median of {len(asked)}", statistics.median(times), "ms", 200)
    report(f"  answer after the last key, slowest of {len(asked)}", max(times), "ms")
    report("  of this, processor time of the server, median", statistics.median(work), "ms")
    report("  of this, processor time of the server, most", max(work), "ms")
    reached &= report("  memory, at most", most, "MiB", 400)
    report("  memory at the end", now, "MiB")
    return reached


def main() -> None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if sync_playwright is None or find_chromium() is None:
        print("skipped: this needs playwright and a Chromium")
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        paths = [Path(name) for name in sys.argv[1:]]
        if not paths:
            paths = [Path(folder) / "made.db"]
            make_run(paths[0])
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        reached = [look(browser, path) for path in paths]
        browser.close()
    sys.exit(0 if all(reached) else 1)


if __name__ == "__main__":
    main()
