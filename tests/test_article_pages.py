"""Nothing of the articles is left out. That their pages are current is checked with all others in test_docs."""

from advisor.articles import case_ids
from advisor.explaining.entries import entries
from advisor.types import CaseArguments
from tests.article_pages import DOCS, features
from tools import TOOLS

ROOT = DOCS.parent
KNOWN = {
    "entry": set(entries()),
    "number": set(case_ids()),
    "tool": {tool.name for tool in TOOLS},
    "argument": set(CaseArguments.model_fields),
}


def test_every_one_of_the_142_things_is_answered_by_something_that_exists():
    assert list(features()) == list(range(1, 143))
    for number, answers in features().items():
        assert answers, number
        for answer in answers:
            kind, _, name = answer.partition(":")
            assert name in KNOWN[kind] if kind in KNOWN else (kind == "page" and (ROOT / name).exists()), answer


def test_the_questions_and_the_checklist_lead_to_entries():
    for key, count in (("interview-questions", 15), ("checklist", 13)):
        rows = entries()[key].table[1:]
        assert len(rows) == count
        assert [target for _, target in rows if target not in entries()] == []
