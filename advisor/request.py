"""Reads a request: plain JSON data in, a validated model out, or one error that says what to change."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from advisor.errors import AdvisorError, nearest
from advisor.request_words import accepted, choices, field_schema, shown, with_bounds
from advisor.units import parse_token_count

Request = TypeVar("Request", bound=BaseModel)

DEEPEST: Final = 64
LONGEST_LIST: Final = 10_000
LONGEST_TEXT: Final = 1_000_000
MOST_VALUES: Final = 200_000
LARGEST_BITS: Final = 256
FEW_NAMES: Final = 16
_HALF_A_CHARACTER: Final = re.compile("[\ud800-\udfff]")
_COUNT_AND_LETTER: Final = re.compile(r"\s*(\d{1,6})\s*[a-z]", re.IGNORECASE)

#: Names of earlier releases and those of today: whoever wrote the old one down is still answered. None has changed yet.
FORMER_TOOLS: Final[dict[str, str]] = {}
FORMER_ARGUMENTS: Final[dict[str, str]] = {}

#: What people write, and the argument they mean where its spelling is not close.
SYNONYMS: Final = {
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "cp": "context_parallel",
    "ep": "expert_parallel",
    "sp": "sequence_parallel",
    "etp": "expert_tensor_parallel",
    "vpp": "virtual_stages",
    "dp": "data_parallel_shard",
    "seq_len": "sequence_length",
    "seq_length": "sequence_length",
    "max_seq_length": "sequence_length",
    "batch_size": "micro_batch",
    "mbs": "micro_batch",
    "gbs": "global_batch",
    "gpu": "hardware",
    "gpus": "hardware",
    "gpu_type": "hardware",
    "num_gpus": "hardware",
    "zero": "zero_stage",
    "gradient_checkpointing": "recompute",
    "activation_checkpointing": "recompute",
    "dtype": "precision",
    "peft": "method",
    "model_name": "model",
    "config": "hf_config",
}


def read_request(model: type[Request], arguments: Any) -> Request:
    """The validated request in plain data, as a host, an HTTP body or a command line sends it.

    Hyphens in argument names are read as underscores; a null, or an empty list where a list may stand, is the same as
    an absent argument, so that a layout from an answer can be sent back as it is.

    Raises:
        AdvisorError: ``unknown_argument``, ``invalid_value`` or ``missing_argument``, for the first problem found.
    """
    if not isinstance(arguments, Mapping):
        raise AdvisorError("invalid_value", f"expected an object with arguments, got {shown(arguments)}")
    refuse_unbounded(arguments)
    tidied = _tidied(model, arguments, "")
    try:
        return model.model_validate(tidied)
    except ValidationError as error:
        raise _in_our_words(model, error) from None


def tool_name(given: str) -> str:
    """A tool's name of today: hyphens are read as underscores, a former name as the present one."""
    name = given.replace("-", "_")
    return FORMER_TOOLS.get(name, name)


def refuse_unbounded(data: Any) -> None:
    """Refuse what plain, bounded JSON cannot hold: NaN, infinities, depth, sheer size, other types.

    Raises:
        AdvisorError: ``invalid_value`` with the pointer of the first such value.
    """
    for seen, (pointer, value, depth) in enumerate(_walk(data)):
        problem = _problem(value)
        if depth > DEEPEST:
            problem = f"nested more than {DEEPEST} levels deep"
        if seen > MOST_VALUES:
            problem = f"the request holds more than {MOST_VALUES:,} values"
        if problem:
            where = f"{pointer[:80].lstrip('/')}: " if pointer else ""
            raise AdvisorError("invalid_value", where + problem, pointer=pointer[:200])


def unknown_argument(
    given: str, names: Iterable[str], *, pointer: str = "", listed_by: str = "the schema of the call"
) -> AdvisorError:
    """The error for an argument that does not exist, with the ones that were probably meant."""
    names = list(names)
    short = given.replace("-", "_")[:80]
    meant = SYNONYMS.get(short.lower())
    close = (meant,) if meant in names else nearest(short, names, count=2)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else _listed(names, listed_by)
    return AdvisorError(
        "unknown_argument", f"unknown argument {short!r}; {hint}", pointer=pointer or f"/{short}", suggestions=close
    )


def _listed(names: list[str], listed_by: str) -> str:
    if len(names) <= FEW_NAMES:
        return f"accepted: {', '.join(names)}"
    return f"none of the {len(names)} accepted arguments is close; {listed_by} lists them"


def _walk(data: Any) -> Iterator[tuple[str, Any, int]]:
    """Every value with its pointer and depth, without recursion."""
    waiting: list[tuple[str, Any, int]] = [("", data, 0)]
    while waiting:
        pointer, value, depth = waiting.pop()
        yield pointer, value, depth
        if isinstance(value, Mapping):
            waiting.extend((f"{pointer}/{_escaped(key)}", item, depth + 1) for key, item in value.items())
        elif isinstance(value, list | tuple):
            waiting.extend((f"{pointer}/{index}", item, depth + 1) for index, item in enumerate(value))


def _problem(value: Any) -> str:
    if isinstance(value, str):
        return _text_problem(value)
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"expected a finite number, got {value}"
    if isinstance(value, int):
        return "" if value.bit_length() <= LARGEST_BITS else f"got an integer of {value.bit_length():,} bits: too large"
    if isinstance(value, list | tuple | Mapping):
        names = value if isinstance(value, Mapping) else ()
        many = f"more than {LONGEST_LIST:,} items" if len(value) > LONGEST_LIST else ""
        return many or next((f"a name of an argument is {text}" for text in map(_no_text, names) if text), "")
    return "" if value is None else f"expected plain JSON data, got a {type(value).__name__}"


def _text_problem(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        return f"text of more than {LONGEST_TEXT:,} characters"
    return f"expected text, got {_no_text(text)}" if _no_text(text) else ""


def _no_text(name: object) -> str:
    """What keeps a string from being text that files, JSON and terminals can hold; empty when nothing does."""
    text = str(name)
    if "\0" in text:
        return "text with a null character"
    return "" if text.isascii() or not _HALF_A_CHARACTER.search(text) else "text with half a character (a surrogate)"


def _tidied(model: type[BaseModel], arguments: Mapping[Any, Any], pointer: str) -> dict[str, Any]:
    """Names with underscores, what says nothing dropped, unknown names refused; a nested case alike."""
    tidied: dict[str, Any] = {}
    for given, value in arguments.items():
        written = str(given).replace("-", "_")
        name = FORMER_ARGUMENTS.get(written, written)
        if name not in model.model_fields:
            raise unknown_argument(str(given), model.model_fields, pointer=f"{pointer}/{_escaped(str(given)[:80])}")
        if name in tidied:
            raise AdvisorError("invalid_value", f"{name}: given twice", pointer=f"{pointer}/{name}")
        if value is None or (_is_empty(value) and field_schema(model, (name,)).get("type") == "array"):
            continue
        _refuse_boolean_as_number(model, name, value, pointer)
        nested = _nested_model(model, name)
        inside = nested is not None and isinstance(value, Mapping)
        tidied[name] = _tidied(nested, value, f"{pointer}/{name}") if nested and inside else value
    return tidied


def _is_empty(value: Any) -> bool:
    """A list without items, also as text: what a command line sends for one."""
    return value in ([], ()) or (isinstance(value, str) and not value.strip(", "))


def _refuse_boolean_as_number(model: type[BaseModel], name: str, value: Any, pointer: str) -> None:
    """Pydantic reads true as 1; a person who wrote true for a count meant something else."""
    if not isinstance(value, bool):
        return
    schema = field_schema(model, (name,))
    if schema.get("type") != "boolean":
        detail = f"{name}: got {shown(value)}; accepted: {accepted(schema)}"
        raise AdvisorError("invalid_value", detail, pointer=f"{pointer}/{name}")


def _nested_model(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    annotation = model.model_fields[name].annotation
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    return next((item for item in candidates if isinstance(item, type) and issubclass(item, BaseModel)), None)


def _in_our_words(model: type[BaseModel], error: ValidationError) -> AdvisorError:
    first = error.errors(include_url=False)[0]
    path = first["loc"]
    pointer = "".join(f"/{_escaped(part)}" for part in path)
    name = ".".join(str(part) for part in path)
    if not path:
        return AdvisorError("invalid_value", first["msg"].removeprefix("Value error, "))
    schema = with_bounds(field_schema(model, path), first.get("ctx", {}))
    if first["type"] == "missing":
        return AdvisorError("missing_argument", f"{name} is missing; accepted: {accepted(schema)}", pointer=pointer)
    given = first["input"]
    close = (nearest(given, choices(schema)) or _as_count(given, schema)) if isinstance(given, str) else ()
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    detail = f"{name}: got {shown(given)}; accepted: {accepted(schema)}{hint}"
    return AdvisorError("invalid_value", detail, pointer=pointer, suggestions=close)


def _as_count(given: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """A number with a letter that is no unit was probably meant in thousands."""
    match = _COUNT_AND_LETTER.match(given)
    largest = schema.get("maximum", 0) if schema.get("type") == "integer" else 0
    return (f"{match[1]}k",) if match and (parse_token_count(f"{match[1]}k") or 0) <= largest else ()


def _escaped(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")
