"""`python -m tests.validation KIND FILE [--rows countable|cluster]`: the product against a file of facts.

`python -m tests.validation all` runs every kind on the project's own copies and rewrites docs/accuracy.md.

A kind is a module of this package with a function ``run(path)`` (or ``run(path, rows=...)``) that prints a table and
returns the figures, which are printed last as one JSON line.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.validation import accuracy
from tests.validation.facts import BadCallError, own_files

BAD_CALL = 64
EVERY_KIND = "all"

Runner = Callable[[Path], dict[str, Any]]


def kinds() -> dict[str, ModuleType]:
    """Every module that holds a kind, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = {name: importlib.import_module(f"tests.validation.{name}") for name in names if name != "__main__"}
    return {name: module for name, module in modules.items() if hasattr(module, "run")}


def runner(kind: str, rows: str | None) -> Runner:
    """The function that validates a kind, with ``rows`` filled in where the kind knows about rows."""
    known = kinds()
    if kind not in known:
        raise BadCallError(f"{kind!r} is not a kind of validation; accepted: {', '.join((EVERY_KIND, *known))}")
    run: Runner = known[kind].run
    if rows is None:
        return run
    if "rows" not in inspect.signature(run).parameters:
        raise BadCallError(f"{kind} has no rows to choose from; leave --rows out")
    return lambda path: known[kind].run(path, rows=rows)


def run_one(kind: str, path: Path | None, rows: str | None) -> None:
    """Validates one file and prints its figures last."""
    run = runner(kind, rows)
    if path is None:
        raise BadCallError(f"{kind} needs the file of facts to compare with; the project's own are in tests/data")
    print(json.dumps(run(path)))


def run_all(path: Path | None, rows: str | None) -> None:
    """Validates the project's own copies and writes the page."""
    if path is not None or rows is not None:
        raise BadCallError(f"{EVERY_KIND} runs on the project's own facts; leave FILE and --rows out")
    accuracy.PAGE.write_text(own_page(), encoding="utf-8")
    print(f"\nwritten: docs/{accuracy.PAGE.name}")


def own_page() -> str:
    """The page on accuracy, from every kind on every file of the project's own."""
    return accuracy.page([validate_own(module, own) for kind, module in kinds().items() for own in own_files(kind)])


def validate_own(module: ModuleType, path: Path) -> str:
    """Validates one of the project's own files, prints what came out and gives its section of the page."""
    print(f"\n{path.stem}")
    figures = module.run(path)
    print(json.dumps(figures))
    return accuracy.section(module, path, figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one kind, or all; 0 when it ran, 64 when the call is not understood."""
    parser = argparse.ArgumentParser(prog="python -m tests.validation", description=__doc__.splitlines()[0])
    parser.add_argument("kind", metavar="KIND", help=", ".join((EVERY_KIND, *kinds())))
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", help="the facts; left out for all")
    parser.add_argument("--rows", choices=("countable", "cluster"))
    given = parser.parse_args(arguments)
    try:
        if given.kind == EVERY_KIND:
            run_all(given.file, given.rows)
        else:
            run_one(given.kind, given.file, given.rows)
    except BadCallError as error:
        print(error, file=sys.stderr)
        return BAD_CALL
    return 0


if __name__ == "__main__":
    sys.exit(main())
