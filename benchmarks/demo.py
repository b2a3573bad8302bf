"""Coverage of the demo's twelve queries: its full grid is measured once and its small run replayed with many seeds.

python benchmarks/demo.py [--seeds 100]
"""

from __future__ import annotations

import argparse

import numpy as np
from kept import share
from replay import Grid, replay

from testifai.commands.example import AXES, BUDGET, table_2
from testifai.data.sample import demo_data, demo_model_path
from testifai.models.onnx import OnnxModel
from testifai.session import assembly
from testifai.space import Space


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    options = parser.parse_args()
    grid = measured()
    queries = table_2(tuple(grid.axes))
    truths = {name: float(grid.truth[_selected(grid, query)].mean()) for name, query in queries.items()}
    covered, widths = np.zeros((options.seeds, len(queries))), np.zeros(len(queries))
    for seed in range(options.seeds):
        found = replay(grid, "adaptive", budget=BUDGET, seed=seed, population="data")
        answers = [found.query(query) for query in queries.values()]
        widths += [answer.high - answer.low for answer in answers]
        pairs = zip(answers, truths.values(), strict=True)
        covered[seed] = [answer.low <= truth <= answer.high for answer, truth in pairs]
    for number, name in enumerate(queries):
        print(f"{name:4} {covered[:, number].mean():.3f}  width {widths[number] / options.seeds:.4f}  {queries[name]}")
    mean, error = share(covered.sum(axis=1), np.full(options.seeds, len(queries)))
    print(f"mean {mean:.3f} ({error:.3f})")


def measured() -> Grid:
    """Measure every input under every test of the demo."""
    full = assembly.session_of(OnnxModel(demo_model_path()), demo_data(), Space(AXES), strategy="full").run()
    outcomes, inputs = full.outcomes, full.outcomes.inputs
    passed = np.stack([outcomes.results(test, np.arange(inputs)) for test in range(full.space.size)])
    # Outcomes are in visiting order; a grid holds them by input.
    by_input = np.zeros_like(passed)
    by_input[:, full.order] = passed
    return Grid(tuple(AXES), inputs, np.packbits(by_input, axis=-1).reshape(*full.space.shape, -1))


def _selected(grid: Grid, query: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    found = replay(grid, "full", surrogate="none", population="data")
    return np.asarray(found.query_engine.select(query)).reshape(grid.levels)


if __name__ == "__main__":
    main()
