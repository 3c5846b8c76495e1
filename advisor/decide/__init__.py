"""The explanation: the searched layout, reached lever by lever in the order of the tree, with what was not chosen."""

from advisor.decide.walk import walk

__all__ = ["walk"]
