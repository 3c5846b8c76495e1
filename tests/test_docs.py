"""The documents say what the code does: what is generated is current, what is written by hand names what exists."""

import ast
import json
import re
import tomllib
from functools import cache
from typing import get_args

import jsonschema
import pytest

import advisor
from advisor.errors import AdvisorError
from advisor.resolve import _UNMODELLED
from advisor.types import CaseArguments
from advisor.types.host import Verdict
from tests import generate, reference_pages
from tests.generate import ROOT
from tools import TOOLS, find_tool
from tools.cli import EXIT_BY_VERDICT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
GENERATED = (
    "README.md",
    "docs/article-numbers.md",
    "docs/articles.md",
    "docs/planner.md",
    "docs/recommendations.md",
    "rules/schema.json",
    "docs/openapi.json",
    *(f"tests/snapshots/{tool.name}.json" for tool in TOOLS),
    *(path.relative_to(ROOT).as_posix() for path in reference_pages.names()),
)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@cache
def generated():
    return {path.relative_to(ROOT).as_posix(): text for path, text in generate.generated().items()}


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def fences(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def quoted(text):
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", text)


@pytest.mark.parametrize("name", GENERATED)
def test_what_is_generated_is_current(name):
    assert page(name) == generated()[name], "run make docs, and read what changed"


def test_nothing_is_generated_unseen():
    assert set(generated()) == set(GENERATED)
    assert reference_pages.leftover() == ()


def test_every_marked_output_of_the_readme_belongs_to_an_example_that_is_run():
    assert len(generate.EXAMPLE.findall(page("README.md"))) == page("README.md").count("<!-- output -->") > 0


def test_the_json_example_of_the_readme_is_answered():
    body = re.search(r"-d '(\{.*?\})'", page("README.md"))[1]
    answer = find_tool("estimate_memory").reply(json.loads(body), allow_paths=False).as_data()
    jsonschema.validate(answer, find_tool("estimate_memory").output_schema)


def test_client_snippets_can_be_read_and_start_the_same_server():
    read = [*map(json.loads, fences(page("README.md"), "json")), *map(tomllib.loads, fences(page("README.md"), "toml"))]
    servers = [entry["trainfit"] for snippet in read for entry in snippet.values()]
    assert len(servers) == 3
    assert {(server["command"], *server["args"]) for server in servers} == {
        ("/path/to/trainfit/.venv/bin/python", "/path/to/trainfit/server.py")
    }


@every_page
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@every_page
def test_paths_named_in_a_page_exist(page):
    rooted = re.compile(r"(?:advisor|tools|rules|tests|docs|benchmarks)/[\w<>./*-]*")
    named = [match for text in quoted(page.read_text(encoding="utf-8")) for match in rooted.findall(text)]
    assert [path for path in named if not list(ROOT.glob(re.sub("<.*?>", "*", path.rstrip("/."))))] == []


# --- the contract ---------------------------------------------------------------------------------------------------


def section(name):
    """A section of the contract, up to the next one of its level."""
    return re.search(rf"^## {name}.*?\n(.*?)(?=^## |\Z)", page("docs/contract.md"), re.DOTALL | re.MULTILINE)[1]


def rows(text):
    """Table rows as the names in the first cell and the rest of the row."""
    cells = [line.strip("| ").split(" | ", 1) for line in text.splitlines() if line.startswith("| `")]
    return [(quoted(first), first, rest) for first, rest in cells]


def test_the_contract_lists_every_argument_once_and_no_other():
    named = [name for names, _, _ in rows(section("Arguments of a case")) for name in names]
    assert sorted(named) == sorted(CaseArguments.model_fields)


@pytest.mark.parametrize("name", CaseArguments.model_fields)
def test_the_contract_gives_every_choice_of_an_argument(name):
    described = {name: rest for names, _, rest in rows(section("Arguments of a case")) for name in names}
    schema = find_tool("estimate_memory").input_schema["properties"][name]
    assert set(schema.get("enum", ())) <= set(quoted(described[name]))


def test_the_contract_marks_what_is_refused_as_not_modelled():
    marked = re.findall(r"`(\w+)`†", section("Arguments of a case"))
    assert sorted(marked) == sorted(_UNMODELLED)


def test_the_contract_lists_every_tool():
    named = [name for names, _, _ in rows(section("Tools")) for name in names]
    assert sorted(named) == sorted(tool.name for tool in TOOLS)


def test_the_contract_gives_every_verdict_its_exit_code():
    table = {names[0]: int(rest.rsplit("|", 1)[1].strip() or -1) for names, _, rest in rows(section("Answers"))}
    assert table == EXIT_BY_VERDICT
    assert set(table) == set(get_args(Verdict))


@pytest.mark.parametrize("name", ["estimate_memory", "recommend_setup"])
def test_the_contract_names_every_field_of_an_answer(name):
    fields = find_tool(name).operation.answer.model_fields
    assert [field for field in fields if f"`{field}`" not in section("Answers")] == []


def codes_raised():
    """The error codes that the product's source raises, also those it puts together."""
    own = {ROOT / "advisor" / "errors.py"}  # what it puts together stands where it is called
    for path in {*(ROOT / "advisor").rglob("*.py"), *(ROOT / "tools").rglob("*.py")} - own:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in calls(tree, "AdvisorError"):
            yield from codes_of(call.args[0], tree, call)
        for call in calls(tree, "unknown_name"):
            named = {word.arg: word.value for word in call.keywords}.get("code")
            yield named.value if named else f"unknown_{call.args[0].value.replace(' ', '_')}"


def calls(tree, name):
    """Calls of a function by its bare name that give it anything by place."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name and node.args
    ]


def codes_of(code, tree, call):
    """The code in a call of ``AdvisorError``: as it stands, or once for each call of the function that completes it."""
    if isinstance(code, ast.Constant):
        yield code.value
    elif isinstance(code, ast.JoinedStr):
        beginning, end = code.values
        within = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and call in ast.walk(n))
        place = [argument.arg for argument in within.args.args].index(end.value.id)
        yield from (beginning.value + caller.args[place].value for caller in calls(tree, within.name))
    else:
        assert ast.unparse(code) == "error.code", "a code that this test cannot read"


def test_the_contract_lists_every_error_code_and_no_other():
    named = [name for names, _, _ in rows(section("Errors")) for name in names]
    assert sorted(named) == sorted(set(codes_raised()))


# --- pages that explain the code ------------------------------------------------------------------------------------


def test_the_plan_has_the_rows_that_the_linter_holds():
    contracts = tomllib.loads(page("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    held = next(contract for contract in contracts if contract.get("exhaustive"))["layers"]
    table = re.findall(r"^\| \d+ \| ([^|]*(?:· [^|]*)*)\|", page("docs/architecture.md"), re.MULTILINE)
    assert [quoted(row) for row in table] == [layer.split(" | ") for layer in held]


def test_every_dependency_has_its_reason():
    named = {
        re.match(r"[\w.-]+", entry)[0] for entry in tomllib.loads(page("pyproject.toml"))["project"]["dependencies"]
    }
    reasons = re.findall(r"^- `([\w.-]+)`: ", page("docs/decisions/0002-dependencies.md"), re.MULTILINE)
    assert sorted(reasons) == sorted(named)


def test_decisions_are_numbered_without_gaps_and_short():
    assert [path.name[:4] for path in DECISIONS] == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]
    for path in DECISIONS:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith(f"# {path.name[:4]} ")
        assert len(lines) <= 15


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": "lama-3-70b", "hardware": "4x8 H100-80GB"},
        {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "framework": "megatron", "zero_stage": 3},
    ],
)
def test_the_good_errors_of_the_ladder_are_the_products_own(arguments):
    with pytest.raises(AdvisorError) as refused:
        advisor.estimate_memory(**arguments)
    assert f"| good | `{refused.value.detail}` |" in page("CONTRIBUTING.md")


def test_the_good_error_about_a_rule_file_is_one_that_a_broken_file_gets():
    expected = page("tests/bad/misspelt-fact.yaml").splitlines()[0].removeprefix("# expect: ")
    assert f"| good | `{expected}` |" in page("CONTRIBUTING.md")


def test_the_changelog_has_an_unreleased_edition_that_says_which_answers_move():
    unreleased = page("CHANGELOG.md").split("\n## ")[1]
    assert unreleased.startswith("[Unreleased]")
    assert "### Answers that move" in unreleased
