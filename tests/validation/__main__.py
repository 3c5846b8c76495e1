"""`python -m tests.validation KIND FILE [--rows countable|cluster]`: the product against a file of facts.

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
from typing import Any

BAD_CALL = 64


class BadCallError(Exception):
    """The command line asks for something that is not there."""


def kinds() -> tuple[str, ...]:
    """The names of the modules that hold a kind."""
    folder = str(Path(__file__).parent)
    return tuple(sorted(module.name for module in pkgutil.iter_modules([folder]) if not module.name.startswith("_")))


def runner(kind: str, rows: str | None) -> Callable[[Path], dict[str, Any]]:
    """The function that validates a kind, with ``rows`` filled in where the kind knows about rows."""
    if kind not in kinds():
        raise BadCallError(f"{kind!r} is not a kind of validation; accepted: {', '.join(kinds())}")
    run = importlib.import_module(f"tests.validation.{kind}").run
    if rows is None:
        return run
    if "rows" not in inspect.signature(run).parameters:
        raise BadCallError(f"{kind} has no rows to choose from; leave --rows out")
    return lambda path: run(path, rows=rows)


def existing_file(path: Path) -> None:
    """Refuses a path that is no file."""
    if not path.is_file():
        raise BadCallError(f"{path} is not a file")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one kind; 0 when it ran, 64 when the call is not understood."""
    parser = argparse.ArgumentParser(prog="python -m tests.validation", description=__doc__.splitlines()[0])
    parser.add_argument("kind", metavar="KIND", help=", ".join(kinds()))
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.add_argument("--rows", choices=("countable", "cluster"))
    given = parser.parse_args(arguments)
    try:
        run = runner(given.kind, given.rows)
        existing_file(given.file)
    except BadCallError as error:
        print(error, file=sys.stderr)
        return BAD_CALL
    print(json.dumps(run(given.file)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
