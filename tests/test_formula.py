"""The formula engine: what it renders evaluates back, and what it cannot explain it refuses."""

import ast
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import formula
from advisor.formula import ceil_div, maximum, minimum, number_text, render, term


def evaluate(text: str) -> float:
    """The value of rendered text, read as a person would read it."""
    python = text.replace(",", "").replace(";", ",").replace("·", "*").replace("^", "**")
    python = re.sub("⌈", "ceil_(", python).replace("⌉", ")")
    return eval(python, {"ceil_": math.ceil, "max": max, "min": min})


NAMES = {"a": 3, "b": 5, "c": 7}


def expressions():
    """Random expressions in the grammar that terms may use."""
    leaves = st.sampled_from([ast.Name(id=name) for name in NAMES]) | st.integers(1, 9).map(
        lambda number: ast.Constant(value=number)
    )

    def grow(child):
        binary = st.builds(
            lambda left, operator, right: ast.BinOp(left=left, op=operator, right=right),
            child,
            st.sampled_from([ast.Add(), ast.Sub(), ast.Mult(), ast.Div()]),
            child,
        )
        call = st.builds(
            lambda name, left, right: ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]),
            st.sampled_from(["maximum", "minimum"]),
            child,
            child,
        )
        negative = child.map(lambda node: ast.UnaryOp(op=ast.USub(), operand=node))
        power = child.map(lambda node: ast.BinOp(left=node, op=ast.Pow(), right=ast.Constant(value=2)))
        return binary | call | negative | power

    return st.recursive(leaves, grow, max_leaves=8)


@given(expressions())
@settings(max_examples=400, deadline=None)
def test_rendered_numbers_evaluate_to_the_value_of_the_expression(tree):
    source = ast.unparse(ast.fix_missing_locations(ast.Expression(body=tree)))
    functions = {"maximum": max, "minimum": min, **NAMES}
    try:
        value = eval(source, functions)
    except (ZeroDivisionError, OverflowError):
        return
    assert evaluate(render(tree, lambda name: number_text(NAMES[name]))) == pytest.approx(value, rel=1e-12)


def test_ceiling_keeps_its_brackets():
    tree = ast.parse("ceil_div(a + 1, b) * 2", mode="eval").body
    assert render(tree, str) == "⌈(a + 1) / b⌉ · 2"


@pytest.mark.parametrize("numerator", [0, 1, 7, 8, 9, 2**52])
def test_ceil_div_is_the_same_for_ints_and_columns(numerator):
    assert ceil_div(numerator, 8) == ceil_div(np.array([float(numerator)]), 8.0)[0]


def test_larger_and_smaller_work_on_columns():
    column = np.array([1.0, 5.0])
    assert maximum(column, 3).tolist() == [3.0, 5.0]
    assert minimum(column, 3).tolist() == [1.0, 3.0]


def test_a_term_with_a_condition_is_refused_at_import():
    with pytest.raises(TypeError, match="may not contain IfExp"):

        @term("x", source="none")
        def conditional(s, b):
            """A condition hides which branch was taken."""
            return s if b else 0


def test_a_term_with_a_statement_is_refused():
    with pytest.raises(TypeError, match="one docstring and one return"):

        @term("x", source="none")
        def two_steps(s):
            """Two statements cannot be one formula."""
            s += 1
            return s * 2


def test_an_argument_outside_the_glossary_is_refused_with_the_nearest_symbol():
    with pytest.raises(TypeError, match=r"'t_p' is not in the glossary; nearest: .*tp"):

        @term("x", source="none")
        def misspelt(t_p):
            """The symbol is tp."""
            return t_p


def test_numbers_are_written_as_a_person_writes_them():
    assert [number_text(value) for value in (4096, 0.5, 1.2, 2.0, 1234.5)] == ["4,096", "0.5", "1.2", "2", "1,234.5"]
    assert formula.number_text(1e-9) == "1e-09"
