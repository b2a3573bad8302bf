"""`help()` of every public callable: each parameter is there with its type and a line that says what it is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

import testifai as ta
from testifai.spec.options import ScanKeywords

OF_MODULES = ["data", "locality", "models", "operational", "oracles", "perturb", "quality", "testing", "verification"]


def _public() -> Iterator[tuple[str, object]]:
    """What `testifai` offers by name: functions, classes and their methods, and the functions of its modules."""
    for name in ta.__all__:
        value = getattr(ta, name)
        if inspect.isclass(value) and not issubclass(value, Exception):
            yield name, value
            for method, found in inspect.getmembers(value, callable):
                if not method.startswith("_"):
                    yield f"{name}.{method}", found
        elif inspect.isfunction(value):
            yield name, value
    for name in OF_MODULES:
        module = getattr(ta, name)
        for inner in module.__all__:
            if inspect.isfunction(getattr(module, inner)):
                yield f"{name}.{inner}", getattr(module, inner)


PUBLIC = dict(_public())


def _explained(value: object) -> set[str]:
    """The parameters under Args, or the fields under Attributes."""
    listed = re.search(r"^(?:Args|Attributes):\n((?:    .*\n)+)", f"{inspect.getdoc(value)}\n", re.M)
    return set(re.findall(r"^    (\w+)(?: \(.+?\))?: \S", listed.group(1), re.M)) if listed else set()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_explained_and_has_a_type(name):
    value = PUBLIC[name]
    parameters = inspect.signature(value).parameters.values()
    wanted = [one for one in parameters if one.name != "self"]
    assert inspect.getdoc(value), "says what it is"
    assert [one.name for one in wanted if one.name not in _explained(value)] == []
    assert [one.name for one in wanted if one.annotation is one.empty] == []


def test_a_name_that_is_no_parameter_is_not_explained():
    for name, value in PUBLIC.items():
        assert _explained(value) <= set(inspect.signature(value).parameters), name


def test_scan_explains_all_its_options():
    assert set(ScanKeywords.model_fields) | {"model", "data", "space"} == _explained(ta.scan)
    assert "    budget (a whole number): most inferences to spend" in (inspect.getdoc(ta.scan) or "")
