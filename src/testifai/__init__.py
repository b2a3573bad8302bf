"""testifai: how a trained model behaves under every combination of real-world conditions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from testifai.support.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from testifai import data, locality, models, operational, oracles, perturb, quality, testing, verification
    from testifai.engine import stopping
    from testifai.errors import InputError
    from testifai.perturb import Perturbation, apply, perturbation
    from testifai.runs.merge import merge
    from testifai.session.assembly import scan
    from testifai.session.hunting import hunt
    from testifai.session.stored_runs import open_run as open  # noqa: A004
    from testifai.space import Space
    from testifai.sweeps import sweep, sweep_model
    from testifai.sweeps.calibrate import calibrate
    from testifai.tomogram import Answer, Tomogram
    from testifai.tomogram.comparison import compare
    from testifai.tomogram.priorities import prioritised

# Names are loaded when first used, so that `import testifai` and `testifai --help` are quick.
_WHERE = {
    "Answer": "testifai.tomogram:Answer",
    "InputError": "testifai.errors:InputError",
    "Perturbation": "testifai.perturb:Perturbation",
    "Space": "testifai.space:Space",
    "Tomogram": "testifai.tomogram:Tomogram",
    "apply": "testifai.perturb:apply",
    "calibrate": "testifai.sweeps.calibrate:calibrate",
    "compare": "testifai.tomogram.comparison:compare",
    "data": "testifai.data",
    "hunt": "testifai.session.hunting:hunt",
    "locality": "testifai.locality",
    "merge": "testifai.runs.merge:merge",
    "models": "testifai.models",
    "open": "testifai.session.stored_runs:open_run",
    "operational": "testifai.operational",
    "oracles": "testifai.oracles",
    "perturb": "testifai.perturb",
    "perturbation": "testifai.perturb:perturbation",
    "prioritised": "testifai.tomogram.priorities:prioritised",
    "quality": "testifai.quality",
    "scan": "testifai.session.assembly:scan",
    "stopping": "testifai.engine.stopping",
    "sweep": "testifai.sweeps:sweep",
    "sweep_model": "testifai.sweeps:sweep_model",
    "testing": "testifai.testing",
    "verification": "testifai.verification",
}

__all__ = [
    "Answer", "InputError", "Perturbation", "Space", "Tomogram", "apply", "calibrate", "compare", "data",
    "hunt", "locality", "merge", "models", "open", "operational", "oracles", "perturb", "perturbation", "prioritised",
    "quality", "scan", "stopping", "sweep", "sweep_model", "testing", "verification",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'testifai' has no attribute {name!r}")
    module, _, attribute = _WHERE[name].partition(":")
    found = importlib.import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])
