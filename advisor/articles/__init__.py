"""The three articles that TrainFit grew from: every worked number as a formula with its letters, and where it is wrong.

A number is made of terms, the very ones that ``profile`` puts into an estimate wherever the engine has such a term.
"""

from advisor.articles.cases import ARTICLES, ArticleCase, case_ids, find_case
from advisor.articles.conflicts import Conflict, conflicts, find_conflict
from advisor.articles.evaluate import Figure, evaluate, read_letters
from advisor.articles.printing import as_printed, stated_text

__all__ = [
    "ARTICLES", "ArticleCase", "Conflict", "Figure", "as_printed", "case_ids", "conflicts", "evaluate", "find_case",
    "find_conflict", "read_letters", "stated_text",
]  # fmt: skip
