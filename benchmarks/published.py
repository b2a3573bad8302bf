"""The first paper's evaluation on its first task: MNIST, LeNet-5, brightness x zoom x motion blur, 10,000 digits.

    python benchmarks/published.py [--inputs 10000]

Full tomography is the truth. Partial tomography is as published: all tests of order <= 2, early stopping (Algorithm 1),
forest. Then the choice of training tests: ordered (low orders first) against uniformly random, MSE on the rest.
Error = estimate - truth; positive = optimistic.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import need

import testifai as ta
from testifai.commands.example import AXES, beside, table_2
from testifai.surrogates import Forest


def selection(truth: ta.Tomogram, repetitions: int = 10) -> None:
    """MSE on the tests left out, by the share of tests the forest is trained on."""
    space = truth.space
    features = space.matrix(np.arange(space.size))
    passes, trials, rates = (array.reshape(-1) for array in (truth.passes, truth.trials, truth.estimate))
    orders = (features > 0).sum(axis=1)
    print("\nshare of tests   ordered MSE   random MSE   (mean of 10 repetitions, tests left out)")
    for share in np.arange(0.1, 1.0, 0.1):
        errors: dict[str, list[float]] = {"ordered": [], "random": []}
        for repetition in range(repetitions):
            generator = np.random.default_rng(repetition)
            shuffled = generator.permutation(space.size)
            sequences = {"ordered": shuffled[np.argsort(orders[shuffled], kind="stable")], "random": shuffled}
            for name, sequence in sequences.items():
                count = round(share * space.size)
                used, rest = sequence[:count], sequence[count:]
                forest = Forest(seed=repetition).fit(features[used], passes[used], trials[used])
                predicted, _ = forest.predict(features[rest])
                errors[name].append(float(((predicted - rates[rest]) ** 2).mean()))
        print(f"{share:14.0%} {np.mean(errors['ordered']):13.5f} {np.mean(errors['random']):12.5f}")


def compare(partial: ta.Tomogram, full: ta.Tomogram) -> None:
    """The paper's Table 2 of a partial tomogram beside the truth, and its other figures."""
    print("query  measured  inferred   answer    truth    error")
    for row in beside(partial, full, table_2(full.space.names)):
        answer = row.answer
        print(
            f"{row.name:5s} {answer.measured:9d} {answer.inferred:9d} {answer.robustness:8.3f} {row.truth:8.3f} "
            f"{row.error:+8.3f}"
        )
    errors = partial.estimate - full.estimate
    high = errors[np.broadcast_to(full.space.columns()["order"], full.space.shape) >= 3]
    inputs = full.outcomes.inputs
    print(
        f"\ninferences saved {1 - partial.inferences / full.inferences:.1%} (of which by stopping early "
        f"{1 - partial.inferences / (len(partial.outcomes) * inputs):.1%} of the tests run); "
        f"{(np.abs(errors) <= 0.1).mean():.1%} of 216 errors within 0.1; order 3: mean absolute error "
        f"{np.abs(high).mean():.3f}, mean error {high.mean():+.3f}, largest {np.abs(high).max():.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=10_000)
    options = parser.parse_args()
    model, path = need("models/mnist_lenet5.onnx", "data/mnist_test.npz")
    arrays = np.load(path)
    data = (arrays["x"][: options.inputs], arrays["y"][: options.inputs])
    space = ta.Space(AXES)
    full = ta.scan(str(model), data, space, strategy="full")
    partial = ta.scan(str(model), data, space, strategy="ordered", stopping="window")
    compare(partial, full)
    selection(full)


if __name__ == "__main__":
    main()
