"""Kernels for NVIDIA cards, where there are any; whatever they do, plain operations do too, to the last bit."""

from __future__ import annotations

import logging
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

log = logging.getLogger(__name__)


def kernels_for(tensor: Tensor) -> ModuleType | None:
    """The module of kernels for a tensor on a card; None elsewhere, and where Triton cannot build them."""
    return _kernels() if tensor.device.type == "cuda" else None


@cache
def _kernels() -> ModuleType | None:
    try:
        from testifai.perturb.ops_torch import kernels

        kernels.draw(torch.zeros(1, dtype=torch.int64, device="cuda"), (0, 0), 0, 1, 1, halves=False)
    except Exception as error:  # whatever is missing (a compiler, a driver), plain operations do the work
        log.info("perturbing without Triton: %s", " ".join(str(error).split())[:200])
        return None
    return kernels
