"""pydantic, which checks what specs say; where it is not installed, as much of it as `ta.scan` needs.

A machine with an accelerator often has torch, NumPy, SciPy and scikit-learn and nothing else. There options of a scan
are checked by their own rules; reading a spec, or a model or data set by its file, asks for the library.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, dataclass_transform

from testifai.errors import InputError
from testifai.support.types import Record

__all__ = [
    "BaseModel",
    "BeforeValidator",
    "ConfigDict",
    "ValidationError",
    "ValidationInfo",
    "WithJsonSchema",
    "field_validator",
    "model_validator",
]

if TYPE_CHECKING or find_spec("pydantic") is not None:
    from pydantic import (
        BaseModel,
        BeforeValidator,
        ConfigDict,
        ValidationError,
        ValidationInfo,
        WithJsonSchema,
        field_validator,
        model_validator,
    )
else:
    ConfigDict = dict
    _REQUIRED = inspect.Parameter.empty

    class ValidationError(ValueError):
        """Never raised: a rule of ours says in its own words what is wrong."""

    @dataclass(frozen=True)
    class ValidationInfo:
        """Which field is checked."""

        field_name: str

    @dataclass(frozen=True)
    class BeforeValidator:
        """How a field of a spec is read, by the library that is not here."""

        function: Callable[..., Any]

    @dataclass(frozen=True)
    class WithJsonSchema:
        """What editors are told of a field of a spec, by the library that is not here."""

        json_schema: Record

    @dataclass(frozen=True)
    class _Rule:
        names: tuple[str, ...]
        method: Any

    def field_validator(*names: str, mode: str) -> Callable[[Any], _Rule]:
        """Mark a class method as the rule of some fields."""
        return lambda method: _Rule(names, method.__func__)

    def model_validator(*, mode: str) -> Callable[[Any], Any]:
        """Nothing: it is the rule of a part of a spec."""
        return lambda method: method

    @dataclass_transform(kw_only_default=True, frozen_default=True)
    class BaseModel:
        """Fields with defaults and rules, given by keyword, that do not change."""

        model_fields: ClassVar[Record] = {}
        _rules: ClassVar[Record] = {}

        def __init_subclass__(cls) -> None:
            told = {name: text for name, text in cls.__annotations__.items() if not str(text).startswith("ClassVar")}
            cls.model_fields = cls.model_fields | {name: getattr(cls, name, _REQUIRED) for name in told}
            rules = [one for one in vars(cls).values() if isinstance(one, _Rule)]
            cls._rules = cls._rules | {name: rule.method for rule in rules for name in rule.names}
            cls.__signature__ = inspect.Signature(
                [
                    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
                    for name, default in cls.model_fields.items()
                ]
            )

        def __init__(self, **given: Any) -> None:
            told = self.__signature__.bind(**given)
            told.apply_defaults()
            for name, value in told.arguments.items():
                rule = self._rules.get(name) if name in given else None
                self.__dict__[name] = value if rule is None else self._checked(rule, name, value)

        def _checked(self, rule: Any, name: str, value: Any) -> Any:
            info = [ValidationInfo(name)] if len(inspect.signature(rule).parameters) > 2 else []
            return rule(type(self), value, *info)

        def __setattr__(self, name: str, value: Any) -> NoReturn:
            raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

        def __eq__(self, other: object) -> bool:
            return type(self) is type(other) and self.__dict__ == other.__dict__

        __hash__ = None

        @classmethod
        def model_validate(cls, table: Any) -> NoReturn:
            raise InputError("specs, and models and data by their names, need pydantic; pip install pydantic")
