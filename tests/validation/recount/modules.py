"""What autograd saves in the real transformers modules, on the meta device: shapes and dtypes, no memory, no weights.

What a GPU would do differently:

* dropout keeps its mask in one byte an element there, in the model's dtype here;
* experts keep a few more bytes of routing indices a token there;
* sdpa is taken as the flash kernel, which a GPU chooses where there is no mask and q, k and v are equally wide; other
  cases are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from tests.validation.facts import BadCallError

#: Our name for sdpa as a GPU runs it: on the meta device PyTorch itself would fall back to plain matrix products.
GPU_SDPA = "sdpa_as_on_a_gpu"
WIDEST_FLASH_HEAD = 256


@dataclass
class Saved:
    """Bytes that autograd saves, each storage once, where it was first saved.

    Attributes:
        seen: storages that do not count: parameters, buffers, inputs, and those already counted; held, so that none
            is freed and its address taken by another.
        by_layer: bytes saved inside each layer.
        outside: bytes saved elsewhere: final norm, head, loss.
        current: the layer whose forward pass is running.
    """

    seen: dict[int, torch.UntypedStorage]
    by_layer: list[int]
    outside: int = 0
    current: int | None = field(default=None, repr=False)

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Called for every tensor that autograd saves."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.seen:
            self.seen[storage._cdata] = storage
            self._add(storage.nbytes())
        return tensor

    def _add(self, count: int) -> None:
        if self.current is None:
            self.outside += count
        else:
            self.by_layer[self.current] += count

    def follow(self, layers: Iterable[torch.nn.Module]) -> None:
        """Keeps ``current`` up to date while the layers run."""
        for index, layer in enumerate(layers):
            layer.register_forward_pre_hook(lambda *_, entered=index: setattr(self, "current", entered))
            layer.register_forward_hook(lambda *_: setattr(self, "current", None))


def count_saved(config: Mapping[str, Any], *, sequence: int, attention: str) -> Saved:
    """Runs one forward pass with its loss in bf16, one sequence a batch, everything trained.

    Args:
        config: a config.json object of a language model.
        sequence: tokens.
        attention: ``sdpa`` or ``eager``.

    Raises:
        BadCallError: transformers has no such attention for the model, or a GPU would not run it as flash.
    """
    model = build(config, attention)
    with torch.device("meta"):
        tokens = torch.zeros(1, sequence, dtype=torch.long)
        # A mask that is given is used as it is; making one would look at values, and there are none.
        mask = torch.zeros(1, 1, sequence, sequence, dtype=torch.bfloat16)
    known = [tensor.untyped_storage() for tensor in (*model.parameters(), *model.buffers(), tokens, mask)]
    layers = decoder_layers(model, model.config.num_hidden_layers)
    saved = Saved({storage._cdata: storage for storage in known}, [0] * len(layers))
    saved.follow(layers)
    with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda tensor: tensor):
        model(input_ids=tokens, labels=tokens, attention_mask=mask)
    return saved


def build(config: Mapping[str, Any], attention: str) -> torch.nn.Module:
    """The transformers module of a config, in bf16 and in training mode.

    Raises:
        BadCallError: transformers has no such attention for the model.
    """
    transformers.logging.set_verbosity_error()
    ALL_ATTENTION_FUNCTIONS.register(GPU_SDPA, flash_attention)
    settings = AutoConfig.for_model(**config, use_cache=False)
    kind = GPU_SDPA if attention == "sdpa" else attention
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(settings, dtype=torch.bfloat16, attn_implementation=kind)
    except ValueError as error:
        raise BadCallError(f"transformers refuses --attention {attention}: {str(error).split('. ')[0]}") from error
    return model.train()


def decoder_layers(model: torch.nn.Module, count: int) -> torch.nn.ModuleList:
    """The outermost list of that many modules."""
    lists = (module for module in model.modules() if isinstance(module, torch.nn.ModuleList))
    return next(modules for modules in lists if len(modules) == count)


def flash_attention(
    _module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention as transformers calls it, by the kernel that a GPU would choose."""
    window = options.get("sliding_window")
    reasons = {
        "soft-capped scores": options.get("softcap"),
        "attention sinks": options.get("s_aux") is not None,
        "a window within the sequence": window and window <= query.shape[2],
        "values of another width than keys": value.shape[-1] != query.shape[-1],
        "heads that wide": query.shape[-1] > WIDEST_FLASH_HEAD,
    }
    for reason, applies in reasons.items():
        if applies:
            raise BadCallError(f"a GPU would not run {reason} as flash; use --attention eager")
    kernel = torch.ops.aten._scaled_dot_product_flash_attention
    output = kernel(query, key, value, dropout, is_causal=True, return_debug_mask=False, scale=scaling)[0]
    return output.transpose(1, 2), None
