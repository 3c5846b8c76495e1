"""What an assistant called, held against what answers the question: by meaning, not by spelling."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.architecture.presets import find_preset
from advisor.catalog.devices import parse_hardware
from advisor.catalog.reader import read_yaml
from advisor.errors import AdvisorError, unknown_name
from advisor.request import read_request
from advisor.sweep.axes import read_axes
from tools import find_tool
from tools.json_text import parse_json

PROMPTS = Path(__file__).parent / "prompts.yaml"
FIELDS = ("id", "tool", "arguments")
#: The part of device, nodes and GPUs per node that is given when the rest is what is asked for.
_HOW_MUCH = {"gpus": slice(0, 1), "device": slice(1, 3)}


@dataclass(frozen=True)
class Question:
    """What a user asks.

    Attributes:
        tool: the one that answers; empty when none should be called.
        arguments: those that must be right.
        entry: the id that explain must reach.
    """

    id: str
    prompt: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    entry: str = ""


@dataclass(frozen=True)
class Call:
    """A call that an assistant made."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Score:
    """How one question was answered.

    Attributes:
        tool: whether the right tool was called, or none where none should be.
        differences: what is wrong, a sentence each; none when all is right.
    """

    question: Question
    tool: bool
    differences: tuple[str, ...]


def questions() -> Mapping[str, Question]:
    """Every question by its id."""
    rows = read_yaml(PROMPTS)
    return {key: Question(id=key, **row) for key, row in rows.items()}


def read_calls(text: str) -> list[Call]:
    """The calls in JSON Lines: ``{"id": question, "tool": name, "arguments": {...}}``, a line each.

    Raises:
        AdvisorError: a line that cannot be read, or is of no question.
    """
    known = questions()
    calls = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        row = parse_json(line, what=f"line {number}")
        if not isinstance(row, dict) or set(row) != set(FIELDS):
            raise AdvisorError("invalid_value", f"line {number}: expected an object with {', '.join(FIELDS)}")
        if row["id"] not in known:
            raise unknown_name("question", str(row["id"]), known, pointer="/id")
        calls.append(Call(row["id"], str(row["tool"]), row["arguments"]))
    return calls


def score(calls: Sequence[Call]) -> list[Score]:
    """Each question with the best of the calls that were made for it."""
    return [_of_question(question, [call for call in calls if call.id == key]) for key, question in questions().items()]


def _of_question(question: Question, calls: Sequence[Call]) -> Score:
    names = [call.tool.rpartition("__")[2] for call in calls]  # hosts put the server's name before it
    if not question.tool:
        return Score(question, not calls, tuple(f"called {name}; no call is needed" for name in names))
    right = [call for call, name in zip(calls, names, strict=True) if name == question.tool]
    if not right:
        said = f"called {', '.join(names) or 'nothing'}; {question.tool} answers this"
        return Score(question, False, (said,))
    return Score(question, True, min((tuple(_differences(question, call.arguments)) for call in right), key=len))


def _differences(question: Question, given: Mapping[str, Any]) -> Iterator[str]:
    try:
        found = meaning(question.tool, given)
        answer = find_tool(question.tool).reply(given, allow_paths=False).answer if question.entry else None
    except AdvisorError as error:
        yield f"refused: {error.detail}"
        return
    for name, wanted in meaning(question.tool, question.arguments).items() if question.arguments else ():
        if found.get(name) != wanted:
            yield f"{name} is {_shown(found.get(name))}, not {_shown(wanted)}"
    if answer is not None and answer.id != question.entry:
        yield f"reaches {answer.id or 'no entry'}, not {question.entry}"


def meaning(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the tool reads them, by dotted name: '8k' is 8192, '8 H100' is one node of eight.

    Raises:
        AdvisorError: what the tool would refuse.
    """
    request = read_request(find_tool(tool).operation.request, arguments)
    plain = request.model_dump(exclude_none=True)
    if "vary" in plain:
        plain["vary"] = dict(read_axes(plain["vary"]))
    found = {name: _meant(name.rpartition(".")[2], value) for name, value in _flat(plain)}
    if "case.hardware" in found and found.get("of") in _HOW_MUCH:
        found["case.hardware"] = found["case.hardware"][_HOW_MUCH[found["of"]]]
    return found


def _flat(plain: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in plain.items():
        if name in ("case", "vary"):
            yield from _flat(value, f"{name}.")
        else:
            yield before + name, value


def _meant(name: str, value: Any) -> Any:
    if isinstance(value, tuple):
        return sorted((_meant(name, each) for each in value), key=str)
    if name == "hardware":
        device, nodes, gpus_per_node = parse_hardware(value)
        return device.name, nodes, gpus_per_node
    if name == "model":
        return find_preset(value) or value.lower()
    return value.lower() if name == "query" else value


def _shown(value: Any) -> str:
    return "left out" if value is None else json.dumps(value, ensure_ascii=False)
