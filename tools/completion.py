"""What a host offers while a person types: ids of the catalog and of the explained, and choices of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.request import unknown_argument
from tools.estimate_memory import ESTIMATE_MEMORY
from tools.list_catalog import LIST_CATALOG
from tools.prompts import find_prompt
from tools.resources import find_resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tools.prompts import Prompt
    from tools.resources import Resource
    from tools.workers.runner import Runner

KINDS: Final = "kinds"


class Names:
    """The ids of each kind, asked for when first needed and kept: they do not change while a server runs."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._known: dict[str, tuple[str, ...]] = {}

    async def of(self, kind: str) -> tuple[str, ...]:
        """The ids of a kind of ``list_catalog``, or its kinds.

        Raises:
            AdvisorError: ``unknown_kind`` with the nearest ones.
        """
        if kind not in self._known:
            asked = {"kind": "frameworks" if kind == KINDS else kind}
            answer = (await self._runner.reply(LIST_CATALOG, asked, allow_paths=False)).as_data()
            self._known[kind] = tuple(answer["kinds"] if kind == KINDS else (each["id"] for each in answer["entries"]))
        return self._known[kind]


async def complete_address(
    uri: str, name: str, typed: str, chosen: Mapping[str, str], among: Sequence[Resource], names: Names
) -> tuple[str, ...]:
    """What a part of an address may be.

    Args:
        uri: a form of address, as it is listed.
        name: the part.
        typed: what the person has written of it.
        chosen: other parts, already filled in.
        among: the addresses that are offered.
        names: where ids come from.

    Raises:
        AdvisorError: an address or a part that does not exist.
    """
    resource, _ = find_resource(uri, among)
    if name not in resource.variables:
        raise unknown_argument(name, resource.variables)
    if name == "kind":
        return matching(typed, await names.of(KINDS))
    kind = resource.kind or chosen.get("kind", "")
    return matching(typed, map(resource.short, await names.of(kind))) if kind else ()


async def complete_blank(
    prompt_name: str, name: str, typed: str, among: Sequence[Prompt], names: Names
) -> tuple[str, ...]:
    """What a blank of a prompt may hold; nothing where it is free text.

    Raises:
        AdvisorError: a prompt or a blank that does not exist.
    """
    by_name = {argument.name: argument for argument in find_prompt(prompt_name, among).arguments}
    if name not in by_name:
        raise unknown_argument(name, by_name)
    kind = by_name[name].kind
    if name == "hardware":
        count, space, device = typed.rpartition(" ")
        return tuple(f"{count}{space}{found}" for found in matching(device, await names.of(kind)))
    if kind:
        return matching(typed, await names.of(kind))
    return matching(typed, ESTIMATE_MEMORY.input_schema["properties"].get(name, {}).get("enum", ()))


def matching(typed: str, values: Iterable[str]) -> tuple[str, ...]:
    """The values that begin with what is typed, then those that hold it elsewhere."""
    wanted = typed.lower()
    held = [value for value in values if wanted in value.lower()]
    return tuple(sorted(held, key=lambda value: not value.lower().startswith(wanted)))
