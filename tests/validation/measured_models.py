"""The model of a published measurement → a config.json object of the family whose modules it ran as."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.validation.facts import NotGivenError

#: A name of the model → the transformers family whose modules it runs as.
FAMILIES = {
    "qwen2": "qwen2", "qwen-": "qwen2", "qwen1": "qwen2", "qwen3": "qwen3", "mixtral": "mixtral", "mistral": "mistral",
    "bigcode": "gpt_bigcode", "santacoder": "gpt_bigcode", "powerlm": "granite", "granite": "granite",
    "gemma-2": "gemma2", "gemma2": "gemma2", "phi-2": "phi", "phi-3": "phi3", "phi-4": "phi3", "gpt2": "gpt2",
    "mpt": "mpt",
}  # fmt: skip


def model_argument(row: Mapping[str, Any], framework: str) -> dict[str, dict[str, Any]]:
    """The argument that gives the row's model: by config.json, or by hyper-parameters where no family is like it.

    Raises:
        NotGivenError: a dimension is not stated, or a kind of layer is not modelled.
    """
    model = row["model"]
    if not model.get("layers") or not model.get("hidden") or not model.get("heads"):
        raise NotGivenError("the model's dimensions")
    notes = str(model.get("notes") or "").lower()
    if "mamba" in notes or "deltanet" in notes:
        raise NotGivenError("not modelled yet: state-space or linear-attention layers")
    if framework not in ("megatron", "megatron_fsdp"):
        return {"hf_config": _transformers_model(model)}
    if model.get("experts") and model.get("mlp_type") == "gelu":
        return {"architecture": _megatron_plain_experts(row)}
    return {"hf_config": _megatron_model(row)}


def _transformers_model(model: Mapping[str, Any]) -> dict[str, Any]:
    name = str(model["name"]).lower()
    plain = "gelu" in str(model.get("mlp_type") or "").lower() and "gated" not in str(model.get("mlp_type")).lower()
    family = next((known for part, known in FAMILIES.items() if part in name), "gpt_neox" if plain else "llama")
    if model.get("experts"):
        family = "qwen3_moe" if family == "qwen3" else "mixtral"
    if not model.get("vocab"):
        raise NotGivenError("the vocabulary")
    config = {
        "model_type": family,
        "vocab_size": model["vocab"],
        "num_hidden_layers": model["layers"],
        "hidden_size": model["hidden"],
        "num_attention_heads": model["heads"],
        "num_key_value_heads": model.get("kv_heads") or model["heads"],
        "head_dim": model.get("head_dim"),
        "intermediate_size": model.get("ffn") or model.get("moe_ffn"),
        "tie_word_embeddings": bool(model.get("tied")),
        "max_position_embeddings": 2048 if family == "gpt_bigcode" else 131_072,
    }
    if family == "mistral":
        config["sliding_window"] = None
    if model.get("experts"):
        config |= {"num_local_experts": model["experts"], "num_experts_per_tok": model["topk"]}
        width = "moe_intermediate_size" if family == "qwen3_moe" else "intermediate_size"
        config[width] = model["moe_ffn"] or model["ffn"]
    if not config["intermediate_size"]:
        raise NotGivenError("the feed-forward width")
    return {key: value for key, value in config.items() if value is not None or key == "sliding_window"}


#: Megatron-LM's arguments drop a tenth unless told otherwise, which its own tests of plain GPT models leave standing.
MEGATRON_DROPOUT = 0.1


def _megatron_dropout(row: Mapping[str, Any]) -> float:
    own = "megatron-lm" in str(row.get("framework")).lower() and "cudagraph" not in row["id"]
    return MEGATRON_DROPOUT if own else 0.0


#: Megatron pads the vocabulary to a multiple of 128 times tensor parallel; its own tests use GPT-2's.
GPT2_VOCABULARY, PADDING = 50_257, 128
#: BigScience's trials for BLOOM, whose rows leave it out: VOCAB_LENGTH=250k in the chronicle that they are from.
BLOOM_TRIALS, BLOOM_VOCABULARY = "bigscience/tr11", 250_000


def _padded_vocabulary(row: Mapping[str, Any]) -> int:
    rounded = re.search(r'vocab "(\d+)k"', _notes(row["model"]))
    usual = BLOOM_VOCABULARY if row["id"].startswith(BLOOM_TRIALS) else GPT2_VOCABULARY
    size = row["model"].get("vocab") or (int(rounded[1]) * 1000 if rounded else usual)
    step = PADDING * (row.get("tp") or 1)
    return -(-size // step) * step


def _notes(model: Mapping[str, Any]) -> str:
    return str(model.get("notes") or "").lower().replace("-", "_")


def _megatron_plain_experts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Megatron's own GPT with every feed-forward routed: LayerNorm, learned positions, experts without a gate."""
    model = row["model"]
    return {
        "layers": model["layers"],
        "hidden": model["hidden"],
        "heads": model["heads"],
        "kv_heads": model.get("kv_heads") or model["heads"],
        "head_dim": model.get("head_dim") or model["hidden"] // model["heads"],
        "vocab": _padded_vocabulary(row),
        "tied": bool(model.get("tied")),
        "experts": model["experts"],
        "top_k": model["topk"],
        "expert_ffn": model.get("moe_ffn") or model.get("ffn"),
        "gated": False,
        "norm": "layernorm",
        "learned_positions": "rope" not in _notes(model),
        "max_positions": row.get("seq_len") or 1024,
        **dict.fromkeys(("attention_dropout", "residual_dropout"), _megatron_dropout(row)),
    }


def _megatron_model(row: Mapping[str, Any]) -> dict[str, Any]:
    """The model in transformers' words; Megatron's own GPT has LayerNorm, plain GELU and biases."""
    model, notes = row["model"], _notes(row["model"])
    config = {
        "vocab_size": _padded_vocabulary(row),
        "num_hidden_layers": model["layers"],
        "hidden_size": model["hidden"],
        "num_attention_heads": model["heads"],
        "num_key_value_heads": model.get("kv_heads") or model["heads"],
        "head_dim": model.get("head_dim") or model["hidden"] // model["heads"],
        "intermediate_size": model.get("ffn") or 4 * model["hidden"],
        "tie_word_embeddings": bool(model.get("tied")),
        "max_position_embeddings": max(row.get("seq_len") or 0, 4096),
    }
    if model.get("experts"):
        return config | _megatron_experts(model, notes)
    if model.get("mlp_type") != "gelu":
        return config | {"model_type": "llama"}
    names = ("attention_dropout", "hidden_dropout", "embd_pdrop")
    plain = config | {"hidden_act": "gelu", **dict.fromkeys(names, _megatron_dropout(row))}
    if "rope" in notes:
        return plain | {"model_type": "gpt_neox", "use_parallel_residual": False}
    return plain | {"model_type": "gpt2", "max_position_embeddings": row.get("seq_len") or 1024}


def _megatron_experts(model: Mapping[str, Any], notes: str) -> dict[str, Any]:
    width = model.get("moe_ffn") or model.get("ffn")
    experts = {"num_experts_per_tok": model["topk"], "moe_intermediate_size": width}
    if "mla" in notes or "kv_lora" in notes:
        ranks = {
            name: int(found[1]) for name in ("q_lora", "kv_lora") if (found := re.search(rf"{name}\D*(\d+)", notes))
        }
        predictors = re.search(r'"mtp_num_layers": "(\d+)"', notes)
        dense = re.search(r"(\d+) dense|\[0\]\*(\d+)", notes)
        return experts | {
            "model_type": "deepseek_v3",
            "n_routed_experts": model["experts"],
            "n_shared_experts": (model.get("shared_expert_ffn") or 0) // width,
            "q_lora_rank": ranks.get("q_lora"),
            "kv_lora_rank": ranks.get("kv_lora", 512),
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "first_k_dense_replace": int(dense[1] or dense[2]) if dense else 0,
            "num_nextn_predict_layers": int(predictors[1]) if predictors else 0,
        }
    if not model.get("shared_expert_ffn") and "qk_layernorm" not in notes and "qwen3" not in str(model["name"]).lower():
        return experts | {"model_type": "mixtral", "num_local_experts": model["experts"], "intermediate_size": width}
    if not model.get("shared_expert_ffn"):
        return {"model_type": "qwen3_moe", "num_experts": model["experts"], **experts}
    shared = {"shared_expert_intermediate_size": model.get("shared_expert_ffn") or 0}
    return {"model_type": "qwen2_moe", "num_experts": model["experts"], **experts, **shared}
