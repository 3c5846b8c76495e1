"""The rules' small language: one expression over named facts, for one layout and for columns of layouts alike.

A rule file says ``divides(tensor_parallel, heads)``. The text is read with Python's own parser, every node is held
against a short list, and the result is a function of the named values. Nothing else of Python can be reached. The
same function is called with plain numbers for an answer and with numpy columns for a search.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import Any, Final

from advisor.errors import nearest

Names = Mapping[str, Any]
Evaluate = Callable[[Names], Any]

LONGEST_TEXT: Final = 1_000
LARGEST_LISTED: Final = 10**6


class ExpressionError(ValueError):
    """A text that is not an expression of the language; the message says what is accepted."""


_PLAIN: Final[Mapping[str, Callable[..., Any]]] = {"log2": math.log2, "ceil": math.ceil, "maximum": max, "minimum": min}


def _both(left: Any, right: Any) -> Any:
    return (left != 0) & (right != 0)


def _either(left: Any, right: Any) -> Any:
    return (left != 0) | (right != 0)


def _numpy_or_math(name: str, *values: Any) -> Any:
    """A function of ``math`` for plain numbers, its namesake of numpy for columns."""
    if all(isinstance(value, (int, float)) for value in values):
        return _PLAIN[name](*values)
    import numpy as np  # noqa: PLC0415 - only columns come this far

    return getattr(np, name)(*values)


def divisors(number: int) -> tuple[int, ...]:
    """All whole numbers that divide ``number``, in rising order; for the legal values in a message."""
    if not 0 < number <= LARGEST_LISTED:
        return ()
    small = [candidate for candidate in range(1, math.isqrt(number) + 1) if number % candidate == 0]
    return tuple(sorted({*small, *(number // candidate for candidate in small)}))


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "divides": lambda part, whole: whole % part == 0,
    "is_multiple": lambda whole, part: whole % part == 0,
    "min": lambda *values: reduce(lambda a, b: _numpy_or_math("minimum", a, b), values),
    "max": lambda *values: reduce(lambda a, b: _numpy_or_math("maximum", a, b), values),
    "ceil": lambda value: _numpy_or_math("ceil", value),
    "log2": lambda value: _numpy_or_math("log2", value),
    "divisors": divisors,
    "gcd": lambda left, right: math.gcd(int(left), int(right)),
}

_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True)
class Expression:
    """One expression: its text, the names it reads, and its value for given names."""

    text: str
    names: tuple[str, ...]
    choices: tuple[tuple[str, str], ...]  # (name, word) wherever a name is compared with a word
    _evaluate: Evaluate = field(repr=False, compare=False)

    def __call__(self, names: Names) -> Any:
        """The value: a number, a truth value, or a column of them."""
        return self._evaluate(names)


@cache
def read(text: str) -> Expression:
    """The expression in ``text``.

    Raises:
        ExpressionError: when the text is no expression or holds what the language does not have.
    """
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(f"an expression has at most {LONGEST_TEXT:,} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{text!r} is not an expression") from error
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = tuple(dict.fromkeys(node.id for node in found if id(node) not in called))
    return Expression(text, names, tuple(_choices(tree)), _build(tree))


def _choices(tree: ast.expr) -> list[tuple[str, str]]:
    """Each word that a name is compared with, so that the loader can refuse one that the name never takes."""
    pairs = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            words = [word for side in node.comparators for word in ast.walk(side) if isinstance(word, ast.Constant)]
            pairs += [(node.left.id, word.value) for word in words if isinstance(word.value, str)]
    return pairs


def _build(node: ast.expr) -> Evaluate:
    """The function that a node of the syntax tree stands for."""
    builder = _BUILDERS.get(type(node))
    if builder is None:
        raise ExpressionError(f"an expression may not contain {type(node).__name__}: {ast.unparse(node)}")
    return builder(node)


def _constant(node: ast.Constant) -> Evaluate:
    if not isinstance(node.value, (int, float, str)):
        raise ExpressionError(f"{node.value!r} is neither a number, a word, True nor False")
    return lambda _names: node.value


def _name(node: ast.Name) -> Evaluate:
    return operator.itemgetter(node.id)


def _tuple(node: ast.Tuple) -> Evaluate:
    parts = [_build(part) for part in node.elts]
    return lambda names: tuple(part(names) for part in parts)


def _unary(node: ast.UnaryOp) -> Evaluate:
    inner = _build(node.operand)
    if isinstance(node.op, ast.Not):
        return lambda names: inner(names) == 0
    if isinstance(node.op, ast.USub):
        return lambda names: -inner(names)
    raise ExpressionError(f"an expression may not contain {ast.unparse(node)}")


def _binary(node: ast.BinOp) -> Evaluate:
    operation = _ARITHMETIC.get(type(node.op))
    if operation is None:
        raise ExpressionError(f"an expression may use + - * / // %, not {ast.unparse(node)}")
    left, right = _build(node.left), _build(node.right)
    return lambda names: operation(left(names), right(names))


def _boolean(node: ast.BoolOp) -> Evaluate:
    """``and``, ``or``: what follows a plain value that decides is not read; a column never decides alone."""
    join, decides = (_both, False) if isinstance(node.op, ast.And) else (_either, True)
    first, *rest = [_build(part) for part in node.values]

    def joined(names: Names) -> Any:
        value = first(names)
        for part in rest:
            if value is decides:
                break
            value = join(value, part(names))
        return value

    return joined


def _compare(node: ast.Compare) -> Evaluate:
    if len(node.ops) != 1:
        raise ExpressionError(f"compare two values at a time: {ast.unparse(node)}")
    left, operation, right = _build(node.left), type(node.ops[0]), node.comparators[0]
    if operation in (ast.In, ast.NotIn):
        return _membership(left, right, negated=operation is ast.NotIn)
    if operation not in _COMPARISONS:
        raise ExpressionError(f"an expression may compare with == != < <= > >= in, not {ast.unparse(node)}")
    compare, other = _COMPARISONS[operation], _build(right)
    return lambda names: compare(left(names), other(names))


def _membership(left: Evaluate, right: ast.expr, *, negated: bool) -> Evaluate:
    if not isinstance(right, ast.Tuple):
        raise ExpressionError(f"'in' takes a list in round brackets, not {ast.unparse(right)}")
    accepted = [_build(part) for part in right.elts]

    def member(names: Names) -> Any:
        value = left(names)
        found = reduce(_either, (value == part(names) for part in accepted))
        return found == 0 if negated else found

    return member


def _call(node: ast.Call) -> Evaluate:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in FUNCTIONS or node.keywords:
        close = nearest(name, FUNCTIONS)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(FUNCTIONS)}"
        raise ExpressionError(f"no function is called {name!r}; {hint}")
    function, arguments = FUNCTIONS[name], [_build(argument) for argument in node.args]
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise ExpressionError(f"{name} takes another number of values: {ast.unparse(node)}") from error
    return lambda names: function(*(argument(names) for argument in arguments))


_BUILDERS: Final[Mapping[type[ast.expr], Callable[[Any], Evaluate]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.Call: _call,
}
