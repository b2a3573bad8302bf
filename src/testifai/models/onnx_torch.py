"""ONNX graphs as PyTorch modules, for devices that onnxruntime does not reach (needs the extra `torch`)."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from testifai.errors import InputError, suggest
from testifai.models.base import Model
from testifai.models.onnx_graph import Graph, Node, read_graph
from testifai.models.onnx_operators import find
from testifai.models.onnx_session import check_file, external_files, find_output
from testifai.models.torch import TorchModel
from testifai.support.types import Array, Record

Prepare = Callable[[Array], Any]

# Operators whose constants are read, not computed with: reading them must not wait for a device.
_TOLD = ("Pad", "Resize")


@dataclass(frozen=True)
class _Step:
    node: Node
    attributes: Record
    unneeded: tuple[str, ...]  # values that are not needed after it has run


class OnnxModule(torch.nn.Module):  # type: ignore[misc]
    """One output of a graph as a function of its only input; batches of a fixed size are padded with zeros."""

    def __init__(self, name: str, graph: Graph, output: str) -> None:
        super().__init__()
        if len(graph.inputs) != 1:
            found = ", ".join(one.name for one in graph.inputs)
            raise InputError(f"model: {name} has {len(graph.inputs)} inputs ({found}); one is accepted")
        self._input, self._output, self._opset = graph.inputs[0].name, output, graph.opset
        size = graph.inputs[0].shape[0] if graph.inputs[0].shape else None
        self._batch = size if isinstance(size, int) else None
        nodes = _needed(graph.nodes, output)
        taken = {one for node in nodes for one in node.inputs} | {output}
        constants = {one: array for one, array in graph.constants.items() if one in taken}
        self._places = self._keep(constants, {one for node in nodes if node.operator in _TOLD for one in node.inputs})
        self._steps = list(_steps(name, nodes, graph.opset, {*constants, output}))
        self._digest = _digest(self._input, output, self._batch, nodes, constants)

    def _keep(self, constants: dict[str, Array], told: set[str]) -> dict[str, str | Tensor]:
        """Make floats buffers; integers for shapes, and constants in `told`, stay in host memory."""
        places: dict[str, str | Tensor] = {}
        for place, (name, array) in enumerate(constants.items()):
            tensor = torch.from_numpy(np.array(array))
            if array.dtype.kind == "f" and name not in told:
                self.register_buffer(f"constant_{place}", tensor)
                places[name] = f"constant_{place}"
            else:
                places[name] = tensor
        return places

    def extra_repr(self) -> str:
        return f"{len(self._steps)} nodes, graph {self._digest}"

    def forward(self, inputs: Tensor) -> Tensor:
        size = self._batch
        if size is None or len(inputs) == size:
            return self._run(inputs)
        parts = []
        for part in inputs.split(size):
            filled = torch.cat([part, part.new_zeros(size - len(part), *part.shape[1:])])
            parts.append(self._run(filled)[: len(part)])
        return torch.cat(parts)

    def _run(self, inputs: Tensor) -> Tensor:
        values: Record = {
            name: getattr(self, place) if isinstance(place, str) else place for name, place in self._places.items()
        }
        values |= {"": None, self._input: inputs}
        for step in self._steps:
            run = find(step.node.operator, self._opset)  # not in the step: lambdas cannot be pickled
            assert run is not None, "checked by _steps"
            made = run(*[values[name] for name in step.node.inputs], **step.attributes)
            # Outputs that the function does not return (a mask, indices) are not needed at inference.
            values.update(zip(step.node.outputs, made if isinstance(made, tuple) else (made,), strict=False))
            for name in step.unneeded:
                values.pop(name, None)
        found: Tensor = values[self._output]
        return found


class OnnxTwin(TorchModel):
    """An ONNX model on a PyTorch device; `prepare` returns the preprocessing of batches of some shape and dtype."""

    def __init__(self, original: Model, module: torch.nn.Module, device: str, prepare: Prepare) -> None:
        # Labels may be a column.
        module = torch.nn.Sequential(module, torch.nn.Flatten(0)) if original.outputs == "labels" else module
        super().__init__(module, device=device, outputs=original.outputs, batch_size=original.batch_size)
        self.name, self.classes, self.repeatable = original.name, original.classes, original.repeatable
        self.preprocessing = original.preprocessing
        self._fingerprint = original.fingerprint
        self._prepare = prepare

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def _ready(self, batch: Array) -> Array:
        return np.array(self._prepare(batch)(batch))  # a copy: the module may write into it

    def _ready_tensor(self, batch: Tensor) -> Any:
        like = np.empty((0, *batch.shape[1:]), dtype=str(batch.dtype).removeprefix("torch."))
        return self._prepare(like).on_tensors(batch)


def onnx_as_torch(path: str | Path, output: str | None = None) -> OnnxModule:
    """Return the graph of an ONNX file as a module in evaluation mode, for its scores or the named output."""
    path = Path(path)
    check_file(path)
    graph = read_graph(path, external_files(path))
    outputs = {one.name: one for one in graph.outputs}
    if output is not None and output not in outputs:
        raise InputError(f"model: {path.name} has no output {output!r}; {suggest(output, outputs)}")
    chosen = output or (next(iter(outputs)) if len(outputs) == 1 else find_output(path.name, outputs, None))
    module: OnnxModule = OnnxModule(path.name, graph, chosen).eval()
    return module


def _needed(nodes: Sequence[Node], output: str) -> list[Node]:
    wanted, kept = {output}, []
    for node in reversed(nodes):
        if wanted & set(node.outputs):
            wanted |= set(node.inputs)
            kept.append(node)
    return kept[::-1]


def _steps(name: str, nodes: list[Node], opset: int, lasting: set[str]) -> Iterator[_Step]:
    found = {node.operator: find(node.operator, opset) for node in nodes}
    operators = {one: operator for one, operator in found.items() if operator is not None}
    missing = sorted(found.keys() - operators.keys())
    if missing:
        raise InputError(
            f"model: {name} has operators that are not known to run on torch ({', '.join(missing)}); run it without "
            "a device, by onnxruntime, or hand over the module of torch that it was made from"
        )
    last = {one: place for place, node in enumerate(nodes) for one in node.inputs}
    for place, node in enumerate(nodes):
        operator, attributes = operators[node.operator], dict(node.attributes)
        if node.operator == "Split":  # the number of parts is the number of outputs
            attributes["outputs"] = len(node.outputs)
            attributes.pop("num_outputs", None)
        try:
            inspect.signature(operator).bind(*node.inputs, **attributes)
        except TypeError as error:
            raise InputError(f"model: {name}: {node.operator} as it stands does not run on torch ({error})") from None
        except ValueError:  # PyTorch's own functions have no signature
            if attributes:
                told = ", ".join(attributes)
                raise InputError(f"model: {name}: {node.operator} with {told} does not run on torch") from None
        unneeded = tuple(one for one in set(node.inputs) - lasting if one and last[one] == place)
        yield _Step(node, attributes, unneeded)


def _digest(*parts: Any) -> str:
    *plain, constants = parts
    digest = hashlib.sha256(repr(plain).encode())
    for name, array in constants.items():
        digest.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode() + array.tobytes())
    return digest.hexdigest()[:16]
