"""PyTorch modules (needs the extra `torch`)."""

from __future__ import annotations

import copy
import importlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import MOST, are_records, from_records
from testifai.errors import InputError, suggest
from testifai.models.base import DeviceModel, Model, Outputs, first_line
from testifai.models.outputs import as_rows
from testifai.models.preprocess import ImagePart, PerChannel, Preprocess, Scale
from testifai.support import optional_imports, validation
from testifai.support.batches import Batch, are_images
from testifai.support.fingerprints import CodeFingerprint, fingerprint_code
from testifai.support.options_base import Count, File
from testifai.support.types import Array
from testifai.support.user_code import import_object

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


class TorchModel(DeviceModel):
    """A module in evaluation mode, without gradients.

    Images of integers, (N, H, W) or (N, H, W, C), are passed as float32 NCHW in 0 … 1 unless `layout`, `scale`, `mean`
    or `std` are given, or `pretrained_cfg` of the module has mean and std; other inputs are unchanged.
    """

    thread_safe = False  # torch spreads one call over its own threads

    def __init__(
        self,
        module: Module,
        *,
        layout: str | None = None,
        scale: Scale | None = None,
        mean: PerChannel | None = None,
        std: PerChannel | None = None,
        device: str | None = None,
        threads: int | None = None,
        outputs: Outputs | None = None,
        batch_size: int | None = None,
        version: str | None = None,
    ) -> None:
        torch = optional_imports.load("torch", extra="torch")
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"model: {type(module).__name__} is not a torch.nn.Module")
        if threads is not None:
            torch.set_num_threads(validation.whole("model: threads", threads, least=1))
        self.module = module if device is None else move(module, device)
        tensor = next(self.module.parameters(), None)
        tensor = next(self.module.buffers(), None) if tensor is None else tensor
        self.device = tensor.device if tensor is not None else torch.device(device or "cpu")
        if mean is None and std is None:
            mean, std = _trained_with(module)
        told = {"layout": layout, "scale": scale, "mean": mean, "std": std}
        self.preprocessing = {option: value for option, value in told.items() if value is not None}
        self.name = type(module).__name__
        self.outputs, self.batch_size, self.version = outputs, batch_size, version
        self._images = Preprocess(layout or "NCHW", "unit" if scale is None else scale, mean, std)
        given = (layout, scale, mean, std) != (None, None, None, None)
        self._others = Preprocess(layout, scale, mean, std) if given else None

    @cached_property
    def _code(self) -> CodeFingerprint:
        return fingerprint_code(self.module, self.version)

    def __call__(self, batch: Batch) -> Array:
        torch = optional_imports.load("torch", extra="torch")
        inputs: object = batch
        if are_images(batch):
            inputs = [torch.from_numpy(self._ready(image[None]))[0].to(self.device) for image in batch]
        elif not isinstance(batch, list):
            inputs = torch.from_numpy(self._ready(batch)).to(self.device)
        with self.answering(), torch.inference_mode():
            made = self.module(inputs)
            if are_records(made):
                return from_records(made, self.name, MOST)
            outputs = self._checked(made)
        return np.asarray(outputs.cpu().numpy())

    @property
    def place(self) -> str:
        return str(self.device)

    def placed(self, device: str) -> TorchModel:
        torch = optional_imports.load("torch", extra="torch")
        if torch.device(device) == self.device:
            return self
        twin = copy.copy(self)
        twin.module = move(copy.deepcopy(self.module), device)
        twin.device = torch.device(device)
        return twin

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Keep the module in evaluation mode; each of its parts then returns to the mode that it was in."""
        parts = self.module.modules()
        training = [part for part in parts if getattr(part, "training", False)]  # frozen scripts have no mode
        if training:
            self.module.eval()
        try:
            yield
        finally:
            for part in training:
                part.training = True

    def on_tensors(self, batch: Tensor, precision: str = "float32") -> Tensor:
        torch = optional_imports.load("torch", extra="torch")
        mixed = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=precision == "bf16")
        with torch.inference_mode(), mixed:
            return self._checked(self.module(self._ready_tensor(batch)))

    def _checked(self, outputs: object) -> Tensor:
        """Return the outputs if they are a tensor; as float32, because NumPy has no bfloat16."""
        if not isinstance(outputs, optional_imports.load("torch", extra="torch").Tensor):
            raise InputError(
                f"{self.name}: model returned {type(outputs).__name__}; a tensor (N,) or (N, d) is accepted"
            )
        return outputs.float() if outputs.is_floating_point() else outputs

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        """Return outputs and, from the same pass, the activations of a submodule by its name, such as "features.3"."""
        with recording(self.module, layer, self.name) as rows:
            outputs = self(batch)
            return outputs, rows(len(batch))

    def _ready(self, batch: Array) -> Array:
        prepare = self._preparation(batch.ndim, whole=batch.dtype.kind in "iu")
        if prepare is not None:
            return np.asarray(prepare(batch))
        return np.array(batch, dtype=np.float32 if batch.dtype.kind == "f" else batch.dtype)

    def _ready_tensor(self, batch: Tensor) -> Tensor:
        floats = batch.is_floating_point()
        prepare = self._preparation(batch.ndim, whole=not floats)
        if prepare is not None:
            return prepare.on_tensors(batch)
        # A copy: the module may write into it.
        return batch.to(optional_imports.load("torch", extra="torch").float32 if floats else batch.dtype, copy=True)

    def _preparation(self, axes: int, *, whole: bool) -> Preprocess | None:
        """Return the preprocessing of a batch, which only images of integers have without options."""
        return self._images if whole and axes in (3, 4) else self._others


@contextmanager
def recording(module: Module, layer: str | None, name: str) -> Iterator[Callable[[int], NDArray[np.float32]]]:
    """Record a submodule's output; the function returns the last one in this thread, as one row per input."""
    torch = optional_imports.load("torch", extra="torch")
    modules = {name: module for name, module in module.named_modules() if name}
    if layer is None or layer not in modules:
        raise InputError(f"layer: {layer!r} is not a submodule of {name}; {suggest(layer, modules)}")
    seen: list[Any] = []
    mine = threading.get_ident()

    def note(_module: object, _inputs: object, made: object) -> None:
        if threading.get_ident() == mine:  # other threads may be using the same network
            seen.append(made[0] if isinstance(made, tuple) and made else made)

    def last(inputs: int) -> NDArray[np.float32]:
        made = seen[-1] if seen else None
        seen.clear()
        if not isinstance(made, torch.Tensor):
            raise InputError(f"layer: {layer!r} of {name} gave no tensor; choose a submodule that does")
        return as_rows((made.float() if made.is_floating_point() else made).cpu().numpy(), inputs, layer)

    hook = modules[layer].register_forward_hook(note)
    try:
        yield last
    finally:
        hook.remove()


def _trained_with(module: Module) -> tuple[PerChannel | None, PerChannel | None]:
    """Return mean and standard deviation of the images that a module of timm was trained on, if it stores them."""
    config = getattr(module, "pretrained_cfg", None)
    config = config if isinstance(config, Mapping) else getattr(config, "__dict__", {})
    mean, std = config.get("mean"), config.get("std")
    return (list(mean), list(std)) if mean is not None and std is not None else (None, None)


class TorchPart(ImagePart):
    """A PyTorch module that a user-defined factory makes, and its weights."""

    torch: str
    """Your factory of the module, `package.module:name`; or the module itself."""
    weights: File | None = None
    """Its weights, a `.pt` or `.safetensors` file; code in it is never run."""
    device: str | None = None
    """Where it runs, such as `cuda`; default: where the module is."""
    threads: Count | None = None
    """Threads that torch uses; default: its own choice."""
    outputs: Outputs | None = None
    """What its outputs are, where that cannot be seen."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""
    version: str | None = None
    """A word that tells this model from another where its code cannot."""

    FILES: ClassVar = ("weights",)
    CODE: ClassVar = ("torch",)

    def load(self, folder: Path) -> Model:
        options = self.told(folder)
        path, file = options.pop("torch"), options.pop("weights", None)
        torch = optional_imports.load("torch", extra="torch")
        module = import_object(path, folder=folder, field="model.torch")
        if not isinstance(module, torch.nn.Module):
            try:
                module = module()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise InputError(f"model.torch: {path!r}() failed: {type(error).__name__}: {error}") from error
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"model.torch: {path!r} made a {type(module).__name__}; a torch.nn.Module is needed")
        if file is not None:
            state = _read_weights(file)
            try:
                module.load_state_dict(state)
            except (RuntimeError, TypeError, AttributeError) as error:
                raise InputError(
                    f"model.weights: {file} does not fit the module of {path!r} ({first_line(error)})"
                ) from None
        return TorchModel(module, **options)


def _read_weights(file: Path) -> Any:
    torch = optional_imports.load("torch", extra="torch")
    if not file.is_file():
        raise InputError(
            f"model.weights: {file} does not exist" if not file.exists() else f"model.weights: {file} is not a file"
        )
    try:
        if file.suffix == ".safetensors":
            return importlib.import_module("safetensors.torch").load_file(file)
        state = torch.load(file, map_location="cpu", weights_only=True)
    except ImportError:
        raise InputError(
            "model.weights: a .safetensors file needs the package safetensors (pip install safetensors)"
        ) from None
    except Exception as error:
        raise InputError(f"model.weights: {file} is not a file of weights alone ({first_line(error, 120)})") from None
    return state.get("state_dict", state) if isinstance(state, dict) else state


def move(module: Module, device: str) -> Module:
    try:
        return module.to(device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"model: device {device!r} cannot be used ({first_line(error, 120)})") from None
