"""Where the modules and names of version 0.1.0 are now, for programs written against them.

`import testifai.intervals` gives `testifai.statistics.intervals`, the module itself and not a copy, with a warning that
names the new place. A module that moved is one line in `MODULES`; a name that left its module, or is called otherwise
there, is one line in `NAMES`, under the place where its module is today. Nothing here is loaded before it is asked for.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # The real one loads a dozen modules, and `import testifai` would wait for them.

MODULES = {
    "testifai.answers": "testifai.tomogram.answers",
    "testifai.app.texts": "testifai.present.edits",
    "testifai.assemble": "testifai.scans.loading",
    "testifai.assess": "testifai.quality.assessment",
    "testifai.check": "testifai.scans.check",
    "testifai.choice": "testifai.support.named",
    "testifai.commands.operational": "testifai.commands.select",
    "testifai.comparing": "testifai.tomogram.comparison",
    "testifai.demo": "testifai.commands.example",
    "testifai.differences": "testifai.statistics.differences",
    "testifai.engine.execute": "testifai.engine.local",
    "testifai.export": "testifai.present.export",
    "testifai.extras": "testifai.support.libraries",
    "testifai.frames": "testifai.present.dataframes",
    "testifai.gating": "testifai.gates",
    "testifai.gating.measure": "testifai.gates.measuring",
    "testifai.gating.page": "testifai.present.gate_page",
    "testifai.gating.towards": "testifai.gates.towards",
    "testifai.independence": "testifai.statistics.independence",
    "testifai.initialise": "testifai.scans.init",
    "testifai.intervals": "testifai.statistics.intervals",
    "testifai.locality.context": "testifai.tomogram.context",
    "testifai.locality.figures": "testifai.present.figures.locality",
    "testifai.locality.page": "testifai.report.errors",
    "testifai.locality.profile": "testifai.tomogram.profile",
    "testifai.locality.statements": "testifai.tomogram.statements",
    "testifai.lock": "testifai.runs.lock",
    "testifai.merging": "testifai.runs.merge",
    "testifai.modelfree": "testifai.tomogram.own_trials",
    "testifai.notebook": "testifai.present.notebook",
    "testifai.operational.balanced_design": "testifai.operational.balanced.design",
    "testifai.operational.balanced_interval": "testifai.operational.balanced.interval",
    "testifai.outcomes": "testifai.runs.outcomes",
    "testifai.perturb.preview": "testifai.present.contact_sheets",
    "testifai.progress": "testifai.support.progress",
    "testifai.query": "testifai.space.query",
    "testifai.ranking": "testifai.space.numbering",
    "testifai.reopen": "testifai.scans.reopen",
    "testifai.replay": "testifai.scans.replay",
    "testifai.report.curves": "testifai.present.figures.curves",
    "testifai.report.distribution": "testifai.present.figures.distribution",
    "testifai.report.dots": "testifai.present.figures.dots",
    "testifai.report.edits": "testifai.present.edits",
    "testifai.report.examples": "testifai.present.examples",
    "testifai.report.heatmaps": "testifai.present.figures.heatmaps",
    "testifai.report.projection": "testifai.present.figures.projection",
    "testifai.report.quality": "testifai.present.figures.quality",
    "testifai.report.regions": "testifai.tomogram.regions",
    "testifai.report.sweeps": "testifai.present.figures.sweeps",
    "testifai.report.theme": "testifai.present.theme",
    "testifai.report.voxels": "testifai.present.figures.voxels",
    "testifai.rows": "testifai.support.batches",
    "testifai.session": "testifai.scans.session",
    "testifai.spec": "testifai.scans.spec",
    "testifai.store": "testifai.runs.store",
    "testifai.surrogates.bayes_net_graph": "testifai.surrogates.bayes_net.graph",
    "testifai.surrogates.bayes_net_structure": "testifai.surrogates.bayes_net.structure",
    "testifai.surrogates.process_evidence": "testifai.surrogates.process.evidence",
    "testifai.surrogates.process_inputs": "testifai.surrogates.process.inputs",
    "testifai.surrogates.process_kernel": "testifai.surrogates.process.kernel",
    "testifai.surrogates.process_part": "testifai.surrogates.process.part",
    "testifai.surrogates.process_places": "testifai.surrogates.process.places",
    "testifai.surrogates.process_scale": "testifai.surrogates.process.scale",
    "testifai.surrogates.process_scores": "testifai.surrogates.process.scores",
    "testifai.sweeps.looks": "testifai.statistics.looks",
    "testifai.sweeps.plot": "testifai.present.figures.sweep_plot",
    "testifai.tables": "testifai.present.terminal",
    "testifai.threads": "testifai.support.threads",
    "testifai.tracking": "testifai.integrations.mlflow",
    "testifai.trust": "testifai.tomogram.trust",
    "testifai.trust.compare": "testifai.tomogram.trust.compare",
    "testifai.trust.kept": "testifai.tomogram.trust.kept",
    "testifai.trust.refit": "testifai.tomogram.trust.refit",
    "testifai.trust.statements": "testifai.tomogram.trust.statements",
    "testifai.validity": "testifai.present.validity_sheets",
}

NAMES = {
    "testifai.commands.common": {"facts": "testifai.present.facts:facts"},
    "testifai.commands.errors": {"MOST_WORDS": "testifai.present.errors_text:MOST_WORDS"},
    "testifai.commands.example": {"Row": "testifai.commands.example:QueryRow"},
    "testifai.commands.select": {"estimate": "testifai.commands.estimate:estimate"},
    "testifai.data.detect": {
        "IMAGE_SUFFIXES": "testifai.data.listing:IMAGE_SUFFIXES",
        "is_image": "testifai.data.listing:is_image",
    },
    "testifai.engine.local": {
        "Measured": "testifai.engine.base:BatchOutcome",
        "one_line": "testifai.engine.inference:one_line",
    },
    "testifai.gates.measuring": {"Measured": "testifai.gates.measuring:GatedRun"},
    "testifai.locality": {"Measured": "testifai.locality.pairs:Measurement"},
    "testifai.locality.explain": {"MOST_TRACES": "testifai.locality.summary:MOST_TRACES"},
    "testifai.locality.inference": {"Node": "testifai.locality.inference:NetworkNode"},
    "testifai.locality.measure": {"Record": "testifai.locality.measure:SampleRecord"},
    "testifai.locality.pairs": {"Measured": "testifai.locality.pairs:Measurement"},
    "testifai.locality.trends": {"Search": "testifai.locality.trends:TrendSearch"},
    "testifai.locality.wording": {
        "MOST_NAMED": "testifai.locality.summary:MOST_NAMED",
        "advice": "testifai.locality.summary:advice",
        "gains": "testifai.locality.summary:gains",
        "lines": "testifai.locality.summary:lines",
        "no_trend": "testifai.locality.summary:no_trend",
        "read_as": "testifai.locality.summary:read_as",
        "rest": "testifai.locality.summary:rest",
        "sentence": "testifai.locality.summary:sentence",
    },
    "testifai.models.onnx": {"first_line": "testifai.models.onnx_session:first_line"},
    "testifai.models.python": {"import_object": "testifai.support.own_code:import_object"},
    "testifai.models.texts.network": {"Network": "testifai.models.texts.network:TextNetwork"},
    "testifai.operational.answer": {"Answer": "testifai.operational.answer:Findings"},
    "testifai.operational.balanced": {
        "Balanced": "testifai.operational.balanced.balanced:BalancedSampling",
        "Deal": "testifai.operational.balanced.balanced:Deal",
        "FEWEST": "testifai.operational.balanced.balanced:FEWEST",
        "SPARE": "testifai.operational.balanced.balanced:SPARE",
    },
    "testifai.operational.deepest": {"Adaptive": "testifai.operational.deepest:DeepEST"},
    "testifai.operational.release": {"Verdict": "testifai.operational.release:Release"},
    "testifai.perturb.geometric": {"BoxRows": "testifai.perturb.outlines:Corners"},
    "testifai.present.contact_sheets": {"read_image": "testifai.support.images:read_image"},
    "testifai.present.edits": {"PARTS": "testifai.present.edits:WORDS"},
    "testifai.present.examples": {"picture": "testifai.support.images:data_uri"},
    "testifai.present.figures.projection": {"severities": "testifai.space.space:Space.severities"},
    "testifai.present.figures.sweeps": {"stored_sweeps": "testifai.sweeps.storage:stored_sweeps"},
    "testifai.present.terminal": {
        "demo": "testifai.commands.example:show",
        "sigma_text": "testifai.space.space:Space.words",
    },
    "testifai.present.validity_sheets": {
        "Limit": "testifai.tomogram.limits:Limit",
        "Row": "testifai.tomogram.limits:Plausible",
        "VALUES": "testifai.tomogram.limits:VALUES",
        "limits": "testifai.tomogram.limits:limits",
        "rows": "testifai.tomogram.limits:nearest_tests",
        "scores_of": "testifai.tomogram.limits:scores_of",
        "usual_values": "testifai.tomogram.limits:usual_values",
    },
    "testifai.perturb.ops_torch.rng": {"philox4x32": "testifai.perturb.ops_torch.philox:philox4x32"},
    "testifai.tomogram.profile": {"MOST_JOINT": "testifai.tomogram.weighted:MOST_JOINT"},
    "testifai.quality.assessment": {
        "EXTRA": "testifai.quality.plan:EXTRA",
        "plan": "testifai.quality.plan:plan",
    },
    "testifai.quality.base": {
        "MEASURES": "testifai.quality:MEASURES",
        "resolve": "testifai.quality:resolve",
        "whole_number": "testifai.support.checks:whole",
    },
    "testifai.quality.surface": {"Measured": "testifai.quality.surface:KnownValues"},
    "testifai.quality.surface_prior": {"Axis": "testifai.quality.surface_prior:AxisPrior"},
    "testifai.report.html": {"View": "testifai.report.html:Drawing"},
    "testifai.scans.check": {"Estimate": "testifai.scans.check:Cost"},
    "testifai.scans.session": {
        "KEEP": "testifai.scans.options:KEEP",
        "LIBRARIES": "testifai.scans.environment:LIBRARIES",
        "POPULATIONS": "testifai.scans.options:POPULATIONS",
        "open_measured": "testifai.scans.stored:open_measured",
        "open_run": "testifai.scans.stored:open_run",
    },
    "testifai.scans.spec": {"ScanPart": "testifai.scans.options:ScanOptions"},
    "testifai.space": {
        "LARGEST_TABLE": "testifai.space.axes:LARGEST_TABLE",
        "LOGICAL": "testifai.space.axes:LOGICAL",
        "RESERVED": "testifai.space.axes:RESERVED",
    },
    "testifai.space.query": {"Comparison": "testifai.space.query:Inequality"},
    "testifai.statistics.differences": {"holm": "testifai.statistics.corrections:holm"},
    "testifai.statistics.independence": {
        "Independence": "testifai.statistics.independence:PairTests",
        "analyse": "testifai.tomogram.independence:analyse",
        "lines": "testifai.tomogram.independence:lines",
    },
    "testifai.surrogates.bayes_net": {
        "CHUNK": "testifai.surrogates.bayes_net.bayes_net:CHUNK",
        "DOUBT": "testifai.surrogates.bayes_net.bayes_net:DOUBT",
        "FEWEST": "testifai.surrogates.bayes_net.bayes_net:FEWEST",
        "LEAST_DOUBT": "testifai.surrogates.bayes_net.bayes_net:LEAST_DOUBT",
        "MOST_LEVERAGE": "testifai.surrogates.bayes_net.bayes_net:MOST_LEVERAGE",
    },
    "testifai.surrogates.pairwise": {"Measured": "testifai.surrogates.pairwise:LogRates"},
    "testifai.surrogates.process": {
        "FIRST_STEPS": "testifai.surrogates.process.process:FIRST_STEPS",
        "LARGEST": "testifai.surrogates.process.process:LARGEST",
        "PLUGGED": "testifai.surrogates.process.process:PLUGGED",
        "ROUNDS": "testifai.surrogates.process.process:ROUNDS",
        "ROWS": "testifai.surrogates.process.covariances:ROWS",
        "STEPS": "testifai.surrogates.process.process:STEPS",
    },
    "testifai.surrogates.process.part": {"Part": "testifai.surrogates.process.part:SurfacePart"},
    "testifai.surrogates.process.scale": {"quantile": "testifai.statistics.normal:quantile"},
    "testifai.surrogates.process.scores": {"Scores": "testifai.surrogates.process.scores:ScoreFit"},
    "testifai.sweeps.asap": {"Grid": "testifai.sweeps.asap:LevelGrid"},
    "testifai.sweeps.build": {"Setting": "testifai.sweeps.build:SweepSetting"},
    "testifai.sweeps.probe": {"Measured": "testifai.sweeps.probe:SweepBatch"},
    "testifai.sweeps.checks": {"whole": "testifai.support.checks:whole"},
    "testifai.sweeps.storage": {
        "PREFIX": "testifai.runs.keys:SWEEPS",
        "Record": "testifai.sweeps.storage:SweepRecord",
    },
    "testifai.tomogram": {
        "Floats": "testifai.tomogram.rates:Floats",
        "MOST_SINGLE": "testifai.surrogates.fitting:MOST_SINGLE",
        "WORST": "testifai.tomogram.answering:WORST",
    },
    "testifai.tomogram.comparison": {"Region": "testifai.tomogram.comparison:RegionDifference"},
    "testifai.tomogram.own_trials": {
        "ROUNDING": "testifai.statistics.clustered:ROUNDING",
        "Region": "testifai.tomogram.own_trials:RawMean",
        "disagree": "testifai.statistics.intervals:disagree",
    },
    "testifai.tomogram.regions": {
        "Region": "testifai.tomogram.regions:RegionAnswer",
        "Search": "testifai.tomogram.regions:RegionSearch",
    },
    "testifai.tomogram.trust.kept": {"NAME": "testifai.runs.keys:TRUST"},
}


class Forward(Loader):
    """Loads a module of 0.1.0: the module that took its place."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        # Frames of the import system are not counted, so that the warning points at the import statement.
        _warn(f"{self.old} is now {self.new}", stacklevel=3)
        self.module = importlib.import_module(self.new)
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        # The module has run under its own name; the import system has just given it the spec of the old one.
        module.__spec__ = self.spec


class WithOldNames(SourceFileLoader):
    """Loads a module of today, which answers to the names of 0.1.0 as well."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.__getattr__ = _old_names(module.__name__)  # type: ignore[method-assign]


class Finder:
    """Finds what `MODULES` and `NAMES` list."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in MODULES:
            return ModuleSpec(fullname, Forward(fullname, MODULES[fullname]))
        if fullname not in NAMES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = WithOldNames(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """Have `import` find the modules and names of 0.1.0; `import testifai` does it."""
    # First in the list: the import system would find testifai.trust.kept in the folder of testifai.tomogram.trust, and
    # load it a second time.
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def _old_names(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__` that finds the names of `NAMES`."""

    def find(name: str) -> Any:
        where = NAMES[module].get(name)
        if where is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name} is now {where.replace(':', '.')}", stacklevel=3)
        home, _, attribute = where.partition(":")
        return attrgetter(attribute)(importlib.import_module(home))

    return find


def _warn(what: str, *, stacklevel: int) -> None:
    warnings.warn(f"{what}; the old name goes with version 0.3", DeprecationWarning, stacklevel=stacklevel)
