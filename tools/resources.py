"""What a host can read beside the tools: addresses, each an answer of ``explain`` or ``list_catalog``.

A resource is never the only way to a fact: the tool that answers it stands in its row. Reading goes the way of every
call, so that nothing is loaded before it is asked for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from advisor.errors import unknown_name
from tools.explain import EXPLAIN
from tools.list_catalog import LIST_CATALOG

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tools.tool import Tool
    from tools.workers.runner import Sent

LONGEST_SHOWN: Final = 80
_VARIABLE: Final = re.compile(r"\\\{(\w+)\\\}")


@dataclass(frozen=True)
class Resource:
    """Addresses of one form.

    Attributes:
        uri: the address; ``{name}`` stands for a part that the reader chooses.
        title: its name for people.
        description: what is read there.
        tool: what answers.
        arguments: of the tool; the same ``{name}`` stands for the same part.
        kind: of ``list_catalog``: its ids are what the last part may be. Empty when another part says so.
        shown: the text to read, from the tool's reply and the parts of the address.
        media_type: of that text.
    """

    uri: str
    title: str
    description: str
    tool: Tool
    arguments: Mapping[str, str]
    kind: str = ""
    shown: Callable[[Sent, Mapping[str, str]], str] = lambda sent, _: sent.text
    media_type: str = "text/plain"

    @property
    def name(self) -> str:
        """A short name: the address without its scheme."""
        return self.uri.partition("://")[2]

    @property
    def variables(self) -> tuple[str, ...]:
        """The parts that the reader chooses."""
        return tuple(_VARIABLE.findall(re.escape(self.uri)))

    def parts(self, uri: str) -> Mapping[str, str] | None:
        """What an address has in place of the variables; None when it is of another form."""
        found = re.fullmatch(_VARIABLE.sub(r"(?P<\1>.+?)", re.escape(self.uri)), uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}

    def call(self, parts: Mapping[str, str]) -> dict[str, str]:
        """The tool's arguments for such an address."""
        return {name: value.format(**parts) for name, value in self.arguments.items()}

    def short(self, identity: str) -> str:
        """An id as it stands in the address: without what the arguments put before it."""
        return identity.removeprefix(self.arguments.get("id", "").partition("{")[0])


def find_resource(uri: str, among: Sequence[Resource]) -> tuple[Resource, Mapping[str, str]]:
    """The row that an address belongs to, and its parts.

    Raises:
        AdvisorError: ``unknown_resource`` with the nearest forms.
    """
    for resource in among:
        parts = resource.parts(uri)
        if parts is not None:
            return resource, parts
    forms = [each.uri for each in among if each.variables]
    raise unknown_name("resource", uri[:LONGEST_SHOWN], forms, pointer="/uri")


def _names(sent: Sent, _: Mapping[str, str]) -> str:
    """Every entry of a kind, one a line."""
    return "\n".join(f"{entry['id']}: {entry['title']}" for entry in _entries(sent))


def _facts(sent: Sent, parts: Mapping[str, str]) -> str:
    """All that is known of one entry, as JSON."""
    by_id = {entry["id"]: entry for entry in _entries(sent)}
    if parts["id"] not in by_id:
        raise unknown_name("entry", parts["id"][:LONGEST_SHOWN], by_id, pointer="/uri")
    return json.dumps(by_id[parts["id"]], ensure_ascii=False, indent=1)


def _entries(sent: Sent) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = sent.as_data()["entries"]
    return listed


def _sheet(identity: str, title: str, description: str) -> Resource:
    return Resource(f"trainfit://topic/{identity}", title, description, EXPLAIN, {"id": identity})


#: Every address; the first form that fits is read.
RESOURCES: Final[tuple[Resource, ...]] = (
    _sheet("formula-sheet", "Cheat sheet: formulas", "What each part of training memory takes, a formula a line."),
    _sheet("key-numbers", "Cheat sheet: numbers", "Bytes of 1, 7 and 70 billion parameters, and ratios to remember."),
    _sheet("pareto", "What saves how much, at what cost", "Each lever with what it divides and what it costs."),
    _sheet("sensitivity", "Which dimension divides what", "Component by dimension, as the engine computes it."),
    _sheet("configuration-tree", "How to choose a configuration", "The decision tree of parallel dimensions."),
    _sheet("offload-tree", "What to do when it does not fit", "The decision tree of sharding, recompute, offload."),
    _sheet("checklist", "Checklist for an estimate", "What to look at before a figure is believed."),
    Resource(
        "trainfit://catalog",
        "The catalog",
        "How many entries of each kind there are, with the first of them.",
        LIST_CATALOG,
        {},
    ),
    Resource(
        "trainfit://catalog/{kind}/{id}",
        "An entry of the catalog",
        "All that is known of one device, model, … with its sources.",
        LIST_CATALOG,
        {"kind": "{kind}"},
        shown=_facts,
        media_type="application/json",
    ),
    Resource(
        "trainfit://catalog/{kind}",
        "Entries of one kind",
        "Every device, model, optimizer, precision, framework or source; or the ids that explain takes.",
        LIST_CATALOG,
        {"kind": "{kind}"},
        shown=_names,
    ),
    Resource(
        "trainfit://topic/{id}",
        "A topic",
        "What something is and does, with live figures and sources.",
        EXPLAIN,
        {"id": "{id}"},
        kind="topics",
    ),
    Resource(
        "trainfit://term/{name}",
        "A term of memory or time",
        "The formula of a term, with an example's numbers and its source.",
        EXPLAIN,
        {"id": "term:{name}"},
        kind="terms",
    ),
    Resource(
        "trainfit://symbol/{name}",
        "A symbol",
        "What a letter of the formulas means, and where it is used.",
        EXPLAIN,
        {"id": "symbol:{name}"},
        kind="symbols",
    ),
    Resource(
        "trainfit://rule/{id}",
        "A rule",
        "What a layout must satisfy, or a step of the walk, and why.",
        EXPLAIN,
        {"id": "rule:{id}"},
        kind="rules",
    ),
    Resource(
        "trainfit://article/{id}",
        "A worked number of an article",
        "Its formula and numbers, what the article prints, and what holds.",
        EXPLAIN,
        {"id": "{id}"},
        kind="numbers",
    ),
)


def offered_resources(tools: Sequence[Tool]) -> tuple[Resource, ...]:
    """Those that the offered tools answer."""
    return tuple(resource for resource in RESOURCES if resource.tool in tools)
