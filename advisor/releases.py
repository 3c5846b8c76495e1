"""What the named versions of libraries change: facts read in their code, by release."""

from __future__ import annotations

import re
from functools import cache

from advisor.types.case import Case


def release(text: str, library: str) -> tuple[int, int] | None:
    """Major and minor release of a library in text such as ``"torch 2.4.1, transformers 4.45.2"``."""
    return _release(text.lower(), library)


@cache
def _release(text: str, library: str) -> tuple[int, int] | None:
    match = re.search(rf"{library}\D{{0,3}}(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def tells(version: str) -> bool:
    """Whether a text names anything that this module reads."""
    text = version.lower()
    libraries = any(release(text, library) for library in ("torch", "transformers"))
    return libraries or "kempnerforge" in text or re.search(r"\b20\d\d-\d\d", text) is not None


def logits_path(case: Case) -> str:
    """Which copies of the logits exist between the head and the loss.

    transformers upcast in the model up to 4.45, then in the loss function, where the shifted logits were a copy of
    their own until 4.49; later releases pad the labels instead.
    """
    training = case.training
    if training.framework in {"megatron", "megatron_fsdp"}:
        return "vocab_parallel"
    if case.model.model_type in _NEVER_UPCAST or "kempnerforge" in training.framework_version.lower():
        return "own_dtype"  # their loss functions take the logits as they come
    titan = training.framework == "torchtitan"
    # torchtune compiles a chunk's loss with the model
    compiles = compiles_loss(training.framework_version) if titan else training.loss == "chunked"
    if training.compile and compiles:
        return "compiled"
    found = release(training.framework_version, "transformers")
    if titan or found is None or found >= (4, 50):
        return "upcast"
    if case.model.model_type in _NO_UPCAST:
        return "own_dtype"
    return "upcast_in_model" if found <= (4, 45) else "upcast_shifted"


def compiles_loss(version: str) -> bool:
    """Torchtitan compiles the loss function beside the layers since early 2025, the commits for torch 2.7."""
    found, year = release(version, "torch"), re.search(r"\b(20\d\d)-\d\d", version)
    if found is None:
        return year is None or int(year[1]) > LAST_YEAR_OF_EAGER_LOSS
    return found >= (2, 7)


LAST_YEAR_OF_EAGER_LOSS = 2024


#: Families whose own code never casts the logits (llm-foundry).
_NEVER_UPCAST = ("mpt",)
#: Families whose loss ran on the logits' own dtype before the common loss function.
_NO_UPCAST = ("gpt2", "gpt_bigcode")


def quantizes_experts(case: Case) -> bool:
    """Quantisers replace linear modules; since transformers 5 experts are one stacked parameter, which they miss."""
    found = release(case.training.framework_version, "transformers")
    return found is None or found < (5, 0)


#: Families whose flash attention expanded key/value heads before the attention interface of transformers 4.48.
_EXPANDED = ("mistral", "mixtral", "qwen2", "qwen2_moe")


def expands_key_value_heads(case: Case) -> bool:
    """Whether key and value heads are expanded to the query heads before attention."""
    training = case.training
    if training.attention in {"eager", "sdpa_masked"}:
        return True
    found = release(training.framework_version, "transformers")
    old = found is not None and found < (4, 48)
    return old and training.implementation == "reference" and case.model.model_type in _EXPANDED
