"""The search: every layout of a case, judged by law and memory, ordered by cost; the lowest rung that fits decides."""

from advisor.search.choose import Found, Rows, search

__all__ = ["Found", "Rows", "search"]
