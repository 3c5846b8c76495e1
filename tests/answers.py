"""Answers made by hand: what the words are tried on, whatever the physics says today."""

from __future__ import annotations

from typing import Any

from advisor.types import MemoryAnswer, SetupAnswer

GIB = 1024**3
TERMS = {
    "weights": 17.53,
    "gradients": 8.77,
    "master_weights": 4.38,
    "moments": 8.77,
    "attention_saved": 6.04,
    "ffn_saved": 9.06,
    "norms_saved": 1.26,
    "logits": 1.96,
    "buckets": 0.94,
    "workspace": 0.06,
}


def memory_answer(**changes: Any) -> MemoryAnswer:
    """A 70B job on pipeline and tensor parallel ranks."""
    sizes = {name: int(size * GIB) for name, size in TERMS.items()}
    peak = sum(sizes.values())
    facts = {
        "verdict": "fits",
        "peak_bytes": peak,
        "peak_bytes_low": int(peak * 0.95),
        "peak_bytes_high": int(peak * 1.08),
        "reserved_bytes": int(peak * 1.03),
        "usable_bytes": 76 * GIB,
        "margin_bytes": 76 * GIB - int(peak * 1.03),
        "evidence": "known",
        "binding": {"stage": 0, "phase": "backward", "term": "weights"},
        "terms": [term(name, size) for name, size in sizes.items()] + [term("step_scratch", GIB, phases=("step",))],
        "symbols": [],
        "activations": {
            "saved_bytes": sizes["attention_saved"] + sizes["ffn_saved"] + sizes["norms_saved"],
            "loss_bytes": sizes["logits"],
            "working_set_bytes": 0,
            "per_layer_bytes": sizes["ffn_saved"] // 20,
        },
        "stages": [
            {
                "stage": number,
                "layers": 20,
                "in_flight": 4 - number,
                "parameters": 2 * 10**9,
                "peak_bytes": peak - number * GIB,
                "phase": "backward",
            }
            for number in range(4)
        ],
        "phases": [{"phase": "backward", "bytes": peak}],
        "parameters": {
            "total": 70_553_706_496,
            "trainable": 70_553_706_496,
            "active": 70_553_706_496,
            "per_rank": 10**9,
        },
        "host": {"cpu_bytes_per_node": 12 * GIB, "nvme_bytes_per_node": 0, "verdict": "needs_info"},
        "time": {"step_time_s": 12.5, "tokens_per_s": 21_000.0, "mfu": 0.41, "mfu_convention": "model FLOP"},
        "layout": {"tensor_parallel": 8, "sequence_parallel": True, "pipeline_parallel": 4, "zero_stage": 1},
        "framework": "megatron",
        "assumptions": [assumption(f"argument_{number}") for number in range(30)]
        + [assumption("model", origin="given"), assumption("micro_batch", flips_verdict=True)],
        "warnings": ["the sequence is longer than the model was made for"] * 6,
        "next_calls": [{"tool": "estimate_memory", "arguments": {"recompute": "full"}, "why": "halves activations"}]
        * 4,
        "versions": {"trainfit": "0", "catalog": "0", "rules": "0"},
    }
    return MemoryAnswer.model_validate(facts | changes)


def setup_answer(**changes: Any) -> SetupAnswer:
    """The recommendation that holds :func:`memory_answer`."""
    estimate = memory_answer()
    other = {
        "framework": "megatron",
        "layout": {"tensor_parallel": 4, "pipeline_parallel": 8},
        "rung": "rung-0-sharding",
        "peak_bytes": 50 * GIB,
        "fits": True,
        "cost": 1.07,
        "why": "less traffic inside the node, a longer pipeline bubble",
    }
    facts = {
        "verdict": "fits",
        "layout": estimate.layout,
        "framework": "megatron",
        "rung": "rung-0-sharding",
        "steps": [step(number) for number in range(8)],
        "estimate": estimate,
        "alternatives": [other] * 4,
        "next_rung": other,
        "fastest": None,
        "searched": {"layouts": 4000, "legal": 900, "fitting": 120, "rungs": ["0"]},
        "suggestions": [
            {
                "change": {"method": "lora"},
                "what": "train adapters only",
                "peak_bytes": 20 * GIB,
                "fits": True,
                "changes": "which weights move",
            }
        ],
        "assumptions": estimate.assumptions,
        "warnings": estimate.warnings,
        "next_calls": estimate.next_calls,
        "versions": estimate.versions,
    }
    return SetupAnswer.model_validate(facts | changes)


def term(name: str, size: int, phases: tuple[str, ...] = ("backward",)) -> dict[str, Any]:
    return {
        "name": name,
        "slot": name,
        "bytes": size,
        "formula": "N * w",
        "substituted": "70 * 2",
        "symbols": ("N", "w"),
        "source": "a paper, eq. 2",
        "phases": phases,
    }


def assumption(argument: str, *, origin: str = "default", flips_verdict: bool | None = None) -> dict[str, Any]:
    return {"argument": argument, "value": 1, "origin": origin, "flips_verdict": flips_verdict}


def step(number: int) -> dict[str, Any]:
    return {
        "id": f"step-{number}",
        "question": "Which tensor parallel degree?",
        "lever": "tensor_parallel",
        "from": "1",
        "to": "8",
        "before": (200 - 10 * number) * GIB,
        "after": (190 - 10 * number) * GIB,
        "because": "the states of one rank alone are larger than the device; " * 4,
        "why_not_less": "misses",
        "why_not_more": "leaves the node",
    }
