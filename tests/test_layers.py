"""The house plan, held: arrows, lengths, units in one place, nothing of one machine in the tree."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("advisor", "tools", "benchmarks")
PRODUCT = sorted([ROOT / "server.py", *(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))])
TESTS = sorted((ROOT / "tests").rglob("*.py"))

LONGEST_MODULE, LONGEST_TEST = 300, 500

#: How many bytes, tokens or FLOP stand behind a prefix: what a conversion multiplies or divides by.
UNIT_FACTORS = {base**power for base, powers in ((1024, (1, 2, 3, 4)), (1000, (2, 3, 4))) for power in powers}
TEXT_FILES = (".py", ".md", ".yaml", ".toml", ".json", ".txt")
#: Folders that exist on somebody's machine: /home/anna, /root/x. A placeholder such as /path/to is fine.
MACHINE_PATH = re.compile(r"(?<![\w./:-])/(?:home|root|Users|work|opt|mnt|srv)/\w+")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


every_product_file = pytest.mark.parametrize("path", PRODUCT, ids=name_of)


def test_arrows_between_modules_point_one_way():
    # A process of its own: the linter switches off the loggers of the one that it runs in.
    linter = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    checked = subprocess.run(linter, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("path", [*PRODUCT, *TESTS], ids=name_of)
def test_a_file_tells_one_story_and_ends(path):
    limit = LONGEST_TEST if path in TESTS else LONGEST_MODULE
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= limit, "split it by what it tells"


@every_product_file
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def constant(node):
    """The value of an expression of plain numbers such as ``1024**3``, else None."""
    if any(not isinstance(part, (ast.BinOp, ast.Constant, ast.operator)) for part in ast.walk(node)):
        return None
    try:
        return eval(compile(ast.Expression(node), "", "eval"), {})
    except (TypeError, ZeroDivisionError):
        return None


def conversions(source):
    """Lines that multiply or divide something by a unit factor."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div, ast.FloorDiv)):
            sides = {constant(node.left), constant(node.right)}
            if None in sides and sides & UNIT_FACTORS:
                yield node.lineno


@every_product_file
def test_units_are_converted_in_one_module(path):
    if name_of(path) != "advisor/units.py":
        assert list(conversions(path.read_text(encoding="utf-8"))) == [], "advisor.units converts"


@pytest.mark.parametrize("text", ["x / 1024**3", "x * 2**30", "x / 1e9", "10**9 * x", "x // 1_073_741_824", "x / 1024"])
def test_a_conversion_is_recognised(text):
    assert list(conversions(text)) == [1]


@pytest.mark.parametrize("text", ["bound = 10**9", "limit = 1024 * 1024", "x <= 1024", "x * 2", "x * y"])
def test_a_bound_is_no_conversion(text):
    assert list(conversions(text)) == []


def imported(path):
    """First names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", [*PRODUCT, *TESTS], ids=name_of)
def test_nothing_imports_the_server(path):
    assert "server" not in set(imported(path))


@every_product_file
def test_the_product_does_not_know_its_tests(path):
    assert "tests" not in set(imported(path))


def written_by_hand(path):
    """Whether a path is part of the project rather than of a cache or an environment."""
    *folders, name = path.relative_to(ROOT).parts
    made = any((part.startswith(".") and part != ".ci") or part in {"build", "dist"} for part in folders)
    return path.is_file() and not made and (path.suffix in TEXT_FILES or name in {"Makefile", "run"})


def test_no_file_names_a_folder_of_somebodys_machine():
    files = [path for path in ROOT.rglob("*") if written_by_hand(path) and path.name != "test_layers.py"]
    found = {name_of(path): MACHINE_PATH.findall(path.read_text(encoding="utf-8")) for path in files}
    assert len(files) > 100
    assert {name: paths for name, paths in found.items() if paths} == {}


@pytest.mark.parametrize("text", ["see /home/anna/model", "'/root/x'", "open(/opt/models)"])
def test_a_folder_of_somebodys_machine_is_recognised(text):
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize(
    "text", ["/path/to/trainfit", "https://host.example/home/anna", "docs/work/x", "/v1/estimate-memory"]
)
def test_a_placeholder_an_address_and_a_relative_path_are_none(text):
    assert not MACHINE_PATH.search(text)
