"""The law: its language, its files, its examples, and one check for a layout and for columns of layouts."""

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.catalog.reader import parse_yaml
from advisor.constraints import expression, rulebook
from advisor.constraints.facts import facts
from advisor.constraints.legality import check, condition, legal_rows, require_legal
from advisor.constraints.rules import json_schema
from advisor.errors import AdvisorError
from advisor.phases import MODULE_SLOTS
from advisor.resolve import resolve
from advisor.search import space
from advisor.search.choose import Rows, pick
from advisor.types import CaseArguments, Layout
from advisor.types.arguments import Framework
from tests.spaces import columns_of, every_layout, job

#: What an example need not say: the layout's defaults, and a dense model on eight GPUs.
UNSAID = {
    **Layout().model_dump(),
    "adapters": False, "data_parallel": 1, "framework": "megatron", "global_batch_given": False, "gpus": 8, "heads": 64,
    "kv_heads": 8, "mla": False, "moe": False, "quantized": False, "shard_ranks": 1, "stage_layers_count": 0,
    "stage_layers_given": False, "loss": "standard", "fits": True, "nvme_known": False,
    **{f"recomputes_{name}": False for name in MODULE_SLOTS},
}  # fmt: skip

EXAMPLES = [
    pytest.param(condition(rule), given, kind == "holds", id=f"{rule.id}-{kind}-{place}")
    for rule in rulebook.constraints()
    for kind in ("holds", "breaks")
    for place, given in enumerate(getattr(rule.examples, kind))
]
STEP_EXAMPLES = [
    pytest.param(step, given, kind == "fires", id=f"{step.id}-{kind}-{place}")
    for step in rulebook.law().steps
    for kind in ("fires", "silent")
    for place, given in enumerate(getattr(step.examples, kind))
]


def case_of(**arguments):
    return resolve(CaseArguments(**{"model": "llama-3-8b", "hardware": "1x8 H100-80GB"} | arguments), allow_paths=False)


# --- the language ---------------------------------------------------------------------------------------------------


def test_one_expression_serves_numbers_and_columns():
    read = expression.read("divides(part, whole) and not (word in ('none', 'full')) or max(part, 3) // 2 > 4")
    rows = [(3, 9, "none"), (3, 9, "blocks"), (4, 9, "blocks"), (10, 9, "none")]
    columns = dict(
        zip(("part", "whole", "word"), (np.asarray(column) for column in zip(*rows, strict=True)), strict=True)
    )
    one_by_one = [bool(read(dict(zip(("part", "whole", "word"), row, strict=True)))) for row in rows]
    assert one_by_one == [False, True, False, True]
    assert (read(columns) != 0).tolist() == one_by_one


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 64), st.integers(1, 64), st.integers(0, 5))
def test_the_language_computes_what_python_computes(a, b, c):
    text = "a * 2 + b // 3 - c % (a + 1) <= a * b and not (b - c == 4) or a / b > 1"
    assert bool(expression.read(text)({"a": a, "b": b, "c": c})) == eval(text)


@pytest.mark.parametrize(
    "text",
    [
        "heads.__class__",
        "__import__('os')",
        "(lambda: 1)()",
        "[x for x in (1, 2)]",
        "heads[0]",
        "1 if heads else 2",
        "2 ** 99999",
        "heads := 3",
        "1 < heads < 3",
        "heads in kv_heads",
        "max(*heads)",
        "divides(1)",
        "f'{heads}'",
        "None",
        "",
        "(" * 500,
        "-" * 2000,
    ],
)
def test_nothing_but_the_language_is_read(text):
    with pytest.raises(expression.ExpressionError):
        expression.read(text)


# --- the files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "example", "holds"), EXAMPLES)
def test_a_constraint_does_what_its_examples_say(rule, example, holds):
    names = {**UNSAID, **example}
    assert (not rule.applies(names) or bool(rule.require(names))) is holds


@pytest.mark.parametrize(("step", "example", "fires"), STEP_EXAMPLES)
def test_a_step_fires_as_its_examples_say(step, example, fires):
    assert bool(expression.read(step.when)({**UNSAID, **example})) is fires


def test_every_constraint_of_every_framework_is_reachable():
    used = {name for rule in rulebook.constraints() if rule.frameworks != "all" for name in rule.frameworks}
    assert used == set(facts()["framework"].words)


def test_a_pointer_always_names_an_argument():
    assert {rule.pointer for rule in rulebook.constraints()} <= set(CaseArguments.model_fields)


def test_the_schema_for_editors_is_up_to_date():
    file = rulebook.rules_folder() / "schema.json"
    text = json.dumps(json_schema(), indent=1, sort_keys=True) + "\n"
    if os.environ.get("TRAINFIT_ACCEPT"):
        file.write_text(text)
    assert file.read_text() == text, "run the tests once with TRAINFIT_ACCEPT=1"


# --- what frameworks assert -----------------------------------------------------------------------------------------

ASSERTIONS = Path(__file__).parent / "data" / "framework_assertions.yaml"
ASSERTED = parse_yaml(ASSERTIONS.read_text(encoding="utf-8"), name=ASSERTIONS.name)["assertions"]


@pytest.mark.parametrize("row", ASSERTED, ids=lambda row: row["id"])
def test_what_a_framework_asserts_is_a_rule_or_has_its_reason(row):
    rules = {rule.id: rule for rule in rulebook.constraints()}
    assert bool(row.get("rules")) != bool(row.get("why_none")), "either rules or a reason"
    for name in row.get("rules", ()):
        rule = rules[name]
        ours = row["framework"] in get_args(Framework)
        assert not ours or rule.frameworks == "all" or row["framework"] in rule.frameworks
        assert rule.examples.holds
        assert rule.examples.breaks


def test_each_assertion_is_listed_once():
    ids = [row["id"] for row in ASSERTED]
    assert len(ids) == len(set(ids)) == 81


# --- legality -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", ["megatron", "fsdp2", "deepspeed", "torchtitan"])
def test_a_layout_is_judged_alone_as_it_is_among_many(framework):
    arguments = {"model": "qwen3-30b-a3b", "hardware": "2x8 H100-80GB", "sequence_length": 8192, "micro_batch": 1}
    case = job(**arguments, framework=framework)
    rungs = rulebook.law().ladder.rungs
    whole = columns_of(case, [layout for rung in (rungs[1], rungs[4]) for layout in every_layout(case, rung)])
    columns = whole.take(np.random.default_rng(0).permutation(len(whole))[:600])
    mask = legal_rows(case, columns)
    for index in range(len(columns)):
        layout = pick(case, _rows(columns), index).layout
        alone = check(case.model_copy(update={"layout": layout}))
        assert (not alone) == bool(mask[index]), (layout, alone)
    assert 0 < mask.sum() < len(mask)


@pytest.mark.parametrize("framework", ["megatron", "megatron_fsdp", "fsdp2", "deepspeed", "torchtitan"])
def test_constraints_that_are_asked_early_leave_what_all_of_them_leave_in_the_end(framework, monkeypatch):
    case = job(model="qwen3-30b-a3b", hardware="2x8 H100-80GB", sequence_length=8192, framework=framework)
    early = legal_layouts(case)
    monkeypatch.setattr(space, "legal_rows", lambda _case, columns, **_known: np.ones(len(columns), dtype=bool))
    assert len(early) > 0
    assert np.array_equal(early, legal_layouts(case))


def legal_layouts(case):
    """The legal layouts of the search's space, a row each."""
    choices = [choice for rung in rulebook.law().ladder.rungs for choice in rung.choices]
    columns = space.with_choices(case, space.cores_of(case, rulebook.law().ladder), choices)
    columns = columns.take(legal_rows(case, columns))
    return np.stack([getattr(columns, field.name) for field in fields(columns)], axis=1)


def _rows(columns):
    nothing = np.zeros(len(columns))
    return Rows("", len(columns), columns, nothing, nothing, nothing > 0, nothing > 0, nothing)


def test_an_illegal_layout_is_refused_with_its_legal_values():
    case = case_of(tensor_parallel=8, framework="megatron")
    broken = case.model_copy(update={"layout": case.layout.model_copy(update={"tensor_parallel": 6})})
    with pytest.raises(AdvisorError) as caught:
        require_legal(broken)
    assert caught.value.code == "illegal_layout"
    violation = next(found for found in check(broken) if found.id == "tensor-divides-heads")
    assert violation.legal == ("1", "2", "4", "8", "16", "32")
    assert "does not divide the 32 query heads; accepted: 1, 2, 4" in violation.message


def test_a_site_policy_forbids_caps_and_is_named(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(
        "forbid:\n- {id: acme-no-zero-3, when: zero_stage == 3, message: the network is too slow}\n"
        "cap:\n- {id: acme-tensor, argument: tensor_parallel, at_most: 2, message: two links only}\n"
    )
    case = case_of(framework="torchtitan", tensor_parallel=4, zero_stage=3, rules=str(site))
    assert {"acme-no-zero-3", "acme-tensor"} <= {found.id for found in check(case)}


def test_the_rule_files_lie_beside_the_package():
    assert Path(rulebook.rules_folder() / "rungs.yaml").is_file()
