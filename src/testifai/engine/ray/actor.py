"""What runs on the nodes: an inquiry in memory, put to its model job by job."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import Any

from testifai.engine.workers import Inquiry
from testifai.models.base import Model
from testifai.support.version import VERSION


class Actor:
    """One worker: told where the driver stands, given an inquiry once, then job after job."""

    def __init__(self, folder: str, path: list[str]) -> None:
        # Relative files and modules of the user's are looked for where the driver found them, if that is reachable.
        with suppress(OSError):
            os.chdir(folder)
        sys.path.extend(entry for entry in path if entry not in sys.path)
        self._inquiry: Inquiry[Any, Any] | None = None

    def about(self) -> tuple[str, str]:
        """The version that runs here, and the machine's name."""
        return VERSION, socket.gethostname()

    def load(self, inquiry: Inquiry[Any, Any], gpus: float) -> None:
        """Take an inquiry; its model goes to a GPU where one was asked for and is there."""
        if gpus:
            _to_gpu(inquiry.model)
        self._inquiry = inquiry

    def do(self, job: Any) -> Any:
        """The answer to one job."""
        assert self._inquiry is not None, "an inquiry is loaded first"
        return self._inquiry(job)


def _to_gpu(model: Model) -> None:
    """Move a torch module to the first of the GPUs that this process is shown: Ray shows it those it was given."""
    torch: Any = sys.modules.get("torch")
    module = getattr(model, "module", None)
    if torch is None or not isinstance(module, torch.nn.Module) or not torch.cuda.is_available():
        return
    from testifai.models.torch import TorchModel

    if isinstance(model, TorchModel):
        model.module, model.device = module.to("cuda"), torch.device("cuda")
