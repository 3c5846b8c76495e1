"""A formula is written once: a plain one-expression function becomes value, formula text, numbers and citation.

``@term`` reads the function's own syntax tree. The value comes from calling the function with ints (an answer) or with
numpy columns (a search); the text comes from the same expression, so the two cannot drift apart.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from advisor.columnwise import Number, at_least, at_most
from advisor.errors import nearest
from advisor.symbols import GLOSSARY


def ceil_div(numerator: Number, denominator: Number) -> Number:
    """The quotient rounded up, exact for ints and for columns below 2**53."""
    if isinstance(numerator, int) and isinstance(denominator, int):
        return -(-numerator // denominator)
    import numpy as np  # noqa: PLC0415 - only columns and fractions come this far

    return np.ceil(numerator / denominator)


maximum, minimum = at_least, at_most  # what formulas call them


@dataclass(frozen=True, eq=False)
class Term:
    """One quantity of the memory or timing model.

    Attributes:
        name: the function's name.
        slot: the place it fills; for any case exactly one term fills each slot, or the slot is declared optional.
        source: where the formula comes from: a key of the catalog's sources, and the place in it.
        when: the choices under which it applies, for example ``{"norm": ("rmsnorm",)}``.
    """

    name: str
    slot: str
    function: Callable[..., Number]
    source: str
    when: Mapping[str, tuple[str, ...]]
    symbols: tuple[str, ...]
    summary: str
    _tree: ast.expr = field(repr=False)

    def __call__(self, values: Mapping[str, Number]) -> Number:
        """The value with these symbols, ints or columns."""
        return self.function(*map(values.__getitem__, self.symbols))

    def applies(self, choices: Mapping[str, str]) -> bool:
        """Whether the term counts the case that these choices describe."""
        return all(choices[kind] in accepted for kind, accepted in self.when.items())

    @cached_property
    def evidence(self) -> Literal["derived", "code"]:
        """``derived`` from a paper, whose keys end in a year; ``code``: read in a library, or its tensors counted."""
        return "derived" if re.match(r"\S*-\d{4}\b", self.source) else "code"

    @cached_property
    def formula(self) -> str:
        """The expression as text, in the author's order."""
        return render(self._tree, lambda name: name)

    def substituted(self, values: Mapping[str, Number]) -> str:
        """The expression with the case's numbers in place of its symbols."""
        template, places = self._template
        texts = [number_text(values[symbol]) for symbol in places]
        if any(text[0] == "-" for text in texts):  # a negative number needs its own brackets
            return render(self._tree, dict(zip(places, texts, strict=True)).__getitem__)
        return template % tuple(texts)

    @cached_property
    def _template(self) -> tuple[str, tuple[str, ...]]:
        """The formula's text with a place for each number, and the symbols in the order of the places."""
        names = "|".join(sorted(self.symbols, key=len, reverse=True))
        parts = re.split(rf"(?<![\w.])({names})(?!\w)", self.formula) if names else [self.formula]
        return "".join("%s" if index % 2 else part for index, part in enumerate(parts)), tuple(parts[1::2])


def term(
    slot: str, source: str, *, glossary: Collection[str] = GLOSSARY, **when: str | tuple[str, ...]
) -> Callable[[Callable[..., Number]], Term]:
    """Make a term of a one-expression function whose arguments are symbols of a glossary.

    Raises:
        TypeError: the function holds more than a docstring and one return, or an argument is not in the glossary.
    """
    choices = {kind: (value,) if isinstance(value, str) else value for kind, value in when.items()}

    def decorate(function: Callable[..., Number]) -> Term:
        symbols = tuple(inspect.signature(function).parameters)
        _refuse_unknown(function.__name__, symbols, glossary)
        return Term(
            name=function.__name__,
            slot=slot,
            function=function,
            source=source,
            when=choices,
            symbols=symbols,
            summary=" ".join((inspect.getdoc(function) or "").split()),
            _tree=_expression(function),
        )

    return decorate


def _refuse_unknown(name: str, symbols: Iterable[str], glossary: Collection[str]) -> None:
    for symbol in symbols:
        if symbol not in glossary:
            close = nearest(symbol, glossary)
            raise TypeError(f"{name}: {symbol!r} is not in the glossary; nearest: {', '.join(close) or 'none'}")


def _expression(function: Callable[..., Number]) -> ast.expr:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    statements = [
        node for node in tree.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    if len(statements) != 1 or not isinstance(statements[0], ast.Return) or statements[0].value is None:
        raise TypeError(f"{function.__name__}: a term is one docstring and one return")
    render(statements[0].value, lambda name: name)  # refuses at import what cannot be explained
    return statements[0].value


_OPERATORS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", 1),
    ast.Sub: ("-", 1),
    ast.Mult: ("·", 2),
    ast.Div: ("/", 2),
    ast.Pow: ("^", 4),
}
_ATOM = 9
_FUNCTIONS = {"maximum": "max", "minimum": "min"}


def render(node: ast.expr, name_text: Callable[[str], str]) -> str:
    """The expression as text; ``name_text`` gives each symbol's place.

    Raises:
        TypeError: the expression holds something a reader could not follow, such as a condition.
    """
    return _render(node, name_text)[0]


def _render(node: ast.expr, name_text: Callable[[str], str]) -> tuple[str, int]:
    """Text and binding strength."""
    match node:
        case ast.Name():
            text = name_text(node.id)
            return text, _ATOM if _is_atom(text) else 1
        case ast.Constant(value=int() | float() as value):
            return number_text(value), _ATOM
        case ast.UnaryOp(op=ast.USub()):
            return f"-{_bracket(node.operand, 3, name_text)}", 3
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
            sign, strength = _OPERATORS[type(operator)]
            # The right side of - and / must bind tighter, and so must the base of a power.
            left_needs = strength + (1 if isinstance(operator, ast.Pow) else 0)
            right_needs = strength + (0 if isinstance(operator, (ast.Add, ast.Mult)) else 1)
            left, right = _bracket(node.left, left_needs, name_text), _bracket(node.right, right_needs, name_text)
            if (
                isinstance(operator, ast.Mult)
                and isinstance(node.right, ast.BinOp)
                and isinstance(node.right.op, ast.Div)
            ):
                right = f"({_render(node.right, name_text)[0]})"  # a · (b / c): keep the author's grouping exact
            return f"{left} {sign} {right}", strength
        case ast.Call(func=ast.Name(id="ceil_div"), args=[top, bottom], keywords=[]):
            return f"⌈{_bracket(top, 2, name_text)} / {_bracket(bottom, 3, name_text)}⌉", _ATOM
        case ast.Call(func=ast.Name(id=name), args=[left_node, right_node], keywords=[]) if name in _FUNCTIONS:
            left, right = _render(left_node, name_text)[0], _render(right_node, name_text)[0]
            return f"{_FUNCTIONS[name]}({left}; {right})", _ATOM
        case _:
            raise TypeError(f"a formula may not contain {type(node).__name__}: {ast.unparse(node)}")


def _bracket(node: ast.expr, needs: int, name_text: Callable[[str], str]) -> str:
    text, strength = _render(node, name_text)
    return text if strength >= needs else f"({text})"


def _is_atom(text: str) -> bool:
    return not text.startswith("-")


@lru_cache(maxsize=4096)
def number_text(value: Number) -> str:
    """A number with thousands separators and no needless decimals: ``4,096``, ``0.5``, ``1.2``."""
    if isinstance(value, int):
        return f"{value:,}"
    number = float(value)
    if number.is_integer():
        return f"{int(number):,}"
    whole, _, rest = repr(number).partition(".")
    return repr(number) if "e" in repr(number) else f"{int(whole):,}.{rest}"
