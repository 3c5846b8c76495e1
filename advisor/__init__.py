"""TrainFit: will a large-model training job fit, what fills the memory, which configuration to run and why."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from advisor.api import describe_model, estimate_memory, explain, explore, find_limit, list_catalog, recommend_setup
    from advisor.errors import AdvisorError

__version__ = "0.1.0"
__all__ = [
    "AdvisorError", "describe_model", "estimate_memory", "explain", "explore", "find_limit", "list_catalog",
    "recommend_setup",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for, so that ``import advisor`` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'advisor' has no attribute {name!r}")
    return getattr(import_module("advisor.errors" if name == "AdvisorError" else "advisor.api"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
