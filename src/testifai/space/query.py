"""Queries: text is parsed into a small tree that is evaluated over named columns; no code is run."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testifai.errors import InputError, suggest
from testifai.support.types import Array, Bools


class Lazy(Mapping[str, Array]):
    def __init__(self, makers: Mapping[str, Callable[[], Array]]) -> None:
        self._makers = makers
        self._made: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


LONGEST_TEXT = 10_000
DEEPEST_NESTING = 100
LARGEST_NUMBER = 10**15  # every smaller integer is exact as a float64, so mixed comparisons stay exact

Columns = Mapping[str, Array]
Levels = Mapping[str, Mapping[str, float]]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
# A token's kind is the first spelling in its row.
_SPELLINGS = (
    *(("==", "="), ("<=", "≤"), (">=", "≥"), ("!=", "≠"), ("<",), (">",)),
    *(("and", "&", "&&", "∧"), ("or", "|", "||", "∨"), ("not", "~", "!", "¬"), ("in",)),
    *(("-", "−"), (",",), ("(",), (")",), ("[",), ("]",), ("{",), ("}",)),
)
_KINDS = {spelling: row[0] for row in _SPELLINGS for spelling in row}
_OPERANDS = ("number", "name", "string")
_RELATIONS = (*_COMPARE, "in", "not")
_EQUATIONS = ("==", "!=", "in", "not in")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<word>[^\W0-9](?:\w|[^\x00-\x7f\s≤≥≠∧∨¬−])*)  # \w alone lacks the vowel signs of some scripts
      | (?P<string>"[^"]*"|'[^']*')
      | (?P<sign><=|>=|==|!=|&&|\|\||[-<>=≤≥≠&|~!∧∨¬−,()\[\]{}])
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class ColumnName:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constant:
    """A number, or a level by its name (kept so that the query prints as it was meant)."""

    value: float
    level: str | None = None

    def __str__(self) -> str:
        if self.level is None:
            return str(self.value)
        return f"'{self.level}'" if '"' in self.level else f'"{self.level}"'


@dataclass(frozen=True)
class Choice:
    members: tuple[Constant, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.members)) + "}"


Operand = ColumnName | Constant | Choice


@dataclass(frozen=True)
class Inequality:
    """A chain `a < b <= c`, true where each neighbouring pair is; only its last operand may be a Choice."""

    operands: tuple[Operand, ...]
    operators: tuple[str, ...]

    def __str__(self) -> str:
        rest = zip(self.operators, self.operands[1:], strict=True)
        return str(self.operands[0]) + "".join(f" {sign} {operand}" for sign, operand in rest)


@dataclass(frozen=True)
class Before:
    """True where both axes are on and the first is applied before the second."""

    first: str
    second: str

    def __str__(self) -> str:
        return before(self.first, self.second)


@dataclass(frozen=True)
class Not:
    part: Condition

    def __str__(self) -> str:
        return "not " + (f"({self.part})" if isinstance(self.part, And | Or) else str(self.part))


@dataclass(frozen=True)
class And:
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, And | Or) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Or:
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


Condition = Inequality | Before | Not | And | Or


def before(first: str, second: str) -> str:
    return f"before({first}, {second})"


def comparisons(node: Condition) -> Iterator[Inequality | Before]:
    if isinstance(node, Inequality | Before):
        yield node
    else:
        for part in (node.part,) if isinstance(node, Not) else node.parts:
            yield from comparisons(part)


def _evaluate(node: Condition, columns: Columns) -> Bools:
    if isinstance(node, Inequality):
        values = [operand_values(operand, columns) for operand in node.operands]
        pairs = zip(node.operators, values, values[1:], strict=False)
        return functools.reduce(np.logical_and, (holds(*pair) for pair in pairs), np.array(True))
    if isinstance(node, Before):
        return np.asarray(columns[str(node)], bool)
    if isinstance(node, Not):
        return ~_evaluate(node.part, columns)
    combine = np.logical_and if isinstance(node, And) else np.logical_or
    return functools.reduce(combine, (_evaluate(part, columns) for part in node.parts))


def holds(sign: str, left: Any, right: Any) -> Any:
    return _COMPARE[sign](left, right) if sign in _COMPARE else np.isin(left, right, invert=sign == "not in")


def operand_values(operand: Operand, columns: Columns) -> Any:
    if isinstance(operand, ColumnName):
        return np.asarray(columns[operand.name])
    if isinstance(operand, Choice):
        return [member.value for member in operand.members]
    return operand.value


def _without(node: Condition, name: str, value: bool = True) -> Condition | None:
    """The tree with comparisons that name a column taken as a value, under a `not` as its opposite; None: always it."""
    parts: list[Condition | None]
    if isinstance(node, Inequality):
        pairs = zip(node.operands, node.operators, node.operands[1:], strict=False)
        parts = [None if ColumnName(name) in (a, b) else Inequality((a, b), (sign,)) for a, sign, b in pairs]
        if None not in parts:
            return node
    elif isinstance(node, Before):
        return node
    elif isinstance(node, Not):
        part = _without(node.part, name, not value)
        return None if part is None else Not(part)
    else:
        parts = [_without(part, name, value) for part in node.parts]
    left = tuple(part for part in parts if part is not None)
    decides = len(left) < len(parts) and isinstance(node, Or) == value  # true decides an `or`, false an `and`
    if not left or decides:
        return None
    return left[0] if len(left) == 1 else Or(left) if isinstance(node, Or) else And(left)


@dataclass(frozen=True)
class _Token:
    kind: str  # one of _OPERANDS, of the values of _KINDS, or "end"
    text: str
    start: int


def printable(text: str, longest: int = 60) -> str:
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


class _Parser:
    """Recursive descent: comparisons bind most tightly, then not, and, or."""

    def __init__(self, text: str, names: Iterable[str], levels: Levels, sequenced: Sequence[str]) -> None:
        self.text = text
        self.names = list(names)
        self.sequenced = sequenced
        self.levels = levels
        self.used: set[str] = set()
        self.example = f"{self.names[0] if self.names else 'zoom'} > 2"
        self.depth = 0
        self.place = 0
        self.token = self.scan()

    def error(self, what: str, token: _Token, why: str) -> InputError:
        where = f'at column {token.start + 1} of "{printable(self.text)}"'
        return InputError(f"query: {what} {where}: {printable(why, 2000)}")

    def unexpected(self, token: _Token, why: str) -> InputError:
        found = "end" if token.kind == "end" else f"'{printable(token.text)}'"
        return self.error(f"unexpected {found}", token, why)

    def scan(self) -> _Token:
        match = _TOKEN.match(self.text, self.place)
        if match is None:
            start = len(self.text) - len(self.text[self.place :].lstrip())
            bad = _Token("bad", self.text[start], start)
            if bad.text in ('"', "'"):
                raise self.error("unclosed quote", bad, f"expected another {bad.text}")
            raise self.unexpected(bad, "accepted: names, numbers, comparisons, in, and, or, not, parentheses")
        self.place = match.end()
        group = str(match.lastgroup)
        text = match[group]
        kind = _KINDS.get(text.lower(), "name") if group == "word" else _KINDS.get(text, group)
        return _Token(kind, text, match.start(group))

    def advance(self) -> _Token:
        token, self.token = self.token, self.scan()
        return token

    def parse(self) -> Condition:
        tree = self.condition(self.joined("or"))
        if self.token.kind != "end":
            raise self.unexpected(self.token, "expected and, or, or the end")
        return tree

    def joined(self, kind: str) -> Condition | _Token:
        """Read parts joined by `or`, or those joined by `and`; an operand alone comes back as its token."""
        read = self.compared if kind == "and" else functools.partial(self.joined, "and")
        left = read()
        if self.token.kind != kind:
            return left
        parts = [self.condition(left)]
        while self.token.kind == kind:
            self.advance()
            parts.append(self.condition(read()))
        return And(tuple(parts)) if kind == "and" else Or(tuple(parts))

    def compared(self) -> Condition | _Token:
        left = self.prefix()
        return self.comparison(self.operand(left, self.token)) if self.token.kind in _RELATIONS else left

    def prefix(self) -> Condition | _Token:
        token = self.advance()
        if token.kind == "name" and token.text.lower() == "before" and self.token.kind == "(":
            return self.precedence(token)
        if token.kind in _OPERANDS:
            return token
        if token.kind == "-":
            if self.token.kind != "number":
                raise self.unexpected(self.token, "expected a number after the minus sign")
            return _Token("number", "-" + self.advance().text, token.start)
        if token.kind not in ("(", "not"):
            raise self.unexpected(token, f"expected a condition such as {self.example}")
        self.depth += 1
        if self.depth > DEEPEST_NESTING:
            raise self.error("too deep a nesting", token, f"accepted: up to {DEEPEST_NESTING} levels")
        inner: Condition | _Token
        if token.kind == "not":
            inner = Not(self.condition(self.compared()))
        else:
            inner = self.joined("or")
            if self.token.kind != ")":
                raise self.unexpected(self.token, f"expected ')' for the '(' at column {token.start + 1}")
            self.advance()
        self.depth -= 1
        return inner

    def precedence(self, word: _Token) -> Before:
        self.advance()
        first, comma, second, closing = (self.advance() for _ in range(4))
        for token, kind in ((first, "name"), (comma, ","), (second, "name"), (closing, ")")):
            if token.kind != kind:
                raise self.unexpected(token, "expected two axes, as in before(blur, noise)")
        if not self.sequenced:
            why = "the order of application does not count in this space; it does in one with order_sensitive = true"
            raise self.error("'before'", word, why)
        for token in (first, second):
            if token.text not in self.sequenced:
                hint = suggest(token.text, self.sequenced)
                raise self.error(f"unknown axis '{printable(token.text)}'", token, hint)
        if first.text == second.text:
            raise self.error(f"'{printable(first.text)}' before itself", first, "expected two different axes")
        found = Before(first.text, second.text)
        self.used.add(str(found))
        return found

    def condition(self, found: Condition | _Token) -> Condition:
        if not isinstance(found, _Token):
            return found
        if found.kind == "name" and found.text not in self.names:
            raise self.unknown(found, [])
        hint = f"did you mean '{found.text} > 0'?" if found.kind == "name" else f"expected {self.example}"
        raise self.error(f"'{printable(found.text)}' is not a condition", found, hint)

    def operand(self, found: Condition | _Token, sign: _Token) -> _Token:
        if isinstance(found, _Token):
            return found
        raise self.unexpected(sign, "a condition cannot be compared; expected and, or, or the end")

    def comparison(self, first: _Token) -> Inequality:
        tokens, signs = [first], []
        members: list[_Token] = []
        while self.token.kind in _RELATIONS:
            sign = self.advance()
            if members:
                raise self.unexpected(sign, "a set cannot be compared; expected and, or, or the end")
            if sign.kind in _COMPARE:
                signs.append(sign.kind)
                tokens.append(self.operand(self.prefix(), sign))
                continue
            if sign.kind == "not" and self.advance().kind != "in":
                raise self.unexpected(sign, "expected a comparison, in, not in, and, or")
            signs.append("in" if sign.kind == "in" else "not in")
            members = self.members()
        return self.resolve(tokens, signs, members)

    def members(self) -> list[_Token]:
        opening = self.advance()
        closing = _CLOSING.get(opening.kind)
        if closing is None:
            raise self.unexpected(opening, "expected a set such as {1, 3}")
        members: list[_Token] = []
        while self.token.kind != closing:
            if self.token.kind not in (*_OPERANDS, "-"):
                raise self.unexpected(self.token, f"expected a number, a level or '{closing}'")
            members.append(self.operand(self.prefix(), opening))
            if self.token.kind == ",":
                self.advance()
            elif self.token.kind != closing:
                raise self.unexpected(self.token, f"expected ',' or '{closing}'")
        if not members:
            raise self.error("empty set", opening, "expected numbers or levels, such as {1, 3}")
        self.advance()
        return members

    def resolve(self, tokens: list[_Token], signs: list[str], members: list[_Token]) -> Inequality:
        """Resolve every name as a column, or as a level of the column next to it."""
        columns = [t.text if t.kind == "name" and t.text in self.names else None for t in tokens]
        operands: list[Operand] = []
        for i, (token, column) in enumerate(zip(tokens, columns, strict=True)):
            beside = [c for c in columns[max(i - 1, 0) : i + 2] if c is not None]
            operands.append(ColumnName(column) if column is not None else self.constant(token, beside))
        if members:
            beside = [c for c in columns[-1:] if c is not None]
            operands.append(Choice(tuple(self.constant(member, beside) for member in members)))
        for left, right, token in zip(operands, operands[1:], tokens, strict=False):
            if not isinstance(left, ColumnName) and not isinstance(right, ColumnName):
                known = ", ".join(sorted(self.names))
                raise self.error(f"no column beside '{printable(token.text)}'", token, f"known: {known}")
        self.used.update(c for c in columns if c is not None)
        return Inequality(tuple(operands), tuple(signs))

    def constant(self, token: _Token, columns: list[str]) -> Constant:
        if token.kind == "number":
            return Constant(self.number(token))
        level = token.text[1:-1] if token.kind == "string" else token.text
        values = {self.levels[c][level] for c in columns if level in self.levels.get(c, {})}
        if not values or any(level not in self.levels.get(c, {}) for c in columns):
            raise self.unknown(token, columns)
        if len(values) > 1:
            differs = f"it differs between {' and '.join(columns)}"
            raise self.error(f"ambiguous level '{printable(level)}'", token, differs)
        return Constant(values.pop(), level)

    def number(self, token: _Token) -> float:
        # The length comes first: Python refuses, slowly, to convert thousands of digits.
        if len(token.text) <= 32:
            value = int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)
            if abs(value) < LARGEST_NUMBER:
                return value
        what = f"number '{printable(token.text, 20)}' is too long or too large"
        raise self.error(what, token, "accepted: below 10^15, in at most 32 characters")

    def unknown(self, token: _Token, columns: list[str]) -> InputError:
        levels = {level for column in columns for level in self.levels.get(column, {})}
        if token.kind == "name" and token.text in self.names:
            return self.unexpected(token, "a set holds numbers and levels")
        if token.kind == "name":
            hint = suggest(token.text, levels.union(self.names))
            return self.error(f"unknown name '{printable(token.text)}'", token, hint)
        hint = suggest(token.text[1:-1], levels) if levels else "no levels are named here"
        return self.error(f"unknown level {printable(token.text)}", token, hint)


@dataclass(frozen=True)
class Query:
    """A compiled query; `str(query)` is its canonical form, which compiles to the same tree."""

    text: str
    tree: Condition
    names: frozenset[str]

    def __str__(self) -> str:
        return str(self.tree)

    def evaluate(self, columns: Columns) -> Bools:
        return _evaluate(self.tree, columns)

    def without(self, name: str) -> Query | None:
        """Return the query without its comparisons that name a column: true where one of their outcomes makes it so.

        None if that is always true.
        """
        tree = _without(self.tree, name)
        return None if tree is None else Query(str(tree), tree, self.names - {name})

    def equated(self, name: str) -> list[float]:
        """Return the values that the query compares a column with by ==, != or in."""
        found: list[float] = []
        for node in comparisons(self.tree):
            if isinstance(node, Before):
                continue
            for sign, *pair in zip(node.operators, node.operands, node.operands[1:], strict=False):
                if sign in _EQUATIONS and ColumnName(name) in pair:
                    found += [one.value for one in pair if isinstance(one, Constant)]
                    found += [one.value for choice in pair if isinstance(choice, Choice) for one in choice.members]
        return found


def compile(  # noqa: A001 - the word for it, and always written query.compile
    text: str, names: Iterable[str], levels: Levels | None = None, sequenced: Sequence[str] = ()
) -> Query:
    """Compile a query over the columns `names`; `levels` gives the level names of a column.

    `sequenced` are the axes whose order of application counts: the query may ask which is applied before which.
    """
    if not isinstance(text, str):
        raise InputError(f"query: got a {type(text).__name__}; accepted: text such as 'zoom > 2'")
    if len(text) > LONGEST_TEXT:
        raise InputError(f"query: {len(text)} characters; accepted: up to {LONGEST_TEXT}")
    parser = _Parser(text, names, levels or {}, sequenced)
    tree = parser.parse()
    return Query(text, tree, frozenset(parser.used))
