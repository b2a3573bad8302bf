"""What a detector's run costs besides the detector: where the time of an image goes, and what a second worker brings.

python benchmarks/detectors.py

Times are of the processor: other programs on the machine do not count. Turns of one and of two workers alternate.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
from common import need, report

from testifai import Space, data, models, scan
from testifai.engine import subject as geometry
from testifai.models.detection import onnx as detector
from testifai.oracles import detection
from testifai.oracles import detection as matching

TURNS = 3
SPACE = {"translate": ("deeptest.translate", [0, 3]), "contrast": ("deeptest.contrast", [0, 2])}


class Clock:
    """Processor seconds spent in functions, while they are watched."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextmanager
    def watching(self, *watched: tuple[Any, str]) -> Any:
        before = [(home, name, getattr(home, name)) for home, name in watched]
        for home, name, function in before:
            setattr(home, name, self._timed(name, function))
        try:
            yield self
        finally:
            for home, name, function in before:
                setattr(home, name, function)

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **keywords: Any) -> Any:
            begin = time.thread_time()
            try:
                return function(*arguments, **keywords)
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + time.thread_time() - begin

        return timed


def shares(model: Any, photographs: Any) -> dict[str, float]:
    """Milliseconds for each image of a composite that moves, by what they are spent on."""
    clock = Clock()
    moves = Space({name: axis for name, axis in SPACE.items() if name == "translate"})
    geometry.MOVERS["boxes"] = clock._timed("move_boxes", geometry.move_boxes)
    with clock.watching((detector, "infer"), (detector, "choose"), (detection, "match")):
        made = scan(model, photographs, moves, oracle="detection", strategy="full", workers=1)
    geometry.MOVERS["boxes"] = geometry.move_boxes
    return {name: 1000 * spent / made.inferences for name, spent in clock.spent.items()}


def workers(model: Any, photographs: Any, count: int) -> tuple[float, float]:
    """Seconds, and processor seconds, of a run with so many workers."""
    begin, spent = time.perf_counter(), time.process_time()
    scan(model, photographs, Space(SPACE), oracle="detection", strategy="full", workers=count)
    return time.perf_counter() - begin, time.process_time() - spent


def main() -> None:
    assert matching.match is detection.match
    graph, folder = need("models/yolox_nano_coco.onnx", "data/coco_tiny")
    model, photographs = models.load("onnx", graph, head="yolox"), data.wrap(folder)
    found = model(photographs.inputs[np.arange(len(photographs))])
    outcome = detection.Detection().fitted(photographs.labels).judge(found, photographs.labels, None)
    assert outcome.value is not None
    report("clean: mean F1", float(outcome.value.mean()), "")
    report("clean: share of images with F1 ≥ 0.5", float(outcome.passed.mean()), "")
    each = shares(model, photographs)
    for name, milliseconds in each.items():
        report(f"an image: {name}", milliseconds, "ms")
    report("matching and NMS, of the inference", 100 * (each["choose"] + each["match"]) / each["infer"], "%", 10)
    report("moving boxes, of the inference", 100 * each["move_boxes"] / each["infer"], "%")
    turns = [(workers(model, photographs, 1), workers(model, photographs, 2)) for _ in range(TURNS)]
    one, two = (np.array([turn[place] for turn in turns]).min(axis=0) for place in (0, 1))
    report("one worker: seconds, the least of three", one[0], "s")
    report("two workers: seconds, the least of three", two[0], "s")
    report("two workers: as many times as quick", one[0] / two[0], "x")
    report("two workers: processor seconds against one's", two[1] / one[1], "x")
    print(f"load while this ran: {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
