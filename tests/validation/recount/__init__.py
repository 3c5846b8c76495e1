"""Counts the saved tensors of a catalog model again, with PyTorch itself; needs the group validate-torch."""
