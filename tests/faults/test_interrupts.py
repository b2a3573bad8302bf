"""Ctrl-C twice, at any moment: the run ends, and what was measured is there."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROUNDS = """
import faulthandler, os, sys, time
import numpy as np
import testifai as ta

faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)  # a run that hangs is shown, and ended
shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.1, 0.2, 0.3, 0.4])
space = ta.Space({"a": shift, "b": shift, "c": shift, "d": shift})
rows = np.random.default_rng(0).random((600, 3))

def model(batch):
    time.sleep(0.001)
    return (batch[:, 0] > 0.5).astype(int)

model.thread_safe = True
labels = (rows[:, 0] > 0.5).astype(int)
# Python drops an interrupt that comes while it imports something: everything is imported before.
ta.scan(model, (rows[:9], labels[:9]), ta.Space({"a": shift}), workers=2, store=sys.argv[3] + ".first")
for number in range(int(sys.argv[1])):
    try:
        try:
            print("begin", flush=True)
            workers = 1 + number % 3
            store = f"{sys.argv[3]}.{number // 25}"  # continued, and never near its end
            ta.scan(model, (rows, labels), space, strategy="full", workers=workers, batch_size=16, store=store)
            print("whole", flush=True)
        finally:
            time.sleep(0.05)  # for a second signal that is late
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""

# Every line of the handler is one at which the next signal may come.
NESTED = """
import faulthandler, signal, sys
import numpy as np
import testifai as ta

faulthandler.dump_traceback_later(20, exit=True)
rows = np.random.default_rng(0).random((40, 3))

def model(batch):
    handler, inside = signal.getsignal(signal.SIGINT), []

    def trace(frame, event, argument):
        if event == "line" and len(inside) < 1:
            inside.append(frame)
            sys.settrace(None)
            handler(signal.SIGINT, None)
            sys.settrace(trace)
        return trace

    for skipped in range(30):
        count = [skipped]

        def later(frame, event, argument):
            if event == "line":
                count[0] -= 1
                if count[0] < 0:
                    return trace(frame, event, argument) and later
            return later

        inside.clear()
        sys.settrace(later)
        handler(signal.SIGINT, None)
        sys.settrace(None)
    return (batch[:, 0] > 0.5).astype(int)

shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.1])
try:
    ta.scan(model, (rows, np.zeros(40, int)), ta.Space({"a": shift}), strategy="full", workers=1)
except KeyboardInterrupt:
    print("stopped")
"""


def test_a_signal_while_another_is_noted_waits_for_nothing():
    ended = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "stopped\n", ended.stderr


def interrupt_twice(rounds: int, seed: int, store: Path) -> None:
    """Runs of 1 to 3 workers in one process; each is sent two signals, up to two milliseconds apart."""
    chance, seconds = random.Random(seed), 30 + 2 * rounds
    process = subprocess.Popen(
        [sys.executable, "-c", ROUNDS, str(rounds), str(seconds), str(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    stopped = 0
    for line in process.stdout:
        if line == "begin\n":
            time.sleep(chance.uniform(0.005, 0.1))
            for _ in range(2):
                os.kill(process.pid, signal.SIGINT)
                until = time.perf_counter() + chance.choice([0, 2e-5, 1e-4, 5e-4, 2e-3])
                while time.perf_counter() < until:
                    pass
        stopped += line == "stopped\n"
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert stopped == rounds
    from testifai.session.stored_runs import open_run

    assert open_run(f"{store}.0").inferences > 0


@pytest.mark.slow
def test_thirty_double_interrupts_end_thirty_runs(tmp_path):
    interrupt_twice(30, 0, tmp_path / "run.db")


@pytest.mark.slow
def test_two_hundred_double_interrupts_end_two_hundred_runs(tmp_path):
    interrupt_twice(200, 1, tmp_path / "run.db")


def test_a_second_interrupt_does_not_wait_for_a_long_batch(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time\nfrom pathlib import Path\n"
        "def model(rows):\n    Path(__file__).with_name('mark').touch()\n    time.sleep(30)\n    return rows[:, 0]\n"
        "model.thread_safe = True\n"
    )
    rows = np.zeros((40, 3), np.float32)
    np.savez(tmp_path / "data.npz", x=rows, y=np.zeros(40, int))
    (tmp_path / "axes.py").write_text(
        "import testifai as ta\nshift = ta.Perturbation('shift', lambda x, by, rng: x + by, [0, 1])\n"
    )
    spec = tmp_path / "spec.toml"
    spec.write_text(
        '[model]\npython = "slow:model"\n[data]\nnpz = "data.npz"\n[space]\nshift = { python = "axes:shift" }\n'
        "[scan]\nworkers = 2\nbatch_size = 4\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "testifai", "run", str(spec)],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "mark").exists():
        assert process.poll() is None
        time.sleep(0.01)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130, err
    assert "Traceback" not in err
