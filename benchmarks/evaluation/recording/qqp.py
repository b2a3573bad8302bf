"""The first paper's fifth task: pairs of questions under four kinds of edits of the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from qqp import AXES, CACHE_MB, INSTALL, SEED, TESTED, encoder_folder, head, pairs, part

import testifai as ta
from evaluation.setting import MissingFileError, Setting
from testifai.models.texts.encoder import EncoderModel
from testifai.present.export import write_grid


def record(out: Path, data: Path, device: str, inputs: int = TESTED) -> None:
    """The grid of the tested pairs, or of the first so many; the head is trained anew and not kept."""
    tested, training = pairs(Setting(out, data).file("data/qqp_dev.csv"), "first")
    folder = encoder_folder()
    if folder is None:
        raise MissingFileError(INSTALL)
    model = EncoderModel(folder, head=head(None, folder, training, device), cache_mb=CACHE_MB, device=device)
    chosen = part(tested, np.arange(min(inputs, len(tested))))
    full = ta.scan(model, chosen, ta.Space(AXES), strategy="full", surrogate="none", seed=SEED)
    write_grid(full, out / "qqp.npz")
