"""What fields mean, written once: the string below a field, read from the source when it is asked for."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise


@cache
def below_fields(kind: type) -> Mapping[str, str]:
    """The strings below the fields that a class itself declares; nothing of a class whose source is not there.

    >>> from testifai.data.npz import NpzPart
    >>> below_fields(NpzPart)["npz"]
    'The file.'
    """
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):
        return {}
    body = next(node.body for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
