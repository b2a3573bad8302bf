from __future__ import annotations

import itertools
import operator
import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.space.query import DEEPEST_NESTING, LONGEST_TEXT
from testifai.space.query import compile as parse

NAMES = ["zoom", "blur", "order", "severity"]
LEVELS = {"blur": {"off": 0, "low": 1, "very high": 5}, "zoom": {"off": 0, "most": 2}}

# A small space written down by hand: two axes, every configuration, and the two sums.
ZOOM, BLUR = (0, 1, 2), (0, 1, 3, 5)
TESTS = [
    {"zoom": z, "blur": b, "order": (z > 0) + (b > 0), "severity": z + b} for z, b in itertools.product(ZOOM, BLUR)
]
COLUMNS = {
    "zoom": np.array(ZOOM, np.int8)[:, None],
    "blur": np.array(BLUR, np.int8)[None, :],
    "order": np.array([t["order"] for t in TESTS]).reshape(3, 4),
    "severity": np.array([t["severity"] for t in TESTS]).reshape(3, 4),
}


def selected(text, names=NAMES, levels=LEVELS):
    """The tests a query selects, as (zoom, blur)."""
    chosen = np.broadcast_to(parse(text, names, levels).evaluate(COLUMNS), (3, 4)).reshape(-1)
    return [(t["zoom"], t["blur"]) for t, c in zip(TESTS, chosen, strict=True) if c]


def where(condition):
    return [(t["zoom"], t["blur"]) for t in TESTS if condition(**t)]


def message(text, names=NAMES, levels=LEVELS):
    with pytest.raises(InputError) as caught:
        parse(text, names, levels)
    said = str(caught.value)
    assert said.startswith("query: ")
    assert len(said.splitlines()) == 1
    return said


class TestMeaning:
    @pytest.mark.parametrize(
        ("text", "condition"),
        [
            ("zoom > 1", lambda zoom, **_: zoom > 1),
            ("zoom≥1", lambda zoom, **_: zoom >= 1),
            ("zoom ≤ 1", lambda zoom, **_: zoom <= 1),
            ("zoom = 1", lambda zoom, **_: zoom == 1),
            ("zoom ≠ 1", lambda zoom, **_: zoom != 1),
            ("3 == blur", lambda blur, **_: blur == 3),
            ("blur > 1.5", lambda blur, **_: blur > 1.5),
            ("blur > .5e1", lambda **_: False),
            ("blur > -1", lambda **_: True),
            ("blur > −1", lambda **_: True),
            ("zoom > blur", lambda zoom, blur, **_: zoom > blur),
            ("1 <= blur < 5", lambda blur, **_: 1 <= blur < 5),
            ("1 > zoom < blur != 3", lambda zoom, blur, **_: 1 > zoom < blur != 3),
            ("0 < blur in {1, 5}", lambda blur, **_: 0 < blur in {1, 5}),
            ("blur in {1, 3}", lambda blur, **_: blur in {1, 3}),
            ("blur in [1, 3,]", lambda blur, **_: blur in {1, 3}),
            ("blur IN (1)", lambda blur, **_: blur == 1),
            ("blur not in {-1, 3, 5.0}", lambda blur, **_: blur not in {3, 5}),
            ("(zoom) > (1)", lambda zoom, **_: zoom > 1),
            ("zoom > 0 & blur == 1", lambda zoom, blur, **_: zoom > 0 and blur == 1),
            (
                "zoom > 1 | blur == 1 & zoom == 0",
                lambda zoom, blur, **_: zoom > 1 or (blur == 1 and zoom == 0),
            ),
            ("~ zoom > 1", lambda zoom, **_: zoom <= 1),
            ("not zoom > 1 and blur == 1", lambda zoom, blur, **_: zoom <= 1 and blur == 1),
            ("NOT (zoom > 1 Or blur == 1)", lambda zoom, blur, **_: zoom <= 1 and blur != 1),
            ("!zoom>1&&blur!=1||zoom=0", lambda zoom, blur, **_: (zoom <= 1 and blur != 1) or zoom == 0),
            ("¬ zoom>1 ∧ blur=1 ∨ zoom=0", lambda zoom, blur, **_: (zoom <= 1 and blur == 1) or zoom == 0),
            ("order >= 2 and severity < 4", lambda order, severity, **_: order >= 2 and severity < 4),
            ("blur == low", lambda blur, **_: blur == 1),
            ("blur <= off", lambda blur, **_: blur == 0),
            ("'very high' == blur", lambda blur, **_: blur == 5),
            ('blur in {low, "very high"}', lambda blur, **_: blur in {1, 5}),
            ("off < blur <= low", lambda blur, **_: blur == 1),
            ("zoom == off == blur", lambda zoom, blur, **_: zoom == blur == 0),
            ("zoom\n >\t1", lambda zoom, **_: zoom > 1),
        ],
    )
    def test_examples(self, text, condition):
        assert selected(text) == where(condition)

    def test_classes_of_inputs_by_number_or_name(self):
        labels = {"label": np.array([0, 3, 5, 3])}
        levels = {"label": {"stop": 3, "give way": 5, "order": 0}}
        for text in ("label in {3, 5}", 'label in {stop, "give way"}', "label != 'order'"):
            assert parse(text, ["label"], levels).evaluate(labels).tolist() == [False, True, True, True]

    def test_names_of_other_scripts(self):
        column = {"ज़ूम": np.array([1, 2])}
        assert parse("ज़ूम≥2", column).evaluate(column).tolist() == [False, True]

    def test_only_the_columns_used_are_touched(self):
        query = parse("2 <= zoom or blur == 1", NAMES)
        assert query.names == {"zoom", "blur"}
        assert query.text == "2 <= zoom or blur == 1"
        columns = {"zoom": np.zeros((3, 1)), "blur": np.zeros((1, 4))}
        assert query.evaluate(columns).shape == (3, 4)
        assert parse("zoom > 1", NAMES).evaluate(columns).shape == (3, 1)

    def test_nan_is_never_smaller_or_larger(self):
        quality = {"quality": np.array([np.nan, 0.1])}
        assert parse("quality <= 0.5", quality).evaluate(quality).tolist() == [False, True]

    def test_arguments_stay_as_they_are(self):
        columns = {name: column.copy() for name, column in COLUMNS.items()}
        parse("not (zoom > 1 or severity in {1, 2})", NAMES).evaluate(columns)
        assert all(np.array_equal(columns[name], COLUMNS[name]) for name in columns)

    @pytest.mark.parametrize(
        ("text", "canonical"),
        [
            ("zoom>1&blur=1", "zoom > 1 and blur == 1"),
            ("((zoom > 1 ∨ blur≠1)) ∧ zoom<2", "(zoom > 1 or blur != 1) and zoom < 2"),
            ("~(zoom > 1 & blur == low)", 'not (zoom > 1 and blur == "low")'),
            ("2<=zoom<=4 or blur not in [1,3]", "2 <= zoom <= 4 or blur not in {1, 3}"),
        ],
    )
    def test_canonical_form(self, text, canonical):
        assert str(parse(text, NAMES, LEVELS)) == canonical


class TestPaper:
    """Table 2 of the TestifAI paper: twelve queries over three axes of six levels."""

    AXES = ("a", "b", "c")
    GRID = np.indices((6, 6, 6))
    OCTANTS = tuple(
        " and ".join(f"{axis} {side}" for axis, side in zip("abc", sides, strict=True))
        for sides in itertools.product(("<= 2", ">= 3"), repeat=3)
    )
    CORNERS = tuple(f"a <= {s} and b <= {s} and c <= {s}" for s in (1, 3, 4, 5))
    MEASURED = (19, 15, 15, 9, 15, 9, 9, 0, 7, 37, 61, 91)
    INFERRED = (8, 12, 12, 18, 12, 18, 18, 27, 1, 27, 64, 125)

    @pytest.mark.parametrize(
        ("text", "measured", "inferred"), list(zip(OCTANTS + CORNERS, MEASURED, INFERRED, strict=True))
    )
    def test_published_numbers_of_tests(self, text, measured, inferred):
        columns = dict(zip(self.AXES, self.GRID, strict=True)) | {"order": (self.GRID > 0).sum(axis=0)}
        low = parse(f"({text}) and order <= 2", columns).evaluate(columns)
        high = parse(f"({text}) and order >= 3", columns).evaluate(columns)
        assert (low.sum(), high.sum()) == (measured, inferred)


# --- random expressions against brute force ---

COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
SPELLINGS = {
    "<=": ["<=", "≤"],
    ">=": [">=", "≥"],
    "==": ["==", "="],
    "!=": ["!=", "≠"],
    "and": ["and", "AND", "And", "&", "&&", "∧"],
    "or": ["or", "OR", "|", "||", "∨"],
    "not": ["not", "NOT", "~", "!", "¬"],
}


class Expressions:
    """Random trees of tuples, their text in random spelling, and their truth by plain Python."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def tree(self, depth):
        kind = self.random.choice(["and", "or", "not", "chain", "in"] if depth else ["chain", "in"])
        if kind in ("and", "or"):
            return kind, [self.tree(depth - 1) for _ in range(self.random.randint(2, 3))]
        if kind == "not":
            return kind, self.tree(depth - 1)
        if kind == "in":
            column = self.random.choice(NAMES)
            members = [self.constant(column) for _ in range(self.random.randint(1, 3))]
            return kind, ("column", column), self.random.random() < 0.5, members
        return self.chain()

    def chain(self):
        columns = [self.random.choice(NAMES) for _ in range(self.random.randint(1, 2))]
        operands = []
        for column in columns:
            if self.random.random() < 0.5:
                operands.append(self.constant(column, between=bool(operands)))
            operands.append(("column", column))
        if len(operands) == 1 or self.random.random() < 0.5:
            operands.append(self.constant(columns[-1]))
        return "chain", operands, [self.random.choice(list(COMPARE)) for _ in operands[1:]]

    def constant(self, column, between=False):
        levels = LEVELS.get(column, {})
        if levels and not between and self.random.random() < 0.3:
            name = self.random.choice(list(levels))
            return "level", name, levels[name]
        return "number", self.random.choice([-1, 0, 1, 2, 3, 4, 5, 6, 0.5, 2.5, 3.0])

    def text(self, tree, inside=0):
        kind = tree[0]
        if kind in ("and", "or"):
            own = 2 if kind == "and" else 1
            parts = [self.text(part, own + 1) for part in tree[1]]
            body = parts[0] + "".join(self.spaced(kind) + part for part in parts[1:])
        elif kind == "not":
            own, body = 3, self.spelled("not") + self.space(1) + self.text(tree[1], 3)
        elif kind == "in":
            own, word = 4, " not" + self.space(1) + "in" if tree[2] else " in"
            body = self.operand(tree[1]) + word + self.members(tree[3])
        else:
            own, body = 4, self.operand(tree[1][0])
            for sign, operand in zip(tree[2], tree[1][1:], strict=True):
                body += self.space() + self.spelled(sign) + self.space() + self.operand(operand)
        if own < inside or self.random.random() < 0.2:
            return "(" + self.space() + body + self.space() + ")"
        return body

    def members(self, members):
        opening, closing = self.random.choice(["{}", "[]", "()"])
        comma = self.space() + "," + self.space()
        return self.space() + opening + comma.join(map(self.constant_text, members)) + closing

    def operand(self, operand):
        text = operand[1] if operand[0] == "column" else self.constant_text(operand)
        return f"( {text})" if self.random.random() < 0.1 else text

    def constant_text(self, constant):
        if constant[0] == "number":
            return str(constant[1])
        quote = self.random.choice(["'", '"'] if " " in constant[1] else ["'", '"', ""])
        return quote + constant[1] + quote

    def spelled(self, word):
        return self.random.choice(SPELLINGS.get(word, [word]))

    def spaced(self, word):
        return self.space(1) + self.spelled(word) + self.space(1)

    def space(self, least=0):
        return " " * self.random.randint(least, 2)


def value(operand, test):
    return test[operand[1]] if operand[0] == "column" else operand[-1]


def truth(tree, test):
    kind = tree[0]
    if kind == "and":
        return all(truth(part, test) for part in tree[1])
    if kind == "or":
        return any(truth(part, test) for part in tree[1])
    if kind == "not":
        return not truth(tree[1], test)
    if kind == "in":
        return (value(tree[1], test) in [value(m, test) for m in tree[3]]) != tree[2]
    values = [value(operand, test) for operand in tree[1]]
    return all(COMPARE[sign](a, b) for sign, a, b in zip(tree[2], values, values[1:], strict=False))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_random_expressions_agree_with_brute_force(seed, depth):
    agree(seed, depth)


@pytest.mark.simulation
@settings(max_examples=10_000, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_many_random_expressions_agree_with_brute_force(seed, depth):
    agree(seed, depth)


def agree(seed, depth):
    make = Expressions(seed)
    tree = make.tree(depth)
    text = make.text(tree)
    query = parse(text, NAMES, LEVELS)
    found = np.broadcast_to(query.evaluate(COLUMNS), (3, 4)).reshape(-1).tolist()
    assert found == [truth(tree, test) for test in TESTS], text
    again = parse(str(query), NAMES, LEVELS)
    assert (again.tree, str(again), again.names) == (query.tree, str(query), query.names)


class TestMistakes:
    def test_unknown_name(self):
        assert message("zom > 2", ["zoom", "blur", "order", "severity"], None) == (
            "query: unknown name 'zom' at column 1 of \"zom > 2\": "
            "did you mean 'zoom'? (known: blur, order, severity, zoom)"
        )

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "unexpected end at column 1"),
            ("  ", "unexpected end at column 3"),
            ("zoom", "'zoom' is not a condition at column 1 of \"zoom\": did you mean 'zoom > 0'?"),
            ("not zoom", "'zoom' is not a condition at column 5"),
            ("zoom > 2 or 3", "'3' is not a condition at column 13"),
            ("zoom > 2 or zom", "unknown name 'zom' at column 13"),
            ("zoom >", "unexpected end at column 7"),
            ("zoom > > 2", "unexpected '>' at column 8"),
            ("> 2", "unexpected '>' at column 1"),
            ("zoom > 2 and", "unexpected end at column 13"),
            (
                "(zoom > 2",
                "unexpected end at column 10 of \"(zoom > 2\": expected ')' for the '(' at column 1",
            ),
            ("zoom > 2)", "unexpected ')' at column 9"),
            ("zoom > 2 blur > 1", "unexpected 'blur' at column 10"),
            ("zoom > 2 not blur > 1", "unexpected 'not' at column 10"),
            ("zoom not 3", "unexpected 'not' at column 6"),
            ("(zoom > 2) == 1", "unexpected '==' at column 12"),
            ("1 < (zoom > 2)", "unexpected '<' at column 3"),
            ("zoom > not blur > 1", "unexpected '>' at column 6"),
            ("1 < 2", "no column beside '1' at column 1"),
            ("zoom > 1 and 1 < 2 < zoom", "no column beside '1' at column 14"),
            ("3 in {1, 3}", "no column beside '3' at column 1"),
            ("zoom in 3", "unexpected '3' at column 9 of \"zoom in 3\": expected a set such as {1, 3}"),
            ("zoom in {}", "empty set at column 9"),
            ("zoom in {1", "unexpected end at column 11"),
            ("zoom in {1]", "unexpected ']' at column 11"),
            ("zoom in {,}", "unexpected ',' at column 10"),
            ("zoom in {blur}", "unexpected 'blur' at column 10"),
            ("zoom in {1 2}", "unexpected '2' at column 12"),
            ("zoom in {1} == 2", "unexpected '==' at column 13"),
            ("zoom in {1, {2}}", "unexpected '{' at column 13"),
            ("zoom == hgh", "unknown name 'hgh' at column 9"),
            ("blur == lw", "unknown name 'lw' at column 9 of \"blur == lw\": did you mean 'low'?"),
            ("blur == 'lw'", "unknown level 'lw' at column 9 of \"blur == 'lw'\": did you mean 'low'?"),
            ("blur == 'zoom'", "unknown level 'zoom' at column 9"),
            (
                "order == 'low'",
                "unknown level 'low' at column 10 of \"order == 'low'\": no levels are named here",
            ),
            ("blur == 'low", "unclosed quote at column 9"),
            ("zoom + 1 > 2", "unexpected '+' at column 6"),
            ("-zoom > 2", "unexpected 'zoom' at column 2"),
            ("zoom > --2", "unexpected '-' at column 9"),
            ("zoom <> 2", "unexpected '>' at column 7"),
            ("zoom ! = 2", "unexpected '!' at column 6"),
            ("0x10 < zoom", "'0' is not a condition at column 1"),
            ("1_0 < zoom", "'1' is not a condition at column 1"),
            ("zoom > True", "unknown name 'True' at column 8"),
            ("__import__('os')", "unknown name '__import__' at column 1"),
            ("zoom.__class__ > 1", "unexpected '.' at column 5"),
            ("zoom > 2; import os", "unexpected ';' at column 9"),
            ("zoom > 2\x00", r"unexpected '\x00' at column 9"),
            ("😀 > 2", "unexpected '😀' at column 1"),
            ("zoom\u2028> \ud800", r"unexpected '\ud800' at column 8"),
            ("zoom > " + "9" * 400, "number '9999999999999999999…' is too long or too large at column 8"),
            ("zoom > " + "0" * 400 + "1", "too long or too large at column 8"),
            ("zoom > 1e999", "number '1e999' is too long or too large at column 8"),
            ("zoom > 1000000000000000", "too long or too large at column 8"),
        ],
    )
    def test_points_at_the_token(self, text, said):
        assert said in message(text)

    def test_a_level_that_differs_between_its_neighbours(self):
        levels = {"zoom": {"low": 1}, "blur": {"low": 2}}
        assert "ambiguous level 'low' at column 8" in message("zoom < low < blur", NAMES, levels)
        assert "unknown name 'low' at column 8" in message("zoom < low < order", NAMES, levels)

    @pytest.mark.parametrize("text", [None, 3, b"zoom > 2", ["zoom > 2"]])
    def test_not_text(self, text):
        assert "accepted: text" in message(text)

    def test_length(self):
        assert "accepted: up to 10000" in message("z" * 1_000_000)
        parse("zoom > 2".ljust(LONGEST_TEXT), NAMES)
        assert "10001 characters" in message("zoom > 2".ljust(LONGEST_TEXT + 1))

    @pytest.mark.parametrize(
        "text",
        [
            "(" * 100_000 + "zoom > 2" + ")" * 100_000,
            "(" * 4_000 + "zoom > 2" + ")" * 4_000,
            "(" * 9_000,
            ")" * 9_000,
            "[" * 9_000,
            "not " * 2_000 + "zoom > 2",
            "~" * 9_000 + "zoom > 2",
            "zoom in " * 1_000,
            "-" * 9_000,
            "zoom > " * 1_000,
            "\x00" * 9_000,
            "x" * 10_000,
            "zoom == '" + "x" * 9_000 + "'",
        ],
    )
    def test_absurd_queries(self, text):
        assert len(message(text)) < 400

    @pytest.mark.parametrize("opening", ["({})", "not {}", "(not {})", "(blur == 1 or blur == 2 and ({}))"])
    def test_the_deepest_nesting_works(self, opening):
        text = "zoom > 1"
        for _ in range(DEEPEST_NESTING // (1 + opening.count("not") * opening.count("(") + opening.count("or"))):
            text = opening.format(text)
        query = parse(text, NAMES)
        assert query.evaluate(COLUMNS).any()
        assert parse(str(query), NAMES).tree == query.tree

    def test_long_flat_queries_work(self):
        text = " or ".join(["zoom > 1"] * 800)
        assert selected(text) == selected("zoom > 1")
        assert selected("zoom > 1 & ~ zoom > 1 | " * 300 + "blur == 1") == selected("blur == 1")


pieces = st.sampled_from([*NAMES, *SPELLINGS, *"<>=!&|~()[]{},-.'\"", "in", "1", "2.5", " ", "low", "\n", "é", "∧"])


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=30), st.lists(pieces, max_size=20).map("".join)))
@example("zoom >\x852")
@example('zoom == "\n"')
def test_any_text_compiles_or_is_refused_in_one_line(text):
    refused = None
    try:
        query = parse(text, NAMES, LEVELS)
    except InputError as error:
        refused = str(error)
    if refused is not None:
        assert len(refused.splitlines()) == 1
        return
    query.evaluate(COLUMNS)
    assert parse(str(query), NAMES, LEVELS).tree == query.tree


FIRST = {"zoom": np.array([1, 1, 0]), "before(zoom, blur)": np.array([True, False, False])}


class TestWithout:
    """A query without a column: true where some outcome of each comparison with it makes the query true."""

    ZOOM = np.arange(4)

    @staticmethod
    def made(random, depth, comparisons):
        """Return a random condition's text, and a function (zoom, outcome of each comparison with quality) -> bool."""
        kind = random.choice(["zoom", "quality", "chain"] if not depth else ["not", "and", "or", "and", "or", "zoom"])
        limit = random.randrange(4)
        if kind == "zoom":
            return f"zoom > {limit}", lambda zoom, outcomes: zoom > limit
        if kind in ("quality", "chain"):
            comparisons.append(number := len(comparisons))
            if kind == "quality":
                return "quality > 3", lambda zoom, outcomes: outcomes[number]
            return f"{limit} < zoom < quality", lambda zoom, outcomes: limit < zoom and outcomes[number]
        parts = [TestWithout.made(random, depth - 1, comparisons) for _ in range(1 if kind == "not" else 2)]
        if kind == "not":
            return f"not ({parts[0][0]})", lambda *given: not parts[0][1](*given)
        combine = all if kind == "and" else any
        return f" {kind} ".join(f"({one})" for one, _ in parts), lambda *given: combine(one(*given) for _, one in parts)

    @pytest.mark.parametrize("seed", range(10))
    def test_it_is_the_brute_force_over_all_outcomes(self, seed):
        random_ = random.Random(seed)
        for _ in range(30):
            comparisons = []
            text, holds = self.made(random_, 4, comparisons)
            if len(comparisons) > 7:
                continue
            cases = list(itertools.product([False, True], repeat=len(comparisons)))
            expected = [any(holds(zoom, case) for case in cases) for zoom in self.ZOOM.tolist()]
            rest = parse(text, ["zoom", "quality"]).without("quality")
            found = np.ones(4, bool) if rest is None else rest.evaluate({"zoom": self.ZOOM})
            assert found.tolist() == expected, text
            assert rest is None or parse(str(rest), ["zoom"]).tree == rest.tree

    @pytest.mark.parametrize(
        ("text", "rest"),
        [
            ("not (zoom > 2 or quality > 3)", "not zoom > 2"),
            ("not (zoom > 2 and quality > 3)", "None"),
            ("not (zoom > 2 or not quality > 3)", "not zoom > 2"),
            ("1 < zoom < quality", "1 < zoom"),
            ("zoom > 2 or quality > 3", "None"),
        ],
    )
    def test_examples(self, text, rest):
        assert str(parse(text, ["zoom", "quality"]).without("quality")) == rest


class TestBefore:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("before(zoom, blur)", [True, False, False]),
            ("not BEFORE( zoom,blur )", [False, True, True]),
            ("zoom > 0 and ¬before(zoom, blur)", [False, True, False]),
            ("before(zoom, blur) or zoom == 0", [True, False, True]),
        ],
    )
    def test_it_is_a_condition(self, text, expected):
        query = parse(text, NAMES, LEVELS, ["zoom", "blur"])
        assert query.evaluate(FIRST).tolist() == expected
        assert "before(zoom, blur)" in query.names
        assert parse(str(query), NAMES, LEVELS, ["zoom", "blur"]).tree == query.tree

    def test_a_limit_on_quality_leaves_it_alone(self):
        query = parse("before(zoom, blur) and quality < 1", [*NAMES, "quality"], LEVELS, ["zoom", "blur"])
        assert str(query.without("quality")) == "before(zoom, blur)"
        assert query.equated("quality") == []
        assert parse("label in {3, 5} or label != 7 or label > 8", ["label"]).equated("label") == [3, 5, 7]

    def test_an_axis_may_have_its_name(self):
        assert parse("before > 2", ["before"]).evaluate({"before": np.array([1, 3])}).tolist() == [False, True]

    @pytest.mark.parametrize(
        ("text", "sequenced", "said"),
        [
            ("before(zoom, blur)", [], "the order of application does not count in this space; it does in one with"),
            ("before(zoom, blr)", ["zoom", "blur"], "unknown axis 'blr' at column 14"),
            ("before(zoom, order)", ["zoom", "blur"], "unknown axis 'order'"),
            ("before(blur, blur)", ["zoom", "blur"], "'blur' before itself at column 8"),
            ("before(blur)", ["zoom", "blur"], "expected two axes, as in before(blur, noise)"),
            ("before(blur, 3)", ["zoom", "blur"], "unexpected '3'"),
            ("before(blur, zoom", ["zoom", "blur"], "unexpected end"),
            ("before(blur, zoom) > 1", ["zoom", "blur"], "a condition cannot be compared"),
        ],
    )
    def test_mistakes_are_one_line(self, text, sequenced, said):
        with pytest.raises(InputError) as caught:
            parse(text, NAMES, LEVELS, sequenced)
        assert said in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
