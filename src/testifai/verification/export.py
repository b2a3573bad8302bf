"""Handing a region over to a formal verifier: a graph from parameters to scores, and the property as VNN-LIB."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data import rows
from testifai.errors import InputError
from testifai.models.onnx import OnnxModel
from testifai.models.onnx_session import infer, open_session
from testifai.session.assembly import session_of
from testifai.session.session import Session
from testifai.space import Space
from testifai.support import optional_imports
from testifai.support.files import refuse_others, write_bytes
from testifai.support.types import Array, Record
from testifai.support.validation import whole
from testifai.verification.regions import Levels, Region, property_text, region_of
from testifai.verification.symbols import INPUT, WHITE, GraphBuilder, channels_first


def handed(model: OnnxModel, batch: Array, region: Region, *, rounded: bool = False) -> tuple[bytes, bool]:
    """The graph as an ONNX file's content, and whether it multiplies two numbers that vary; of one image."""
    image = channels_first(batch)
    levels = np.rint(image * WHITE) if batch.dtype.kind == "f" else image
    drawing = GraphBuilder(len(region.free), (image.shape[0], image.shape[1], image.shape[2]))
    images = drawing.symbol(levels.astype(np.float64))
    for one in region.ranges:
        parameter = drawing.parameter(region.free.index(one)) if one.varies else one.low
        assert one.perturbation.smooth is not None
        try:
            changed = one.perturbation.smooth(drawing, images, parameter)
        except InputError as error:
            raise InputError(f"region: {one.axis} ({one.perturbation.name}) {error}") from None
        images = drawing.levels(changed, rounded=rounded)
    if batch.dtype.kind == "f":
        images = images * (1 / WHITE)
    ready = model.preprocess_for(batch)
    divisor, shift = ready.affine(batch.dtype)
    if divisor is not None:
        images = images.times(1 / divisor)
    if shift is not None:
        images = images - shift[:, None, None]
    name = images.name
    if ready.layout != "NCHW":
        channels, height, width = image.shape
        shape = {"NHWC": (1, height, width, channels), "flat": (1, image.size), None: batch.shape}[ready.layout]
        last = drawing.write("Transpose", name, perm=[0, 2, 3, 1]) if channels > 1 else name
        name = drawing.write("Reshape", last, drawing.constant(shape, np.int64))
    return _before(model, drawing, name), drawing.bilinear


def _before(model: OnnxModel, drawing: GraphBuilder, image: str) -> bytes:
    """The drawing, up to the image, in front of the model's own nodes."""
    onnx = optional_imports.load("onnx", extra="verify")
    content = onnx.load(model.path)
    graph, helper = content.graph, onnx.helper
    kept = {constant.name for constant in graph.initializer}
    taken = next(node.name for node in graph.input if node.name not in kept)
    element = helper.np_dtype_to_tensor_dtype(model.input_dtype)
    if element == onnx.TensorProto.FLOAT:
        drawing.write("Identity", image, into=taken)
    else:
        drawing.write("Cast", image, into=taken, to=element)
    own = _needed(graph, model.output)
    answer = next(node for node in graph.output if node.name == model.output)
    constants = [one for one in graph.initializer if any(one.name in _reads(node) for node in own)]
    made = helper.make_graph(
        [*drawing.nodes, *own],
        graph.name or "perturbed",
        [helper.make_tensor_value_info(INPUT, onnx.TensorProto.FLOAT, [1, drawing.parameters])],
        [helper.make_tensor_value_info(model.output, answer.type.tensor_type.elem_type, [1, model.classes])],
        [*drawing.constants, *constants],
    )
    made.sparse_initializer.extend(graph.sparse_initializer)
    whole = helper.make_model(
        made, producer_name="testifai", opset_imports=content.opset_import, functions=content.functions
    )
    whole.ir_version = max(4, content.ir_version)
    try:
        serialised: bytes = whole.SerializeToString()
    except ValueError:
        raise InputError(f"model: {model.name} is too large for one ONNX file (2 GB)") from None
    return serialised


def _needed(graph: Any, output: str) -> list[Any]:
    wanted, chosen = {output}, list[Any]()
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted |= _reads(node)
            chosen.append(node)
    return chosen[::-1]


def _reads(node: Any) -> set[str]:
    """The names that a node reads, those within its branches and loops among them."""
    inner = [one for attribute in node.attribute for one in (attribute.g, *attribute.graphs)]
    return set(node.input).union(*(_reads(one) for graph in inner for one in graph.node))


POINTS = 100
GRAPH, PROPERTY, PROPERTY_2, README = "model.onnx", "property.vnnlib", "property-2.0.vnnlib", "README.md"
TITLE = "# Does the answer to input"


@dataclass(frozen=True)
class GraphAgreement:
    points: int
    same: int  # of which the answer was the same
    difference: float  # of a score, the largest
    margin: float  # between the label and the best other class by perturbed inference, the smallest

    def __str__(self) -> str:
        return (
            f"at {self.points} points of the region the graph answers as perturbed inference at {self.same}; scores "
            f"differ by {self.difference:.2g} at most, the label leads by {self.margin:.2g} at least"
        )


@dataclass(frozen=True)
class Handover:
    """What a verifier is handed: the graph of an image's perturbations and the model, and the property."""

    graph: bytes
    region: Region
    index: int
    label: int
    clean: int  # the answer to the image as it is
    classes: int
    rounded: bool
    bilinear: bool  # whether the graph multiplies two numbers that vary, which not every verifier takes
    agreement: GraphAgreement

    def __repr__(self) -> str:
        return f"<Handover of input {self.index}, class {self.label}, {self.region!r}: {self.agreement}>"

    def property(self, version: str = "1.0") -> str:
        """The property as VNN-LIB of a version, negated: `sat` means a counterexample."""
        about = f"the answer to input {self.index} stays class {self.label}"
        return property_text(self.region.free, self.label, self.classes, version=version, about=about)

    def notes(self) -> list[str]:
        found = [str(self.agreement)]
        if self.clean != self.label:
            found.append(f"the clean image is answered {self.clean} already: a verifier will find a counterexample")
        if self.rounded:
            found.append("pixels are rounded in the graph (Floor): exact, but most verifiers refuse it")
        else:
            found.append("pixels are not rounded in the graph: a proof is about levels before rounding")
        if self.bilinear:
            found.append(
                "the graph multiplies two numbers that vary: a verifier must know products; a space that applies the "
                "multiplying perturbation first needs none"
            )
        return found

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """The files that a verifier takes, and how to call one, in a folder; other files of these names are kept."""
        into = Path(folder)
        contents = {
            GRAPH: self.graph,
            PROPERTY: self.property().encode(),
            PROPERTY_2: self.property("2.0").encode(),
            README: self._readme().encode(),
        }
        refuse_others(into, contents, README, TITLE.encode())
        into.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            write_bytes(into / name, content)
        return [into / name for name in contents]

    def as_dict(self) -> Record:
        ranges = {one.axis: [one.low, one.high] for one in self.region.ranges}
        return {
            "input": self.index, "label": self.label, "clean_answer": self.clean, "classes": self.classes,
            "region": ranges, "inputs": [one.axis for one in self.region.free], "rounded": self.rounded,
            "bilinear": self.bilinear, "agreement": asdict(self.agreement),
        }  # fmt: skip

    def _readme(self) -> str:
        lines = [
            f"{TITLE} {self.index} stay class {self.label}?",
            "",
            *(f"- {one}" for one in self.region.ranges),
            *(f"- {note}" for note in self.notes()),
            "",
            f"`{GRAPH}` takes {', '.join(one.axis for one in self.region.free)} and gives {self.classes} scores. "
            f"`{PROPERTY}` (VNN-LIB 1.0) and `{PROPERTY_2}` (2.0) say what a counterexample is: `unsat` is a proof, "
            "`sat` comes with parameters at which another class scores at least as much.",
            "",
            f"    python abcrown.py --config CONFIG.yaml --onnx_path {GRAPH} --vnnlib_path {PROPERTY}",
            f"    Marabou {GRAPH} {PROPERTY}",
        ]
        return "\n".join(lines) + "\n"


def hand_over(
    model: Any,
    data: Any,
    space: Space,
    *,
    index: int,
    region: str | None = None,
    levels: Levels | None = None,
    rounded: bool = False,
    oracle: Any = None,
) -> Handover:
    """The hand-over of a region of a space for one input of the data.

    Args:
        model: an .onnx file, or what `ta.scan` takes
        data: what `ta.scan` takes: (inputs, labels), a path, a data set, a frame
        space: its axes
        index: the number of the input
        region: a query whose severities are a box, such as "brightness <= 3 and contrast <= 2"
        levels: the range of an axis's parameter itself, {"brightness": (0, 35)}
        rounded: whether the graph rounds pixels as perturbations do
        oracle: "consistency": the answer is to stay that to the clean input; None: the label
    """
    options = {} if oracle is None else {"oracle": oracle}
    session = session_of(model, data, space, **options)
    return of_session(session, index=index, region=region, levels=levels, rounded=rounded)


def of_session(
    session: Session, *, index: int, region: str | None = None, levels: Levels | None = None, rounded: bool = False
) -> Handover:
    number = whole("input", index, least=0, most=len(session.data.inputs) - 1)
    chosen = region_of(session.space, region, levels)
    model = _scoring(session.model)
    if not session.oracle.decides_classes:
        raise InputError(
            f"oracle: {session.oracle.name} judges no class; label and consistency are what a verifier gets"
        )
    batch = np.asarray(rows(session.data.inputs, np.array([number])))
    clean = np.asarray(model(batch))[0]
    labels = session.subject.labels if session.oracle.needs_labels else None
    if labels is not None and labels.ndim != 1:
        raise InputError("labels: an input with several is not accepted; one class is what a verifier is asked about")
    answer = int(clean.argmax())
    label = answer if labels is None else int(labels[number])
    graph, bilinear = handed(model, batch, chosen, rounded=rounded)
    agreement = _compared(model, graph, batch, chosen, label)
    return Handover(graph, chosen, number, label, answer, len(clean), rounded, bilinear, agreement)


def perturbed_scores(
    model: OnnxModel, batch: Array, region: Region, points: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """The model's scores for the one image of a batch, perturbed as a run would, at each of some points of a region."""
    scores = []
    for point in points:
        image = batch
        for one in region.ranges:
            parameter = float(point[region.free.index(one)]) if one.varies else one.low
            chosen = replace(one.perturbation, severities=(one.perturbation.severities[0], parameter))
            image = np.asarray(chosen.apply(image, 1))
        scores.append(model(image))
    return np.concatenate(scores)


def _compared(model: OnnxModel, graph: bytes, batch: Array, region: Region, label: int) -> GraphAgreement:
    points = region.points(POINTS)
    ours, session = perturbed_scores(model, batch, region, points), open_session(model.path, 1, graph)
    theirs = np.concatenate([infer(session, [model.output], point[None], model.name)[0] for point in points])
    others = np.delete(ours, label, axis=1).max(axis=1)
    return GraphAgreement(
        len(points),
        int((ours.argmax(axis=1) == theirs.argmax(axis=1)).sum()),
        float(np.abs(ours - theirs).max()),
        float((ours[:, label] - others).min()),
    )


def _scoring(model: Any) -> OnnxModel:
    if not isinstance(model, OnnxModel) or model.outputs != "scores" or model.classes is None:
        raise InputError(
            f"model: {model.name} is no ONNX file that scores classes, which is what verifiers take; export it as one"
        )
    if model.input_dtype.kind != "f":
        raise InputError(f"model: {model.name} takes {model.input_dtype}; one that takes floats can be verified")
    if model.input_shape and model.input_shape[0] not in (None, 1):
        raise InputError(
            f"model: {model.name} takes {model.input_shape[0]} inputs at a time; export it for one, or for any number"
        )
    return model
