"""Reads the rule files and refuses what they cannot mean, by file and line and with the nearest name.

Names come first, by hand: the fields of a rule, the facts in its expressions and sentences, the words that a choice
can take. Then the shapes and types of ``rules.py``. Lines are looked up only when there is something to report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from advisor.catalog.reader import catalog_folder, parse_yaml, parse_yaml_with_lines
from advisor.constraints import expression
from advisor.constraints.answer_facts import ANSWER_FACTS
from advisor.constraints.facts import facts
from advisor.constraints.rules import (
    Advice,
    AdviceFile,
    Cap,
    Constraint,
    ConstraintFile,
    Forbid,
    Headroom,
    Ladder,
    Law,
    Overlay,
    Prefer,
    Rule,
    Step,
)
from advisor.errors import AdvisorError, nearest
from advisor.timing.terms import TIME_PARTS
from advisor.types.arguments import CaseArguments
from advisor.types.base import Value

FileKind = TypeVar("FileKind", bound=Value)
Path_ = tuple[str | int, ...]

EXPRESSIONS: Final = ("applies", "require", "legal", "when", "smaller")
TEMPLATES: Final = ("message", "say")
ARGUMENTS: Final = ("pointer", "argument", "levers", "notch")
#: What the tree may ask besides facts: whether the layout fits.
WALK_FACTS: Final = ("fits",)
#: What each kind of file may ask besides facts.
_OWN_FACTS: Final[Mapping[type[Value], Iterable[str]]] = {Step: WALK_FACTS, AdviceFile: ANSWER_FACTS}
#: What a sentence of the tree may use besides facts; the walk fills them in.
WALK_WORDS: Final = ("before", "after", "saved", "usable")
_SOURCE_KEY: Final = re.compile(r"^([a-z0-9][\w.-]*):", re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


@cache
def rules_folder() -> Path:
    """Where the rule files lie: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "rules"
    return inside if inside.is_dir() else package.parent / "rules"


@cache
def constraints() -> tuple[Constraint, ...]:
    """The shipped constraints, read once."""
    return read_constraints(rules_folder() / "constraints")


@cache
def law() -> Law:
    """The shipped tree and ladder, read once."""
    return read_law(rules_folder())


@cache
def advice_rules() -> tuple[Advice, ...]:
    """The shipped advice, read once."""
    return read_advice(rules_folder() / "advice")


def overlay(path: str) -> Overlay:
    """A site's policy file; an empty path is an empty policy.

    Raises:
        AdvisorError: ``broken_rules`` with file and line when the file cannot be understood.
    """
    if not path:
        return Overlay()
    file = Path(path)
    changed = file.stat().st_mtime_ns if file.is_file() else 0
    return _read_overlay(file, changed)


@lru_cache(maxsize=16)
def _read_overlay(file: Path, _changed: int) -> Overlay:
    read = read_file(file, Overlay)
    entries: list[Forbid | Cap | Prefer | Headroom] = [*read.forbid, *read.cap, *read.prefer]
    entries += [read.headroom] if read.headroom else []
    _refuse_repeated((entry.id for entry in entries), file)
    return read


def read_constraints(folder: Path) -> tuple[Constraint, ...]:
    """The constraints in a folder's files, in the order of the files' names."""
    rules = [rule for file in sorted(folder.glob("*.yaml")) for rule in read_file(file, ConstraintFile).rules]
    _refuse_repeated((rule.id for rule in rules), folder)
    return tuple(rules)


def read_advice(folder: Path) -> tuple[Advice, ...]:
    """The advice in a folder's files, in the order of the files' names."""
    rules = [rule for file in sorted(folder.glob("*.yaml")) for rule in read_file(file, AdviceFile).advice]
    _refuse_repeated((rule.id for rule in rules), folder)
    return tuple(rules)


def read_law(folder: Path) -> Law:
    """The tree and the ladder in a folder."""
    steps = tuple(read_file(file, Step) for file in sorted((folder / "tree").glob("*.yaml")))
    ladder = read_file(folder / "rungs.yaml", Ladder)
    everything: tuple[Rule, ...] = (*steps, *ladder.rungs, *ladder.preferences)
    _refuse_repeated((rule.id for rule in everything), folder)
    for step in steps:
        for part in step.time:
            _known(part, TIME_PARTS, "part of a step's time", f"tree/: step {step.id}")
    return Law(steps=steps, ladder=ladder)


def read_file(file: Path, kind: type[FileKind]) -> FileKind:
    """One rule file, checked.

    Raises:
        AdvisorError: ``broken_rules``; the sentence names the file, the line, the rule and the nearest name.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AdvisorError("broken_rules", f"{file.name}: cannot be read", pointer="/rules") from error
    data = parse_yaml(text, name=file.name)
    problem = next(_problems(data, kind), None)
    if problem is None:
        return kind.model_validate(data)
    path, sentence = problem
    raise AdvisorError("broken_rules", f"{file.name}:{_line(text, path)}: {_owner(data, path)}{sentence}")


def _problems(data: Any, kind: type[Value]) -> Iterator[tuple[Path_, str]]:
    """What is wrong with a file, names before shapes."""
    if not isinstance(data, dict):
        yield (), f"expected a mapping, got {type(data).__name__}"
        return
    for path, value in _leaves(data, ()):
        yield from ((path, sentence) for sentence in _wrong_names(path, value, kind))
    try:
        kind.model_validate(data)
    except ValidationError as error:
        for found in error.errors():
            if found["type"] == "extra_forbidden":
                yield found["loc"], _unknown_field(found["loc"], kind)
        for found in error.errors():
            where = ".".join(str(part) for part in found["loc"])
            yield found["loc"], f"{where}: {found['msg'][0].lower()}{found['msg'][1:]}"


def _leaves(node: Any, path: Path_) -> Iterator[tuple[Path_, Any]]:
    """Every value of a file that holds no others, with its path."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from _leaves(child, (*path, key))
    if not isinstance(node, (dict, list)):
        yield path, node


def _wrong_names(path: Path_, value: Any, kind: type[Value]) -> Iterator[str]:
    """The names in one value that mean nothing: in an expression, a sentence, an argument, an example or a source."""
    field = next((part for part in reversed(path) if isinstance(part, str)), "")
    if "examples" in path:
        yield from _unknown([field], [*_names(kind), "adds"], "fact")
    elif field in EXPRESSIONS and isinstance(value, (str, int, float)):
        yield from _wrong_expression(str(value), _names(kind))
    elif field in TEMPLATES and isinstance(value, str):
        words = WALK_WORDS if kind is Step else ()
        yield from _unknown(_PLACEHOLDER.findall(value), [*_names(kind), *words], "fact")
    elif field in ARGUMENTS and value:
        yield from _unknown([str(value)], CaseArguments.model_fields, "argument")
    elif field == "key":
        yield from _unknown([str(value)], _source_keys(), "source")


@cache
def _source_keys() -> tuple[str, ...]:
    """The keys of the catalog's sources: the names at the start of a line. Parsing the whole file would be slow."""
    return tuple(_SOURCE_KEY.findall((catalog_folder() / "sources.yaml").read_text(encoding="utf-8")))


def _names(kind: type[Value]) -> list[str]:
    """What an expression in a file of this kind may use."""
    return [*facts(), *_OWN_FACTS.get(kind, ())]


def _wrong_expression(text: str, accepted: list[str]) -> Iterator[str]:
    try:
        read = expression.read(text)
    except expression.ExpressionError as error:
        yield str(error)
        return
    yield from _unknown(read.names, accepted, "fact")
    for name, word in read.choices:
        known = facts().get(name) or ANSWER_FACTS.get(name)
        if known and known.words:
            yield from _unknown([word], known.words, f"value of {name}")


def _unknown(given: Iterable[str], accepted: Iterable[str], kind: str) -> Iterator[str]:
    names = list(accepted)
    for name in given:
        if name not in names:
            close = nearest(name, names, count=1)
            hint = f"did you mean {close[0]!r}?" if close else f"accepted: {', '.join(names[:12])} …"
            yield f"no {kind} is called {name!r}; {hint}"


def _known(given: str, accepted: Iterable[str], kind: str, where: str) -> None:
    for sentence in _unknown([given], accepted, kind):
        raise AdvisorError("broken_rules", f"{where}: {sentence}", pointer="/rules")


def _unknown_field(path: Path_, kind: type[Value]) -> str:
    """The sentence for a field that no rule of this kind has, with the nearest that one has."""
    known: set[str] = set()
    for definition in kind.model_json_schema().get("$defs", {}).values():
        known |= set(definition.get("properties", {}))
    known |= set(kind.model_fields)
    return next(_unknown([str(path[-1])], sorted(known - {str(path[-1])}), "field"))


def _refuse_repeated(ids: Iterable[str], where: Path) -> None:
    seen: set[str] = set()
    for identifier in ids:
        if identifier in seen:
            raise AdvisorError("broken_rules", f"{where.name}: two rules are called {identifier!r}", pointer="/rules")
        seen.add(identifier)


def _owner(data: Any, path: Path_) -> str:
    """The id of the innermost rule around a path, as the start of a sentence."""
    owner, node = "", data
    for part in (None, *path):
        node = node if part is None else _child(node, part)
        if isinstance(node, dict) and isinstance(node.get("id"), str):
            owner = f"rule {node['id']}: "
    return owner


def _child(node: Any, part: str | int) -> Any:
    if isinstance(node, Mapping):
        return node.get(part)
    return node[part] if isinstance(node, list) and isinstance(part, int) and part < len(node) else None


def _line(text: str, path: Path_) -> int:
    """The line of a path, or of the nearest thing around it that stands in the file."""
    _, lines = parse_yaml_with_lines(text, name="rules")
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)
