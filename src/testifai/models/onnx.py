"""ONNX files, run by onnxruntime on the CPU."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import model_validator

from testifai.errors import InputError, suggest
from testifai.models import onnx_graph, onnx_session
from testifai.models.base import Model
from testifai.models.detection.heads import HEADS
from testifai.models.detection.onnx import AnySizeError, Fit, OnnxDetector
from testifai.models.onnx_session import GraphOutputs, NoUsableOutputError, OnnxFile, infer
from testifai.models.outputs import as_rows
from testifai.models.preprocess import ImagePart, PerChannel, Preprocess, Scale, guess
from testifai.models.texts.onnx import OnnxTextModel
from testifai.support import optional_imports
from testifai.support.batches import Batch, are_images, several_sizes
from testifai.support.options_base import Count, File, Megabytes, Words
from testifai.support.remote import RemoteFolder
from testifai.support.types import Array, Record

DETECTION = ("size", "confidence", "nms", "fit", "bgr", "classes")  # options of detectors alone
SCORES = ("layout", "output", "features")  # options of other models alone
_LISTED = 30  # most tensors that a message lists


class OnnxModel(OnnxFile):
    """A model in an ONNX file with one input.

    By default scores are the 2-D `output` of floats (by name, then by the fewest columns), else labels a 1-D output of
    integers, and `features` are found by name. `layout` and `scale` are guessed from a batch (see `preprocess.guess`).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        layout: str | None = None,
        scale: Scale | None = None,
        mean: PerChannel | None = None,
        std: PerChannel | None = None,
        output: str | None = None,
        features: str | None = None,
        threads: int = 1,
        batch_size: int | None = None,
    ) -> None:
        told = {"layout": layout, "scale": scale, "mean": mean, "std": std, "output": output}
        super().__init__(path, told, features=features, threads=threads, batch_size=batch_size)
        self._found = found = GraphOutputs.find(self.name, self._session, output, features)
        self.output, self.features_output = found.output, found.features
        self.outputs, self.classes = found.kind, found.classes
        self.batch_size = (self.input_shape[0] if self.input_shape else None) or batch_size
        # Checks the options.
        Preprocess(layout, scale, mean, std, np.float32 if self.input_dtype.kind == "O" else self.input_dtype)
        self._prepared: dict[tuple[tuple[int, ...], str], Preprocess] = {}
        self._layered: Record = {}

    def __call__(self, batch: Batch) -> Array:
        return self._found.flat(self._run(self._session, [self.output], batch)[0])

    def features(self, batch: Batch) -> Array:
        if self.features_output is None:
            raise InputError(f"{self.name}: has no features output; name one with features = (see its outputs)")
        features = self._run(self._session, [self.features_output], batch)[0]
        return features.reshape(len(features), -1)

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        """Return outputs and the activations of a layer, any tensor of the graph; by default the features output."""
        layer = self.features_output if layer is None else layer
        if layer is None:
            known = _near("", onnx_graph.tensor_names(self.path.read_bytes()))
            raise InputError(f"layer: {self.name} has no features output; name a tensor of its graph ({known})")
        if layer not in self._layered:
            self._layered[layer] = self._open_with(layer)
        outputs, activations = self._run(self._layered[layer], [self.output, layer], batch)
        return self._found.flat(outputs), as_rows(activations, len(batch), layer)

    def preprocess_for(self, batch: Array) -> Preprocess:
        key = (batch.shape[1:], batch.dtype.str)
        if key in self._prepared:
            return self._prepared[key]
        layout, scale = self._options["layout"], self._options["scale"]
        expects = self.input_shape or None
        if layout is None and expects is not None:
            found = guess(expects, self.input_dtype, batch.shape)
            layout = found.layout
            scale = found.scale if scale is None else scale
        elif scale is None:
            scale = "unit" if self.input_dtype.kind == "f" and batch.ndim > 2 else "raw"
        mean, std = self._options["mean"], self._options["std"]
        self._prepared[key] = made = Preprocess(layout, scale, mean, std, self.input_dtype, expects)
        return made

    def placed(self, device: str) -> Model:
        """Return this model on a PyTorch device, run by PyTorch; InputError if an operator is not supported there."""
        for library in ("torch", "onnx"):
            optional_imports.load(library, extra="torch")
        from testifai.models.onnx_torch import OnnxTwin, onnx_as_torch

        return OnnxTwin(self, onnx_as_torch(self.path, self.output), device, self.preprocess_for)

    def _open_with(self, layer: str) -> Any:
        if layer in [node.name for node in self._session.get_outputs()]:
            return self._session
        content = self.path.read_bytes()
        names = onnx_graph.tensor_names(content)
        if layer not in names:
            known = suggest(layer, names) if len(names) <= _LISTED else _near(layer, names)
            raise InputError(f"layer: {self.name} makes no tensor {layer!r}; {known}")
        return onnx_session.open_session(self.path, self._options["threads"], onnx_graph.with_output(content, layer))

    def _run(self, session: Any, names: list[str], batch: Batch) -> list[Array]:
        return infer(session, names, self._ready(batch), self.name)

    def _ready(self, batch: Batch) -> Array:
        if self.input_dtype.kind == "O":
            texts = np.asarray(batch, dtype=object)
            return texts.reshape(len(texts), 1) if len(self.input_shape) == 2 else texts
        if are_images(batch):
            raise InputError(f"{self.name}: {several_sizes(batch)}")
        if isinstance(batch, list):
            hint = "; a text model needs tokenizer = 'tokenizer.json'" if self.input_dtype.kind == "i" else ""
            raise InputError(f"{self.name}: inputs are texts; the model takes {self.input_dtype} arrays{hint}")
        return np.asarray(self.preprocess_for(batch)(batch))


class OnnxPart(ImagePart):
    """An ONNX file: with the tokenizer of a text model, one that reads texts; with a head, one that finds boxes."""

    onnx: File
    """The model file."""
    output: str | None = None
    """The output that answers; default: what looks like scores, else like labels."""
    features: str | None = None
    """The output that describes an input in numbers; default: looked for by name."""
    threads: Count | None = None
    """Threads of one inference; default: 1."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""
    tokenizer: File | None = None
    """Of a text model: its `tokenizer.json`."""
    max_length: Count | None = None
    """Of a text model: tokens after which a text is cut off."""
    cache_mb: Megabytes | None = None
    """Of a text model: memory for the scores of texts that come again; default: 256."""
    head: str | None = None
    """Of a detector: how its outputs are read; default: what their shapes tell."""
    size: list[int] | None = None
    """Of a detector: [height, width] it was made for, where the graph leaves that open."""
    confidence: float | None = None
    """Of a detector: the least score of a box that counts; default: 0.01."""
    nms: float | None = None
    """Of a detector: the overlap from which the less sure of two boxes of a class is left out."""
    fit: Fit | None = None
    """Of a detector: how an image comes to its size; default: as its head has it."""
    bgr: bool | None = None
    """Of a detector: whether it takes blue first; default: as its head has it."""
    classes: Words | None = None
    """Of a detector: what its classes are called, in their order."""

    FILES: ClassVar = ("onnx", "tokenizer")
    suffixes: ClassVar = (".onnx",)

    @classmethod
    def companions(cls, path: Path, inputs: str) -> dict[str, Path]:
        if inputs not in ("texts", "pairs") or not path.is_file():
            return {}
        tokenizer = path.with_name("tokenizer.json")
        if not tokenizer.is_file():
            raise InputError(f"model: {path} needs a tokenizer for texts; put its tokenizer.json next to it")
        return {"tokenizer": tokenizer}

    @model_validator(mode="after")
    def _of_images_or_of_texts(self) -> OnnxPart:
        told, texts = self.told(), self.tokenizer is not None
        for name in (*ImagePart.model_fields, "head") if texts else ("max_length", "cache_mb"):
            if name in told:
                raise ValueError(f"onnx takes {name} {'without' if texts else 'with'} a tokenizer only")
        for name in DETECTION if self.head is None else SCORES:
            if name in told:
                wanted = "with" if self.head is None else "without"
                raise ValueError(f"onnx takes {name} {wanted} a head only ({', '.join(HEADS)})")
        return self

    def files(self, folder: Path) -> list[Path | RemoteFolder]:
        found = super().files(folder)
        with suppress(InputError, OSError):  # loading a file that cannot be read reports why
            found += onnx_session.external_files(self.told(folder)["onnx"]).values()
        return found

    def load(self, folder: Path) -> Model:
        options = self.told(folder)
        path = options.pop("onnx")
        if self.tokenizer is not None:
            return OnnxTextModel(path, **options)
        if self.head is not None:
            return OnnxDetector(path, **options)
        try:
            return OnnxModel(path, **options)
        except NoUsableOutputError as error:
            problem = error
        if options.keys() & set(SCORES):
            raise problem
        try:
            return OnnxDetector(path, **options)
        except AnySizeError:
            raise
        except InputError as error:
            raise InputError(f"{problem}; nor is it a detector: {str(error).removeprefix('model: ')}") from None


def _near(word: str, names: Sequence[str]) -> str:
    """Return the nearest few of many names and the last ones, which traces are mostly taken from."""
    close = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    return f"{len(names)} known, such as {', '.join([*close, *names[-5:]])}"
