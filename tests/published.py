"""Layouts that people published for models in production, as jobs; docs/planner.md shows what the product says of them.

What a publication leaves unsaid is read in the recipe that ran it. Megatron-Bridge's performance recipes reduce
gradients in bf16, balance the router by force and take the loss as one kernel (``perf_recipes/_common.py``);
DeepSeek-V3's keep bf16 moments in the precision-aware optimizer (``recipes/deepseek/deepseek_v3.py``). What the makers
of DeepSeek-V3 (report, sections 3.2 and 3.3) and of Kimi-K2 (report, section 2.4) keep in eight bits is a precision
each: ``fp8_compact`` and ``bf16_compact``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import advisor
from advisor.errors import AdvisorError
from advisor.types import MemoryAnswer, SetupAnswer
from advisor.units import format_bytes
from advisor.words.phrases import layout_words

BRIDGE: Final = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/067f987df03b8355b03192d88d70f1709fedf51a/"
PERFORMANCE: Final = BRIDGE + "docs/performance-summary.md"
NEMO: Final = (
    "https://github.com/NVIDIA-NeMo/NeMo/blob/8cfedd7203462cb251a914e700e5605444277561/"
    "scripts/performance/recommended_model_configs/"
)
FOLDING: Final = "https://arxiv.org/abs/2504.14960"
DEEPSEEK: Final = "https://arxiv.org/abs/2412.19437"
KIMI: Final = "https://arxiv.org/abs/2507.20534"


@dataclass(frozen=True, eq=False)
class Published:
    """One published layout.

    Attributes:
        title: model and hardware, for a heading.
        source: where the layout was read, on 2026-11-29.
        job: arguments of the model, the hardware and the training.
        layout: arguments of the layout.
    """

    title: str
    source: str
    job: Mapping[str, Any]
    layout: Mapping[str, Any]

    @cached_property
    def theirs(self) -> MemoryAnswer:
        """The published layout, estimated."""
        return advisor.estimate_memory(**self.job, **self.layout)

    @cached_property
    def fastest(self) -> SetupAnswer:
        """What the product answers when only speed counts."""
        return advisor.recommend_setup(**self.job, objective="throughput")

    @cached_property
    def ours(self) -> SetupAnswer:
        """What the product answers by its own law."""
        return advisor.recommend_setup(**self.job)

    def slower(self, answer: SetupAnswer) -> float:
        """How much longer a step of an answer takes than the published one's; below nothing when it is faster."""
        return answer.estimate.time.step_time_s / self.theirs.time.step_time_s - 1

    @property
    def differences(self) -> Iterator[str]:
        """Each degree in which the product's own answer differs, and why, in the walk's words."""
        for lever in DEGREES:
            theirs, ours = getattr(self.theirs.layout, lever), getattr(self.ours.layout, lever)
            if theirs != ours:
                yield f"`{lever}` {ours} instead of {theirs}: {self.why(lever, theirs)}"

    def why(self, lever: str, theirs: int) -> str:
        """The walk's reason, or what the search finds with the degree held where the walk has no step for it."""
        step = next((step for step in self.ours.steps if step.id == STEPS[lever]), None)
        if step:
            more = theirs > getattr(self.ours.layout, lever)
            return step.why_not_more if more else step.why_not_less
        try:
            held = advisor.recommend_setup(**self.job, **{lever: theirs})
        except AdvisorError as error:
            uneven = "the longest stage does not divide into so many pieces, and the search interleaves no others"
            return f"held at {theirs}, no layout is legal: {uneven if lever == 'virtual_stages' else error.detail}."
        if held.verdict == "does_not_fit" or held.rung > self.ours.rung:
            return f"held at {theirs}, everything else searched again, it fits only at {held.rung}."
        longer = held.estimate.time.step_time_s / self.ours.estimate.time.step_time_s - 1
        return f"held at {theirs}, everything else searched again, a step takes {longer:+.1%}."


#: The degrees that are compared, and the walk's step that answers for each.
STEPS: Final = {
    "tensor_parallel": "tensor-parallel",
    "pipeline_parallel": "pipeline-parallel",
    "virtual_stages": "virtual-stages",
    "context_parallel": "context-parallel",
    "expert_parallel": "expert-parallel",
    "micro_batch": "micro-batch",
}
DEGREES: Final = tuple(STEPS)

BENCHMARK: Final = {"framework": "megatron", "gradient_dtype": "bf16", "loss": "fused", "sequence_length": 4096}
MIXTURE: Final = {**BENCHMARK, "moe_imbalance": 1.0}
#: The precision-aware optimizer, whose gradients are bf16 by themselves.
AWARE: Final = {**MIXTURE, "precision": "bf16_moments"}
RECIPE: Final = {"framework": "megatron", "sequence_length": 4096}
NEMOTRON: Final = {"gated": False, "norm": "layernorm", "vocab": 256_000, "tied": False}

PUBLISHED: Final = (
    Published(
        "Llama-3.1-405B, 128x8 H100, 8k",
        PERFORMANCE,
        {
            **BENCHMARK,
            "model": "llama-3.1-405b",
            "hardware": "128x8 H100-80GB",
            "sequence_length": 8192,
            "global_batch": 1536,
        },
        {
            "tensor_parallel": 8,
            "pipeline_parallel": 8,
            "virtual_stages": 8,
            "context_parallel": 2,
            "stage_layers": [15, 16, 16, 16, 16, 16, 16, 15],
        },
    ),
    Published(
        "DeepSeek-V3, 128x8 H100",
        PERFORMANCE,
        {**AWARE, "model": "deepseek-v3", "hardware": "128x8 H100-80GB", "global_batch": 8192},
        {
            "tensor_parallel": 2,
            "pipeline_parallel": 8,
            "virtual_stages": 4,
            "expert_parallel": 64,
            "recompute_modules": ["mla_up_proj", "mlp"],
            "stage_layers": [7, 8, 8, 8, 8, 8, 8, 6],
        },
    ),
    Published(
        "DeepSeek-V3, 64x4 GB200",
        PERFORMANCE,
        {**AWARE, "model": "deepseek-v3", "hardware": "64x4 GB200-186GB", "global_batch": 4096},
        {
            "pipeline_parallel": 4,
            "virtual_stages": 4,
            "expert_parallel": 64,
            "recompute_modules": ["mla_up_proj"],
            "stage_layers": [16, 16, 16, 13],
        },
    ),
    Published(
        "DeepSeek-V3, 64x4 GB300",
        PERFORMANCE,
        {**AWARE, "model": "deepseek-v3", "hardware": "64x4 GB300-288GB", "global_batch": 4096},
        {"pipeline_parallel": 2, "virtual_stages": 4, "expert_parallel": 32, "stage_layers": [32, 29]},
    ),
    Published(
        "DeepSeek-V3, 256x8 H800, its makers'",
        DEEPSEEK,
        {
            **MIXTURE,
            "gradient_dtype": "fp32",
            "precision": "fp8_compact",
            "model": "deepseek-v3",
            "hardware": "256x8 H800-80GB",
            "global_batch": 15_360,
        },
        {
            "pipeline_parallel": 16,
            "expert_parallel": 64,
            "stage_layers": [4] * 15 + [1],
            "pipeline_schedule": "dualpipe",
            "recompute_modules": ["layernorm", "mla_up_proj", "moe_act"],
        },
    ),
    Published(
        "Kimi-K2, 64x4 GB300",
        PERFORMANCE,
        {**MIXTURE, "model": "kimi-k2", "hardware": "64x4 GB300-288GB", "global_batch": 4096, "optimizer": "muon"},
        {
            "pipeline_parallel": 4,
            "virtual_stages": 4,
            "expert_parallel": 64,
            "micro_batch": 2,
            "recompute_modules": ["mla_up_proj"],
            "stage_layers": [16, 16, 16, 13],
        },
    ),
    Published(
        "Kimi-K2, 32x8 H800, its makers'",
        KIMI,
        {
            **MIXTURE,
            "gradient_dtype": "fp32",
            "precision": "bf16_compact",
            "model": "kimi-k2",
            "hardware": "32x8 H800-80GB",
            "global_batch": 16_384,
            "optimizer": "muon",
        },
        {
            "pipeline_parallel": 16,
            "virtual_stages": 2,
            "expert_parallel": 16,
            "offload_activations": "cpu",
            "recompute_modules": ["layernorm", "mla_up_proj", "moe_act"],
            "stage_layers": [4] * 15 + [1],
        },
    ),
    Published(
        "Mixtral-8x22B, 16x8 H100",
        FOLDING,
        {**RECIPE, "model": "mixtral-8x22b", "hardware": "16x8 H100-80GB", "global_batch": 256},
        {"tensor_parallel": 2, "pipeline_parallel": 8, "expert_parallel": 8},
    ),
    Published(
        "Mixtral-8x22B, 32x8 B200, 64k",
        NEMO + "model_configs_b200.csv",
        {
            **RECIPE,
            "model": "mixtral-8x22b",
            "hardware": "32x8 B200-180GB",
            "sequence_length": 65_536,
            "global_batch": 64,
        },
        {
            "tensor_parallel": 2,
            "pipeline_parallel": 4,
            "virtual_stages": 14,
            "context_parallel": 8,
            "expert_parallel": 8,
        },
    ),
    Published(
        "Mixtral-8x7B, 16x4 GB200",
        NEMO + "model_configs_gb200.csv",
        {**RECIPE, "model": "mixtral-8x7b", "hardware": "16x4 GB200-186GB", "global_batch": 256},
        {"expert_parallel": 8, "micro_batch": 2},
    ),
    Published(
        "Qwen3-235B-A22B, 32x8 H100",
        PERFORMANCE,
        {**MIXTURE, "model": "qwen3-235b-a22b", "hardware": "32x8 H100-80GB", "global_batch": 8192},
        {
            "tensor_parallel": 2,
            "pipeline_parallel": 8,
            "virtual_stages": 4,
            "expert_parallel": 32,
            "stage_layers": [11, 12, 12, 12, 12, 12, 12, 11],
        },
    ),
    Published(
        "Qwen3-235B-A22B, 64x4 GB200",
        PERFORMANCE,
        {**MIXTURE, "model": "qwen3-235b-a22b", "hardware": "64x4 GB200-186GB", "global_batch": 8192},
        {
            "pipeline_parallel": 8,
            "virtual_stages": 3,
            "expert_parallel": 32,
            "stage_layers": [11, 12, 12, 12, 12, 12, 12, 11],
        },
    ),
    Published(
        "Qwen3-30B-A3B, 2x4 GB200",
        PERFORMANCE,
        {**MIXTURE, "model": "qwen3-30b-a3b", "hardware": "2x4 GB200-186GB", "global_batch": 512},
        {"expert_parallel": 8, "micro_batch": 4},
    ),
    Published(
        "Nemotron-4-340B, 32x4 GB200",
        NEMO + "model_configs_gb200.csv",
        {
            **RECIPE,
            "hardware": "32x4 GB200-186GB",
            "global_batch": 32,
            "architecture": {
                **NEMOTRON,
                "layers": 96,
                "hidden": 18_432,
                "heads": 96,
                "kv_heads": 8,
                "head_dim": 192,
                "ffn": 73_728,
            },
        },
        {"tensor_parallel": 4, "pipeline_parallel": 8, "virtual_stages": 12},
    ),
    Published(
        "Nemotron-3-22B, 8x8 H100",
        NEMO + "model_configs_h100.csv",
        {
            **RECIPE,
            "hardware": "8x8 H100-80GB",
            "global_batch": 256,
            "architecture": {
                **NEMOTRON,
                "layers": 40,
                "hidden": 6144,
                "heads": 48,
                "kv_heads": 48,
                "head_dim": 128,
                "ffn": 24_576,
            },
        },
        {"tensor_parallel": 2, "pipeline_parallel": 4, "virtual_stages": 10},
    ),
)


# --- the page -------------------------------------------------------------------------------------------------------


def page_of_published() -> str:
    """All published layouts as a part of docs/planner.md: a table, then the differences of each."""
    head = ["| published | verdict | peak | step | ours, speed alone | ours, by the law |", "|---|---|---|---|---|---|"]
    return "\n\n".join(["\n".join([*head, *map(row_of, PUBLISHED)]), *map(section_of, PUBLISHED)])


def row_of(one: Published) -> str:
    """One published layout in a line."""
    theirs = one.theirs
    shares = " | ".join(f"{one.slower(answer):+.1%}" for answer in (one.fastest, one.ours))
    verdict, step = theirs.verdict.replace("_", " "), theirs.time.step_time_s
    return f"| [{one.title}]({one.source}) | {verdict} | {format_bytes(theirs.peak_bytes)} | {step:,.2f} s | {shares} |"


def section_of(one: Published) -> str:
    """One published layout beside the product's own, with the reasons where they differ."""
    lines = [
        f"### {one.title}\n",
        f"- published: `{layout_words(one.theirs.layout)}`",
        f"- ours: `{layout_words(one.ours.layout)}` ({one.ours.rung})",
        *(f"- {difference}" for difference in one.differences),
    ]
    return "\n".join(lines)
