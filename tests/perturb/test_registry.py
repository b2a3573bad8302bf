"""The names that perturbations are found under."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation, describe, get, names, perturbation, rebuild, registry, resolve
from testifai.support.registry import Registry

ROWS = np.arange(12.0).reshape(4, 3)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    names()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


def scale(batch, factor, rng):
    return batch * factor


def keep_boxes(boxes, parameter, rng, size):
    return boxes


def made(function=scale, severities=(1.0, 0.8, 0.6)):
    return Perturbation("fade", function, severities)


def test_the_decorator_registers_and_returns_the_perturbation():
    @perturbation("fade", severities=[1.0, 0.5])
    def fade(batch, factor, rng):
        """Darker rows.

        More."""
        return batch * factor

    assert isinstance(fade, Perturbation)
    assert fade.summary == "Darker rows."
    assert get("fade") is fade
    assert resolve("fade") is fade
    assert resolve(fade) is fade
    assert "fade" in names()


def test_running_a_definition_again_replaces_it():
    def define(factor):
        @perturbation("fade", severities=[1.0, factor])
        def fade(batch, factor, rng):
            return batch * factor

        return fade

    define(0.5)
    second = define(0.4)
    assert get("fade") is second


def test_a_taken_name_is_refused_to_another_function():
    perturbation("fade", severities=[1.0, 0.5])(scale)
    with pytest.raises(InputError, match="'fade' is taken"):
        perturbation("fade", severities=[1.0, 0.5])(keep_boxes)
    perturbation("blank", severities=[0, 1])(lambda batch, parameter, rng: batch)
    with pytest.raises(InputError, match="'blank' is taken"):
        perturbation("blank", severities=[0, 1])(lambda batch, parameter, rng: batch * 0)


def test_a_built_in_suite_keeps_its_prefix():
    with pytest.raises(InputError, match=r"'mnist_c\.' belongs to a built-in suite"):
        perturbation("mnist_c.fade", severities=[0, 1])(scale)
    perturbation("mnist_c", severities=[0, 1])(scale)


@pytest.mark.parametrize("name", ["mnist_c.zom", "mnistc.zoom"])
def test_an_unknown_name_is_answered_with_a_near_one(name):
    with pytest.raises(InputError, match=r"did you mean 'mnist_c\.zoom'"):
        get(name)


def test_the_names_listed_for_an_unknown_one_are_few():
    perturbation("fade", severities=[1.0, 0.5])(scale)
    with pytest.raises(InputError, match=r"known: .*mnist_c\.shear") as caught:
        get("mnist_c.zom")
    assert "imagenet_c" not in str(caught.value)
    for name in ("fad", "nothing.like.it", "zq"):
        with pytest.raises(
            InputError, match=r"known: .*fade, .*imagenet_c\.…, .*see testifai list perturbations"
        ) as caught:
            get(name)
        assert ("did you mean 'fade'" in str(caught.value)) == (name == "fad")
    with pytest.raises(InputError, match=r"did you mean 'cifar_c\.fog' or 'imagenet_c\.fog' or 'mnist_c\.fog'\?"):
        get("fog")


@pytest.mark.parametrize("name", [None, 3, ["mnist_c.zoom"]])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InputError, match="is not known"):
        resolve(name)


def test_names_of_a_suite():
    perturbation("mine.fade", severities=[1.0, 0.5])(scale)
    perturbation("mine", severities=[1.0, 0.5])(scale)
    assert names("mine") == ["mine.fade"]
    for suite in registry.SUITES:
        assert names(suite) == [name for name in names() if name.startswith(f"{suite}.")]
    with pytest.raises(InputError, match="did you mean 'mnist_c'"):
        names("mnistc")


def test_a_description_is_json_and_leads_back():
    table = [None, np.float32(0.5), (1, np.arange(2)), {"a": np.int8(1)}]
    fade = perturbation("fade", severities=table)(scale)
    description = describe(fade)
    assert description == {"name": "fade", "severities": [None, 0.5, [1, [0, 1]], {"a": 1}]}
    assert rebuild(json.loads(json.dumps(description))) is fade


def test_a_changed_table_is_noticed():
    perturbation("fade", severities=[1.0, 0.5])(scale)
    with pytest.raises(InputError, match="'fade': severities were"):
        rebuild({"name": "fade", "severities": [1.0, 0.4]})


def test_naming_a_perturbation_does_not_import_opencv():
    code = (
        "import sys, testifai.perturb as p; print('cv2' in sys.modules); p.get('mnist_c.zoom'); "
        "print('cv2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_decorator_takes_boxes_growing_and_levels():
    own = perturbation("own", [0, 1], boxes=keep_boxes, growing=False, levels=(0, 1))(scale)
    assert (own.boxes, own.growing, own.levels) == (keep_boxes, False, (0.0, 1.0))


# -- suites of other packages -------------------------------------------------------------------------------------


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package with a suite on the path, as an installer would leave it."""
    monkeypatch.syspath_prepend(tmp_path)

    def add(package, suite, source):
        module = f"suite_module_of_{package}"
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{registry.SUITES.group}]\n{suite} = {module}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)
        # What is announced is looked up once.
        monkeypatch.setattr(registry, "SUITES", Registry("suite", registry.SUITES.group, registry.BUILT_IN))
        registry._problem.cache_clear()

    yield add
    registry._problem.cache_clear()


WEATHER = """'''Weather of our own.

More.'''
from testifai.perturb import perturbation

@perturbation("weather.drizzle", severities=[0, 1, 2])
def drizzle(batch, amount, rng):
    return batch + amount
"""


def test_a_suite_of_another_package_is_found_by_its_prefix(install):
    install("acme", "weather", WEATHER)
    assert "suite_module_of_acme" not in sys.modules
    assert get("weather.drizzle").apply(np.zeros(2, int), 2).tolist() == [2, 2]
    assert names("weather") == ["weather.drizzle"]
    assert "weather.drizzle" in names()
    assert registry.suite_summary("weather") == "Weather of our own."
    assert registry.suite_problems() == []
    with pytest.raises(InputError, match=r"did you mean 'weather\.drizzle'"):
        get("weather.drizle")


def test_a_suite_of_another_package_is_listed_with_all_others(install):
    install("acme", "weather", WEATHER)
    assert "weather.drizzle" in names()
    with pytest.raises(InputError, match="did you mean 'weather'"):
        names("wether")


BROKEN = WEATHER + "\nimport a_module_that_is_not_there\n"


def test_a_suite_that_cannot_be_imported_is_reported_and_harms_no_other(install):
    install("acme", "weather", BROKEN)
    report = (
        "suite 'weather' (package acme) could not be imported: "
        "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"
    )
    assert "mnist_c.zoom" in names()
    assert "weather.drizzle" not in names()
    assert registry.suite_problems() == [report]
    for ask in (lambda: get("weather.drizzle"), lambda: names("weather")):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(caught.value) == report
    assert registry.suite_summary("weather") == ""


@pytest.mark.parametrize("source", ["raise SystemExit(3)", "def broken(:", "1 / 0"])
def test_whatever_happens_during_the_import_is_one_line(install, source):
    install("acme", "weather", source)
    (problem,) = registry.suite_problems()
    assert problem.startswith("suite 'weather' (package acme) could not be imported: ")
    assert "\n" not in problem


def test_a_package_cannot_take_the_prefix_of_a_built_in_suite(install):
    install("acme", "mnist_c", WEATHER)
    before = names("mnist_c")
    assert registry.suite_problems() == [
        "suite 'mnist_c' (package acme) is not used: the name belongs to a built-in suite"
    ]
    assert "suite_module_of_acme" not in sys.modules
    assert names("mnist_c") == before
    assert registry.suite_summary("mnist_c").startswith("MNIST-C")


def test_of_two_packages_with_one_prefix_the_first_counts(install):
    install("acme", "weather", WEATHER)
    install("zenith", "weather", WEATHER.replace("drizzle", "hail"))
    (problem,) = registry.suite_problems()
    used, other = names("weather") == ["weather.drizzle"], "suite 'weather' (package {}) is not used: "
    first, second = ("acme", "zenith") if used else ("zenith", "acme")
    assert problem == other.format(second) + f"the name belongs to package {first}"


def test_a_package_cannot_register_under_a_built_in_prefix(install):
    install("acme", "weather", WEATHER.replace("weather.drizzle", "mnist_c.drizzle"))
    (problem,) = registry.suite_problems()
    assert "the prefix 'mnist_c.' belongs to a built-in suite" in problem
    assert "mnist_c.drizzle" not in names()
