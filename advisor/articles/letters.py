"""The letters of the articles' formulas: meaning, unit, and the value that an article takes when it names none.

Letters that the engine also uses mean the same here; each article's own spelling is in its file of the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class Letter:
    """One letter; ``default`` is None where a value must be given."""

    name: str
    meaning: str
    unit: str
    default: float | None = None


_LETTERS = (
    # parameters
    Letter("N", "parameters outside the routed experts; of a dense model all", "param"),
    Letter("N_e", "parameters of the routed experts", "param"),
    Letter("G", "trained parameters outside the routed experts", "param"),
    Letter("G_x", "trained parameters of the routed experts", "param"),
    Letter("N_l", "parameters of the adapters", "param"),
    Letter("N_a", "parameters a token uses", "param"),
    # shapes
    Letter("L", "layers", "1", 1),
    Letter("h", "hidden size", "1"),
    Letter("a", "query heads", "1"),
    Letter("g", "key/value heads", "1"),
    Letter("d", "width of a head", "1"),
    Letter("f", "feed-forward width", "1"),
    Letter("V", "vocabulary", "1"),
    Letter("E", "routed experts", "1"),
    Letter("k", "experts a token visits", "1"),
    Letter("f_e", "feed-forward width of a routed expert", "1"),
    Letter("f_s", "feed-forward width of the shared experts", "1"),
    Letter("h_v", "hidden size of the vision tower", "1"),
    Letter("r", "adapter rank", "1", 1),
    # the job
    Letter("b", "sequences in a micro-batch", "1", 1),
    Letter("s", "tokens in a sequence", "1"),
    Letter("s_t", "text tokens in a sequence", "1"),
    Letter("n_v", "tokens of one image", "1"),
    Letter("n_m", "images in a sequence", "1"),
    Letter("m", "micro-batches accumulated in a step", "1", 1),
    # who shares
    Letter("n", "GPUs", "1"),
    Letter("tp", "tensor-parallel ranks", "1", 1),
    Letter("pp", "pipeline stages", "1", 1),
    Letter("ep", "expert-parallel ranks", "1", 1),
    Letter("cp", "context-parallel ranks", "1", 1),
    Letter("dp", "data-parallel ranks", "1", 1),
    Letter("n_r", "replicas of a sharded group", "1", 1),
    Letter("z_1", "ranks that share the optimizer states", "1", 1),
    Letter("z_2", "ranks that share the gradients", "1", 1),
    Letter("z_3", "ranks that share the weights", "1", 1),
    # bytes of an element
    Letter("w", "bytes of an activation element", "B", 2),
    Letter("w_8", "bytes of a mask element", "B", 1),
    Letter("w_32", "bytes of an fp32 element", "B", 4),
    Letter("w_w", "bytes a weight rests in", "B/param", 2),
    Letter("w_g", "bytes of a gradient", "B/param", 2),
    Letter("w_m", "optimizer bytes of a parameter", "B/param", 12),
    Letter("w_E", "optimizer bytes of an expert's parameter", "B/param", 12),
    Letter("w_p", "bytes of an adapter's parameter", "B/param", 2),
    Letter("w_1", "bytes of the master copy", "B/param", 0),
    Letter("w_2", "bytes of the first moment", "B/param", 0),
    Letter("w_3", "bytes of the second moment", "B/param", 0),
    Letter("w_0", "bytes the loader holds a token", "B"),
    # what recompute keeps
    Letter("rho", "share of the layers kept whole", "1", 1),
    Letter("kappa", "share of the layers whose input alone is kept", "1", 1),
    Letter("K", "layers between two layers kept whole", "1"),
    Letter("phi", "share of the optimizer that stays on the GPU", "1", 1),
    # amounts and rates
    Letter("C", "memory of one GPU", "B"),
    Letter("B_s", "bytes that the author adds without counting", "B", 0),
    Letter("W_h", "bytes a second between GPU and host", "B/s"),
    Letter("R_h", "parameters a second that the host steps", "param/s"),
    Letter("n_j", "tokens sent to one rank of experts", "1"),
    Letter("alpha", "activation bytes a parameter", "B/param"),
    Letter("mu", "activations of a mixture over those of a dense model", "1", 1),
    # numbers as printed
    *(Letter(f"x_{place}", f"printed number {place}", "1", 0) for place in range(1, 8)),
)

LETTERS: Final[Mapping[str, Letter]] = MappingProxyType({letter.name: letter for letter in _LETTERS})
