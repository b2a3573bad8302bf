"""What `select` does: run the model over unlabelled data, choose what to label, keep all that the estimate will need.

A selection is the frame (what is known of every example), the technique and the seed. What was drawn is not kept but
drawn again: plans are deterministic, so the same labels always lead to the same next question and the same estimate.
"""

from __future__ import annotations

import hashlib
import io
import json
import string
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from testifai import models
from testifai.data import Data, LazyInputs
from testifai.engine.backend import hire
from testifai.errors import InputError
from testifai.operational import base, check_tests, resolve
from testifai.operational import frame as make_frame
from testifai.operational.auxiliary import Observed, check_training, observe, risk_of
from testifai.operational.base import FEATURES, SURPRISE, Flags, Frame, Indices, Sample, Technique, draw, needs_of
from testifai.operational.label_file import Classes
from testifai.spec.options import ScanOptions
from testifai.support.fingerprints import fingerprint_data
from testifai.support.types import Floats, Record, RecordLike

FORMAT = 1
SUFFIX = ".selection.npz"


@dataclass(frozen=True, eq=False)
class LabelSelection:
    described: RecordLike  # the technique's name under `use`, with its options
    tests: int
    seed: int
    frame: Frame
    classes: Classes
    confidence: Floats | None = None
    model: str = ""  # fingerprint
    data: str = ""  # fingerprint
    first: Indices | None = None  # what was asked first, to notice when a plan can no longer be repeated

    def __repr__(self) -> str:
        drawn = f"{self.tests:,} of {self.frame.size:,} examples"
        return f"<LabelSelection of {drawn} by {self.described['use']}, seed {self.seed}: {self.tag}>"

    @cached_property
    def technique(self) -> Technique:
        return make_technique(self.described)

    @cached_property
    def tag(self) -> str:
        """Eight letters that tell this selection from others; spreadsheets would change what looks like a number."""
        digest = hashlib.blake2b(json.dumps(self._facts(), sort_keys=True).encode(), digest_size=8)
        for array in (self.frame.risk, self.frame.features, self.frame.predicted):
            if array is not None:
                digest.update(np.ascontiguousarray(array).data)
        number = int.from_bytes(digest.digest(), "big")
        return "".join(string.ascii_lowercase[number // 26**place % 26] for place in range(8))

    def opinion(self, example: int) -> tuple[str, float | None]:
        assert self.frame.predicted is not None
        predicted = self.classes.text(int(self.frame.predicted[example]))
        return predicted, None if self.confidence is None else float(self.confidence[example])

    def replay(self, failed: Mapping[int, bool]) -> LabellingProgress:
        """Draw again with the outcomes that are known; an unknown one ends what can be told."""
        batches: list[Indices] = []

        def label(batch: Indices) -> Flags:
            batches.append(batch)
            return np.array([failed.get(int(example), False) for example in batch], bool)

        sample = draw(self.technique, self.frame, self.tests, np.random.default_rng(self.seed), label)
        if self.first is not None and not np.array_equal(batches[0], self.first):
            raise InputError(
                "selection: this version of testifai draws other examples than the one that made the selection; "
                "use that version, or select again"
            )
        known = np.array([int(example) in failed for example in sample.selected], bool)
        labelled = len(known) if known.all() else int(np.argmin(known))
        # A batch is asked for once all earlier ones are answered; what the plan would want later is not known yet.
        ends = np.cumsum([len(batch) for batch in batches])
        asked = batches[: int(np.searchsorted(ends, labelled, side="right")) + 1]
        return LabellingProgress(tuple(asked), sample.first(labelled), len(sample.selected))

    def save(self) -> bytes:
        """The selection as an npz file: numbers and text, the same bytes for the same selection."""
        arrays = {
            "facts": np.array(json.dumps(self._facts(), sort_keys=True)),
            "risk": self.frame.risk,
            "features": self.frame.features,
            "predicted": self.frame.predicted,
            "confidence": self.confidence,
            "first": self.first,
        }
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **{name: array for name, array in arrays.items() if array is not None})  # type: ignore[arg-type]
        return buffer.getvalue()

    def _facts(self) -> Record:
        return {
            "format": FORMAT, "technique": dict(self.described), "tests": self.tests, "seed": self.seed,
            "size": self.frame.size, "classes": self.classes.names, "class_count": self.classes.count,
            "model": self.model, "data": self.data,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class LabellingProgress:
    batches: tuple[Indices, ...]  # examples that can be asked for by now; the last batch may be partly labelled
    sample: Sample  # draws that are labelled without a gap
    draws: int  # in the end

    @property
    def complete(self) -> bool:
        return len(self.sample.selected) == self.draws

    def new_in(self, batch: int) -> list[int]:
        """The examples that a batch asks for first, each once, in drawing order."""
        earlier = {int(example) for one in self.batches[:batch] for example in one}
        return [example for example in dict.fromkeys(self.batches[batch].tolist()) if example not in earlier]


def make_technique(described: RecordLike) -> Technique:
    options = {name: value for name, value in described.items() if name != "use"}
    return resolve(described["use"], **options)


def choose(
    model: Any,
    data: Data,
    *,
    technique: str | RecordLike = "balanced",
    tests: int = 200,
    seed: int = 0,
    classes: tuple[str, ...] | None = None,
    training: Data | None = None,
    layer: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | str | None = None,
    executor: Any = None,
) -> LabelSelection:
    """Run the model and choose examples to label; existing labels are not used.

    `classes` names the model's classes if neither the data nor the model do. `training` and `layer` are for the
    techniques that measure surprise (layer also for ces); `progress` gets (inputs done, inputs in total). The choice
    does not depend on `workers` and `executor`.
    """
    described = {"use": technique} if isinstance(technique, str) else dict(technique)
    made = make_technique(described)
    check_tests(tests, len(data))
    needs = needs_of(made)
    if needs in SURPRISE:
        check_training(made, training)
    else:
        training = None
    model = models.wrap(model, data.schema)
    check_names(classes, model.classes)
    total = len(data) + (0 if training is None else len(training))
    show = progress or (lambda done, total: None)
    placed = ScanOptions.of({"workers": workers, "executor": executor}).placed()
    with closing(hire(*placed, model)) as hired:
        observed = partial(observe, model, layer=layer, workers=hired)
        seen = observed(data.inputs, traces=needs in (FEATURES, *SURPRISE), progress=lambda done: show(done, total))
        seen_training = None
        if training is not None:
            seen_training = observed(training.inputs, traces=True, progress=lambda done: show(len(data) + done, total))
    risk = risk_of(made, seen, seen_training)
    features = seen.traces if needs == FEATURES else None
    selection = LabelSelection(
        described, tests, seed, make_frame(risk=risk, features=features, predicted=seen.predicted),
        name_classes(model, data, seen, classes), seen.confidence,
        model.fingerprint, data_fingerprint(data),
    )  # fmt: skip
    base.warn_of_doubts(made, selection.frame)
    first = selection.replay({}).batches[0]
    return replace(selection, first=first)


def read(path: Path) -> LabelSelection:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        facts = json.loads(str(arrays["facts"]))
        if facts["format"] != FORMAT:
            raise InputError(f"{path.name}: was made by another version of testifai; use that one, or select again")
        names = facts["classes"]
        return LabelSelection(
            dict(facts["technique"]), facts["tests"], facts["seed"],
            Frame(facts["size"], arrays.get("risk"), arrays.get("features"), arrays.get("predicted")),
            Classes(None if names is None else tuple(names), facts["class_count"]),
            arrays.get("confidence"), facts["model"], facts["data"], arrays.get("first"),
        )  # fmt: skip
    except FileNotFoundError:
        raise InputError(f"selection: {path} does not exist") from None
    except InputError:
        raise
    except Exception:  # whatever zip, NumPy and JSON say of bytes that somebody changed
        raise InputError(f"selection: {path} is not a file that testifai label select made") from None


def name_classes(model: models.Model, data: Data, seen: Observed, given: tuple[str, ...] | None) -> Classes:
    """How the model's classes are written: as told, as the model calls them, or as the data do."""
    values = model.class_values
    count = seen.classes or model.classes
    names = given or (tuple(str(value) for value in values) if values is not None else data.classes)
    if names is None:
        return Classes(None, count)
    check_names(names, count if given else max(count or 0, int(seen.predicted.max()) + 1), exactly=bool(given))
    return Classes(names, len(names))


def check_names(names: tuple[str, ...] | None, count: int | None, *, exactly: bool = True) -> None:
    if names is None:
        return
    if len(set(names)) < len(names):
        raise InputError("classes: a name stands there twice; every class needs its own")
    if count is not None and (len(names) < count or (exactly and len(names) != count)):
        raise InputError(f"classes: {len(names)} names for a model with {count} classes; one name per class is needed")


def data_fingerprint(data: Data) -> str:
    """Fingerprint of all inputs alone: labels that are added later do not change it."""
    inputs = data.inputs
    return fingerprint_data(inputs, identity=inputs.whole_identity() if isinstance(inputs, LazyInputs) else None)
