"""The page docs/accuracy.md: how close the product is to every fact that the project ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from textwrap import fill
from types import ModuleType
from typing import Any

from tests.validation.comparison import Comparison, bias, error_at, median_error, worst
from tests.validation.facts import notes, read_facts, read_yaml

PAGE = Path(__file__).parent.parent.parent / "docs" / "accuracy.md"

HEAD = """\
# Accuracy

Written by `make validate` from the facts in `tests/data`; change the product or the facts, not this page. An error is
our figure over the counted or measured one, less 1: positive when we say too much. Bias is the mean error; median,
p90 and largest are of the errors' sizes.
"""

GROUPS_HEAD = "| rows of | n | bias | median | p90 | largest |\n|---|---:|---:|---:|---:|---:|"
WORST_HEAD = "| worst rows | error | why |\n|---|---:|---|"

NEGLIGIBLE = 0.001
LINE = 120


def section(module: ModuleType, path: Path, figures: Mapping[str, Any]) -> str:
    """A file's part of the page: its figures, the kind's own tables, where it compares rows its groups and worst."""
    parts = [f"## {path.stem}", fill(f"{str(module.__doc__).splitlines()[0]} {_note(path)}", LINE)]
    parts.append(fill("; ".join(f"`{name}` {_figure(value)}" for name, value in figures.items()) + ".", LINE))
    if hasattr(module, "details"):
        parts.append(module.details(path))
    if hasattr(module, "comparisons"):
        rows = module.comparisons(path)
        kind = module.__name__.rsplit(".", 1)[-1]
        parts += [_group_table(rows), _worst_table(rows, notes(kind))]
    return "\n\n".join(parts)


def page(sections: Sequence[str]) -> str:
    """The whole page."""
    return "\n".join((HEAD, "\n\n".join(sections), ""))


def _note(path: Path) -> str:
    facts = read_yaml(path) if path.suffix == ".yaml" else read_facts(path)
    return str(facts.get("note", ""))


def _figure(value: Any) -> str:
    """A share as a percentage, a count as it is."""
    if isinstance(value, float):
        return f"{value:.2%}"
    return str(value or "none")


def _group_table(rows: Sequence[Comparison]) -> str:
    groups = sorted({row.group for row in rows})
    lines = [_group_line(group, [row for row in rows if row.group == group]) for group in groups]
    return "\n".join((GROUPS_HEAD, *lines, _group_line("**all**", rows)))


def _group_line(name: str, rows: Sequence[Comparison]) -> str:
    sizes = (median_error(rows), error_at(rows, 0.9), error_at(rows, 1))
    return f"| {name} | {len(rows)} | {bias(rows):+z.2%} | " + " | ".join(f"{size:.2%}" for size in sizes) + " |"


def _worst_table(rows: Sequence[Comparison], known: Mapping[str, str]) -> str:
    lines = [
        f"| `{row.name.replace('|', ' ')}` | {row.error:+.2%} | {row.refusal or why(row.name, known)} |"
        for row in worst(rows)
        if noticeable(row)
    ]
    return "\n".join((WORST_HEAD, *lines)) if lines else "No row is off by more than 0.1 %."


def noticeable(row: Comparison) -> bool:
    """Whether an error is more than blocks rounded up to 512 bytes and the like."""
    return abs(row.error) > NEGLIGIBLE


def why(name: str, known: Mapping[str, str]) -> str:
    """The first note whose pattern fits a row's name."""
    return next((text for pattern, text in known.items() if fits(name, pattern)), "not known yet")


def fits(name: str, pattern: str) -> bool:
    """Whether a note's pattern speaks of a row."""
    return fnmatchcase(name, pattern)
