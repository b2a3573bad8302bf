"""Detectors as ONNX files, made for a test: one that emits known boxes, and one that finds white tiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE = 32  # of the canvas of the finder of tiles
TILE = 8


def save(path: Path, nodes, weights, inputs, outputs) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "detector", values, made, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def constant(path: Path, outputs: list[np.ndarray], canvas: tuple[int, int], open_sizes: bool = False) -> Path:
    """A graph that hands out these outputs, whatever it is shown."""
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "none"], ["zero"]),
    ]
    nodes += [helper.make_node("Add", [f"w{place}", "zero"], [f"out{place}"]) for place in range(len(outputs))]
    weights = {f"w{place}": output.astype(np.float32) for place, output in enumerate(outputs)}
    shape = [1, 3, "height", "width"] if open_sizes else [1, 3, *canvas]
    shapes = {f"out{place}": list(output.shape) for place, output in enumerate(outputs)}
    return save(path, nodes, {**weights, "none": np.zeros((), np.float32)}, {"images": shape}, shapes)


def tiles(path: Path) -> Path:
    """A detector like YOLOX, for one image at a time: each 8×8 tile of the canvas is found as surely as it is white."""
    fine = (SIDE // TILE) ** 2
    offsets = np.tile(np.array([0.5, 0.5, 0, 0], np.float32), (1, fine, 1))
    sure = np.tile(np.array([1, 0], np.float32), (1, fine, 1))  # of the first of two classes
    nodes = [
        helper.make_node("AveragePool", ["images"], ["pooled"], kernel_shape=[TILE] * 2, strides=[TILE] * 2),
        helper.make_node("ReduceMean", ["pooled"], ["grey"], axes=[1]),
        helper.make_node("Reshape", ["grey", "rows"], ["column"]),
        helper.make_node("Mul", ["column", "scale"], ["objectness"]),
        helper.make_node("Concat", ["offsets", "objectness", "sure"], ["found"], axis=2),
        helper.make_node("Concat", ["found", "coarse"], ["output"], axis=1),
    ]
    weights = {
        "rows": np.array([1, fine, 1], np.int64),
        "scale": np.array(1 / 255, np.float32),
        "offsets": offsets,
        "sure": sure,
        "coarse": np.zeros((1, 5, 7), np.float32),
    }
    return save(path, nodes, weights, {"images": [1, 3, SIDE, SIDE]}, {"output": [1, fine + 5, 7]})


def tiled(places: list[tuple[int, int]], size: tuple[int, int] = (SIDE, SIDE)) -> np.ndarray:
    """A black image with white tiles at these rows and columns of tiles, as large as the canvas shows them."""
    scale = max(size) // SIDE
    image = np.zeros((*size, 3), np.uint8)
    for row, column in places:
        top, left = row * TILE * scale, column * TILE * scale
        image[top : top + TILE * scale, left : left + TILE * scale] = 255
    return image


def boxes(places: list[tuple[int, int]], scale: int = 1) -> dict[str, list]:
    """Where these tiles are."""
    step = TILE * scale
    corners = [[column * step, row * step, (column + 1) * step, (row + 1) * step] for row, column in places]
    return {"boxes": corners, "labels": [0] * len(corners)}
