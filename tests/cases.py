"""Cases that several tests share: one per kind of model, framework and method, small enough to write out."""

from advisor.resolve import resolve
from advisor.types import CaseArguments


def case(**arguments):
    """A resolved case, as the public functions make it."""
    return resolve(CaseArguments(**arguments), allow_paths=False)


KINDS = {
    "8b full on one": {"model": "llama-3-8b", "hardware": "1x1 H100-80GB"},
    "8b fsdp": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2"},
    "8b fsdp kept": {
        "model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "reshard_after_forward": False,
    },
    "8b ddp eager": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "ddp", "attention": "eager"},
    "8b lora": {"model": "llama-3-8b", "hardware": "1x1 RTX-4090", "method": "lora", "lora_dtype": "fp32"},
    "8b qlora": {"model": "llama-3-8b", "hardware": "1x1 RTX-4090", "method": "qlora", "recompute": "full"},
    "8b top": {"model": "llama-3-8b", "hardware": "1x1 H100-80GB", "method": "freeze", "trainable": "top:4"},
    "8b deepspeed offload": {
        "model": "llama-3-8b", "hardware": "1x8 A100-80GB", "framework": "deepspeed", "zero_stage": 3,
        "offload_optimizer": "cpu",
    },
    "70b megatron": {
        "model": "llama-3-70b", "hardware": "4x8 H100-80GB", "tensor_parallel": 4, "pipeline_parallel": 4,
        "sequence_length": 8192, "recompute": "near_free",
    },
    "qwen3 moe": {"model": "qwen3-30b-a3b", "hardware": "1x8 H100-80GB", "framework": "megatron", "expert_parallel": 8},
    "deepseek": {
        "model": "deepseek-v3", "hardware": "64x8 H800-80GB", "tensor_parallel": 2, "pipeline_parallel": 16,
        "expert_parallel": 16, "recompute": "blocks", "recompute_layers": 2,
    },
    "gemma sliding": {"model": "gemma-2-9b", "hardware": "1x8 H100-80GB", "attention": "sdpa", "sequence_length": 8192},
    "gpt2": {"model": "gpt2-xl", "hardware": "1x1 A100-80GB", "attention": "eager", "sequence_length": 1024},
    "gpt-oss": {"model": "gpt-oss-20b", "hardware": "1x8 H100-80GB", "recompute": "every_k", "recompute_every": 3},
    "phi fused qkv": {"model": "phi-4", "hardware": "1x8 H100-80GB", "recompute": "sqrt"},
}  # fmt: skip
