"""What was given and what was assumed, collected while a case is put together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from advisor.types.arguments import CaseArguments
from advisor.types.case import Assumption


@dataclass
class Ledger:
    """Collects what was assumed while a case is put together; it lives only while one is resolved."""

    arguments: CaseArguments
    assumptions: list[Assumption] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def take(self, name: str, default: Any, note: str = "", origin: str = "default") -> Any:
        """The given value, or the default, noted as an assumption."""
        given = getattr(self.arguments, name)
        if given is not None:
            self.note(name, given, "given")
            return given
        self.note(name, default, origin, note)
        return default

    def note(self, name: str, value: Any, origin: str, note: str = "") -> None:
        """Say a value that no argument sets directly."""
        self.assumptions.append(_assumption(name, _shown(value), origin, note))

    def note_rest(self, *, but: Iterable[str]) -> None:
        """Say every given argument that nothing has taken, so that none is dropped in silence."""
        said = {assumption.argument for assumption in self.assumptions} | set(but)
        for name in type(self.arguments).model_fields:
            given = getattr(self.arguments, name)
            if given is not None and name not in said:
                self.note(name, given, "given")


@lru_cache(maxsize=1024, typed=True)
def _assumption(name: str, value: str | float | bool | None, origin: str, note: str) -> Assumption:
    """Most cases assume the same; a value is frozen, so they share it."""
    return Assumption(argument=name, value=value, origin=origin, note=note)


def _shown(value: Any) -> str | int | float | bool | None:
    if isinstance(value, (tuple, list)):
        return ", ".join(str(item) for item in value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
