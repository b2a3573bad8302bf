"""Networks of Hugging Face's transformers in a local folder, opened offline and without running code in it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import first_line
from testifai.models.texts.base import Text, Tokenizer, of_equal_length
from testifai.models.torch import move, recording
from testifai.support import optional_imports, validation
from testifai.support.files import is_inside
from testifai.support.fingerprints import fingerprint_files
from testifai.support.types import Record

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


def class_names(config: Any) -> list[str] | None:
    """Return the names in the order of the outputs, None if the config only numbers them."""
    names = [str(config.id2label[number]) for number in range(config.num_labels)]
    return None if names == [f"LABEL_{number}" for number in range(len(names))] else names


# Files that can change the outputs; a model card or a training log does not.
_CONTENT = (".json", ".safetensors", ".bin", ".txt", ".model")
LOCAL = {"local_files_only": True, "trust_remote_code": False}
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
# The libraries store these variables when they are imported.
OFFLINE_FLAGS = (("huggingface_hub.constants", "HF_HUB_OFFLINE"), ("transformers.utils.hub", "_is_offline_mode"))
ATTENTIONS = ("eager", "sdpa")
_loading = threading.RLock()
_NO_LIMIT = 1 << 20  # tokenizers without a limit have a larger one


class NetworkOptions(TypedDict, total=False):
    max_length: int | None
    device: str | None
    threads: int


class TextNetwork:
    """A network and its tokenizer, from texts or pairs of texts to one row each; `threads` are those of one call."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        *,
        optional: str = "",
        max_length: int | None = None,
        device: str | None = None,
        threads: int = 1,
    ) -> None:
        for field, value in (("max_length", max_length), ("threads", threads)):
            if value is not None:
                validation.whole(f"model: {field}", value, least=1)
        self.folder, self.threads = folder, threads
        read_config(folder)
        self._torch = optional_imports.load("torch", extra="text")
        # Folders differ in the precision of their weights, and versions of the library in how they load it.
        self.module = open_network(folder, kind, optional).float().eval()
        if device is not None:
            self.module = move(self.module, device)
        self.device = device or "cpu"
        self.tokenizer, self._takes_types = _tokenizer(folder, max_length)
        if getattr(self.module.config, "pad_token_id", None) is None:
            self.module.config.pad_token_id = -1  # no text has it: every token counts

    def rows(self, batch: Sequence[Text], read: Callable[[Any], Tensor], **options: bool) -> NDArray[np.float32]:
        """Return what `read` extracts from the network's outputs, a row per text; options are the network's."""
        return self._run(batch, lambda outputs: np.asarray(read(outputs).float().cpu().numpy()), **options)

    def traced(
        self, batch: Sequence[Text], read: Callable[[Any], Tensor], layer: str | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return what `read` extracts from the outputs and, from the same pass, a submodule's mean over tokens."""
        widths: list[int] = []
        with recording(self.module, layer, self.folder.name) as activations:

            def both(outputs: object) -> NDArray[np.float32]:
                scores = read(outputs).float().cpu().numpy()
                widths.append(scores.shape[1])
                return np.concatenate([scores, activations(len(scores))], axis=1)

            rows = self._run(batch, both)
        return rows[:, : widths[0]], rows[:, widths[0] :]

    def _run(
        self, batch: Sequence[Text], read: Callable[[Any], NDArray[np.float32]], **options: bool
    ) -> NDArray[np.float32]:
        texts = self.tokenizer(batch)
        parts, order = [], []
        with _torch_threads(self.threads), self._torch.inference_mode():
            for places in of_equal_length([len(text.ids) for text in texts]):
                inputs = {"input_ids": [texts[place].ids for place in places]}
                if self._takes_types:
                    inputs["token_type_ids"] = [texts[place].types for place in places]
                tensors = {name: self._torch.tensor(rows, device=self.device) for name, rows in inputs.items()}
                parts.append(read(self.module(**tensors, **options)))
                order.append(places)
        if not parts:
            # The number of columns is needed even without inputs.
            return self._run([""], read, **options)[:0]
        return np.concatenate(parts)[np.argsort(np.concatenate(order))]


def read_config(folder: Path) -> Record:
    """Return the folder's config.json; InputError if it is not a usable model."""
    if not folder.is_dir():
        raise InputError(f"model: {folder} {'is not a folder' if folder.exists() else 'does not exist'}")
    config = read_json(folder / "config.json")
    if config is None:
        raise InputError(f"model: {folder} is not a model's folder; it has no config.json")
    if not isinstance(config, dict) or "model_type" not in config:
        raise InputError(f"model: {folder / 'config.json'} names no model_type; a folder of transformers does")
    # Newer versions of the library fetch any other attention from the hub by its name here, and run it.
    for found in _attentions(config):
        if found not in ATTENTIONS:
            raise InputError(
                f"model: {folder / 'config.json'} asks for the attention {str(found)[:60]!r}, which may be code from "
                f"elsewhere; accepted: {', '.join(ATTENTIONS)}, or none"
            )
    if (folder / "adapter_config.json").exists():
        raise InputError(
            f"model: {folder} is an adapter, whose base model is elsewhere; merge it into its base model and save that"
        )
    for index in sorted(folder.glob("*.index.json")):  # names the files of weights that are in parts
        table = read_json(index)
        named = table.get("weight_map") if isinstance(table, dict) else None
        for name in set(named.values()) if isinstance(named, dict) else ():
            check_name(index, name)
    return config


def check_name(file: Path, name: object) -> None:
    """Raise InputError if a file of a model's folder names one outside the folder."""
    if not isinstance(name, str) or not is_inside(name):
        raise InputError(f"model: {file}: expected the name of a file in the model's folder, got {str(name)[:200]!r}")


def _attentions(config: object) -> Iterator[object]:
    """Return the implementations of attention that a config names, at any depth."""
    waiting = [config]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            for key, value in part.items():
                if "attn_implementation" in str(key):
                    named = value.values() if isinstance(value, dict) else [value]
                    yield from (one for one in named if one is not None)
                else:
                    waiting.append(value)


@contextlib.contextmanager
def offline() -> Iterator[ModuleType]:
    """Return the library transformers, unable to make requests; the user's settings are restored afterwards."""
    with _loading:  # the settings are those of the whole process
        before = {name: os.environ.get(name) for name in OFFLINE}
        flags = {(module, name): getattr(sys.modules.get(module), name, None) for module, name in OFFLINE_FLAGS}
        os.environ.update(dict.fromkeys(OFFLINE, "1"))
        try:
            transformers = optional_imports.load("transformers", extra="text")
            for module, name in flags:
                if hasattr(sys.modules.get(module), name):
                    setattr(sys.modules[module], name, True)
            yield transformers
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            # A library that was imported in here has read our setting instead of the user's.
            theirs = any(value is not None and value.upper() in {"1", "ON", "YES", "TRUE"} for value in before.values())
            for (module, name), was in flags.items():
                if hasattr(sys.modules.get(module), name):
                    setattr(sys.modules[module], name, theirs if was is None else was)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, None if there is no such file."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise InputError(f"model: cannot read {path} (it is nested too deeply)") from None
    except (OSError, ValueError) as error:
        raise InputError(f"model: cannot read {path} ({first_line(error, 120)})") from None


def fingerprint(folder: Path, parts: Sequence[str] = ("",)) -> str:
    files: dict[str, Path] = {}
    for part in parts:
        inside = sorted(Path(folder, part).iterdir()) if Path(folder, part).is_dir() else []
        files |= {f"{part}/{path.name}": path for path in inside if path.is_file() and path.suffix in _CONTENT}
    return hashlib.sha256(fingerprint_files(files).encode()).hexdigest()


def open_network(folder: Path, kind: str, optional: str) -> Module:
    """Open a folder's network as a class of transformers; parameters named `optional…` may be missing."""
    try:
        with offline() as transformers, _silent(transformers):
            options = {**LOCAL, "weights_only": True, "output_loading_info": True}
            module, info = getattr(transformers, kind).from_pretrained(folder, **options)
    except InputError:  # not installed
        raise
    except Exception as error:  # the library has no exception of its own
        raise InputError(f"model: {folder} cannot be opened as {kind} ({first_line(error)})") from None
    # The library fills what the files lack with random numbers.
    lacking = sorted(name for name in info["missing_keys"] if not (optional and name.startswith(optional)))
    if lacking:
        raise InputError(
            f"model: {folder} has no weights for {lacking[0]} ({len(lacking)} missing in all), which {kind} needs; "
            "an encoder without a classifier needs a head: encoder = 'folder', head = 'head.npz'"
        )
    return module


def _tokenizer(folder: Path, max_length: int | None) -> tuple[Tokenizer, bool]:
    try:
        with offline() as transformers, _silent(transformers):
            found = transformers.AutoTokenizer.from_pretrained(folder, **LOCAL)
        backend = found.backend_tokenizer
    except InputError:  # not installed
        raise
    except Exception as error:
        raise InputError(
            f"model: {folder} has no usable tokenizer (tokenizer.json, or vocab.txt and its like): {first_line(error)}"
        ) from None
    longest = max_length
    if longest is None and found.model_max_length < _NO_LIMIT:
        longest = int(found.model_max_length)
    elif longest is None:
        positions = read_config(folder).get("max_position_embeddings")
        # Some networks (RoBERTa) number positions of tokens starting at 2.
        longest = positions - 2 if isinstance(positions, int) and positions > 2 else None
    return Tokenizer(backend, max_length=longest), "token_type_ids" in found.model_input_names


@contextlib.contextmanager
def _silent(transformers: ModuleType) -> Iterator[None]:
    log = transformers.utils.logging
    level, shown = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.CRITICAL)
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if shown:
            log.enable_progress_bar()


_lock = threading.Lock()
_users = 0
_before = 1


@contextlib.contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    """Run PyTorch with this number of threads; the last of concurrent calls restores the number before."""
    global _users, _before
    torch = optional_imports.load("torch", extra="text")
    with _lock:
        _users += 1
        if _users == 1:
            _before = torch.get_num_threads()
        # It applies to the thread that sets it, and to matrix products in all threads.
        torch.set_num_threads(count)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                torch.set_num_threads(_before)
