"""The text of an answer: it stands on its own, is short, and computes nothing but its rounding."""

from advisor.words.catalog import catalog_text
from advisor.words.explain import explain_text
from advisor.words.memory import memory_text
from advisor.words.model import model_text
from advisor.words.setup import setup_text
from advisor.words.sweeps import explore_text, limit_text

__all__ = ["catalog_text", "explain_text", "explore_text", "limit_text", "memory_text", "model_text", "setup_text"]
