"""Programs written against version 0.1.0 find every module and every name where they left it."""

import importlib
import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from testifai.support import forwards
from testifai.support.forwards import MODULES, NAMES

# What each module of 0.1.0 defined without an underscore, read off its source once: that version is not here any more.
NAMES_OF_0_1_0 = json.loads(Path(__file__).with_name("names_of_0_1_0.json").read_text())

# A name that is gone for good, and why nobody misses it. One line each; a name that was moved or renamed belongs into
# `NAMES` of testifai/support/forwards.py instead.
GONE = {
    "testifai.commands.common:measured": "a step inside commands, now part of open_measured",
    "testifai.models.onnx:load_onnx": "testifai.models.load makes models of every kind",
    "testifai.models.texts.classifier:load_transformers": "testifai.models.load makes models of every kind",
    "testifai.models.texts.encoder:load_encoder": "testifai.models.load makes models of every kind",
    "testifai.models.texts.onnx:load_onnx_text": "testifai.models.load makes models of every kind",
    "testifai.perturb.preview:write": "a step inside preview, now write_picture, which wants to know the field as well",
    "testifai.quality.edit_similarity:any_edits": "rapidfuzz counts edits",
    "testifai.quality.edit_similarity:few_edits": "rapidfuzz counts edits",
    "testifai.surrogates.process_evidence:best_parameters": "a step of the fit: posed, then maximise",
    "testifai.surrogates.process_evidence:dense_evidence": "a step of the fit, now SomeTests",
    "testifai.surrogates.process_evidence:grid_evidence": "a step of the fit, now CompleteGrid",
    "testifai.spec:DataPart": "every kind of data brings fields of its own",
    "testifai.spec:ModelPart": "every kind of model brings fields of its own",
}
# Numbers, types and tables that only their own module used.
GONE_CONSTANTS = {
    "testifai.check:SAMPLED_TESTS",
    "testifai.engine.execute:log",
    "testifai.initialise:STARTER",
    "testifai.initialise:TABLE_STARTER",
    "testifai.locality.explain:ENDS",
    "testifai.locality.profile:Z",
    "testifai.modelfree:Floats",
    "testifai.models:VARIANTS",
    "testifai.operational.auxiliary:NEEDS_FEATURES",
    "testifai.operational.auxiliary:NEEDS_NOTHING",
    "testifai.operational.auxiliary:NEEDS_TRAINING",
    "testifai.operational.balanced:HANDS",
    "testifai.operational.intervals:DEVIATIONS",
    "testifai.operational.release:Z",
    "testifai.operational.release:Z_LOOKING",
    "testifai.perturb.registry:ENTRY_POINTS",
    "testifai.quality.scores:NORMAL",
    "testifai.quality.surface:NORMAL",
    "testifai.report.examples:LABELLED",
    "testifai.surrogates.process_evidence:Objective",
}


@pytest.fixture(scope="module", autouse=True)
def by_the_import_system():
    """Give back old names to packages that pytest loaded by their files, past the import system, for doctests."""
    for module in NAMES:
        loaded = sys.modules.get(module)
        if loaded is not None and "__getattr__" not in vars(loaded):
            loaded.__getattr__ = forwards._old_names(module)


def _import(module):
    """The module under the path of 0.1.0, or a skip where an extra that it needs is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name and not error.name.startswith("testifai"):
                pytest.skip(f"needs {error.name}")
            raise


@pytest.mark.parametrize("module", NAMES_OF_0_1_0)
def test_every_public_name_is_found_under_its_old_path(module):
    found = _import(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        missing = [name for name in NAMES_OF_0_1_0[module].split() if not hasattr(found, name)]
    assert [name for name in missing if f"{module}:{name}" not in {*GONE, *GONE_CONSTANTS}] == []


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_moved_is_the_same_object_under_both_names(module):
    assert _import(module) is importlib.import_module(MODULES[module])


def test_what_is_said_to_be_gone_is_gone_and_few():
    assert len(GONE) <= 15
    for path in (*GONE, *GONE_CONSTANTS):
        module, _, name = path.partition(":")
        with pytest.raises(AttributeError):
            getattr(_import(module), name)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("import testifai.comparing", "testifai.comparing is now testifai.tomogram.comparison"),
        ("from testifai.intervals import wilson", "testifai.intervals is now testifai.statistics.intervals"),
        ("from testifai.report import theme", "testifai.report.theme is now testifai.present.theme"),
        ("from testifai import comparing", "testifai.comparing is now testifai.tomogram.comparison"),
        ("import testifai.trust.kept", "testifai.trust is now testifai.tomogram.trust"),
        ("from testifai.tomogram import WORST", "testifai.tomogram.WORST is now testifai.tomogram.answering.WORST"),
    ],
)
def test_an_old_path_warns_where_it_is_written_and_names_the_new_one(statement, said):
    done = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning:__main__", "-c", statement],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said in done.stderr
    assert "<string>:1: DeprecationWarning" in done.stderr


def test_a_forward_leaves_the_module_as_it_was():
    module = _import("testifai.intervals")
    assert module.__name__ == "testifai.statistics.intervals"
    assert module.__spec__.name == "testifai.statistics.intervals"


def test_a_module_inside_a_forwarded_package_is_loaded_once():
    assert _import("testifai.trust.kept") is importlib.import_module("testifai.tomogram.trust.kept")


def test_a_name_that_never_existed_is_missing_as_ever():
    import testifai.tomogram

    with pytest.raises(AttributeError, match=r"module 'testifai\.tomogram' has no attribute 'nothing'"):
        testifai.tomogram.nothing  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("testifai.nothing")


@pytest.mark.parametrize("module", NAMES)
def test_every_name_that_is_forwarded_is_where_it_is_said_to_be(module):
    for name in NAMES[module]:
        with pytest.warns(DeprecationWarning, match=f"{module}.{name} is now "):
            assert getattr(_import(module), name) is not None


def test_tables_name_modules_of_today():
    # A forward to a forward would warn twice and is a line that somebody forgot.
    assert not set(MODULES) & set(MODULES.values())
    assert not set(MODULES) & set(NAMES)


def test_nothing_but_this_module_is_loaded_by_import_testifai():
    code = "import sys, testifai; print(*sorted(m for m in sys.modules if m.startswith('testifai')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "testifai",
        "testifai.support",
        "testifai.support.forwards",
        "testifai.support.version",
    ]


def test_no_source_of_ours_uses_an_old_path():
    """Every module of today imports while old paths are an error."""
    code = (
        "import importlib, pkgutil, testifai\n"
        "for found in pkgutil.walk_packages(testifai.__path__, 'testifai.'):\n"
        "    if found.name != 'testifai.__main__':\n"
        "        try: importlib.import_module(found.name)\n"
        "        except ModuleNotFoundError as error: assert not error.name.startswith('testifai'), error\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error:testifai:DeprecationWarning", "-c", code], check=True, capture_output=True
    )
