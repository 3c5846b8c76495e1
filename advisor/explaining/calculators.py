"""What other calculators answer for a job, by their own formulas: beside our figure it shows what each leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from advisor.formula import Term, term
from advisor.types.case import Case
from advisor.types.explain import ExplainedFigure
from advisor.units import format_bytes


@dataclass(frozen=True)
class Letter:
    """A letter of these formulas, and how a case gives it."""

    meaning: str
    of: Callable[[Case], float]


def _outside_tables(case: Case) -> int:
    tables = 1 if case.model.tied_embeddings else 2
    return case.parameters.total - tables * case.model.vocab * case.model.hidden


def _tables_on_a_stage(case: Case) -> int:
    return 2 if case.layout.pipeline_parallel == 1 and not case.model.tied_embeddings else 1


LETTERS: Final[Mapping[str, Letter]] = MappingProxyType(
    {
        "N": Letter("all parameters", lambda case: case.parameters.total),
        "N_V": Letter("parameters of one table of the vocabulary", lambda case: case.model.vocab * case.model.hidden),
        "N_B": Letter("parameters outside the tables of the vocabulary", _outside_tables),
        "t": Letter("tables on the fullest pipeline stage", _tables_on_a_stage),
        "n": Letter("GPUs", lambda case: case.cluster.gpus),
        "tp": Letter("tensor-parallel ranks", lambda case: case.layout.tensor_parallel),
        "pp": Letter("pipeline stages", lambda case: case.layout.pipeline_parallel),
        "dp": Letter("data-parallel ranks", lambda case: case.layout.data_parallel),
        "b": Letter("sequences in a micro-batch", lambda case: case.layout.micro_batch),
        "s": Letter("tokens in a sequence", lambda case: case.training.sequence_length),
        "L": Letter("layers", lambda case: case.model.layers),
        "h": Letter("hidden size", lambda case: case.model.hidden),
        "a": Letter("query heads", lambda case: case.model.attention.heads),
        "f": Letter("feed-forward width of a dense layer", lambda case: case.model.ffn.hidden if case.model.ffn else 0),
        "V": Letter("vocabulary", lambda case: case.model.vocab),
        "o": Letter("1 without a pipeline, else 0", lambda case: int(case.layout.pipeline_parallel == 1)),
    }
)

formula = partial(term, "calculator", glossary=LETTERS)


@formula(source="accelerate commands/estimate.py")
def accelerate_float32(N):
    """Accelerate, dtype float32: weights, gradients and two moments, 4 bytes each."""
    return 16 * N


@formula(source="accelerate commands/estimate.py")
def accelerate_float16(N):
    """Accelerate, dtype float16: the largest of its four parts, the moments."""
    return 8 * N


@formula(source="deepspeed runtime/zero/stage_1_and_2.py")
def deepspeed_zero2(N, n):
    """DeepSpeed's estimate for ZeRO-2 without offload."""
    return 2 * N + 18 * N / n


@formula(source="deepspeed runtime/zero/stage3.py")
def deepspeed_zero3(N, N_V, n):
    """DeepSpeed's estimate for ZeRO-3 without offload; the largest module is a table of the vocabulary."""
    return 4 * N_V + 18 * N / n


@formula(source="megatron-lm training/theoretical_memory_usage.py")
def megatron_states(N_B, N_V, t, tp, pp, dp):
    """Megatron-LM's weights and optimizer on the fullest rank, with its distributed optimizer."""
    return (N_B / pp + t * N_V) / tp * (6 + 12 / dp)


@formula(source="megatron-lm training/theoretical_memory_usage.py")
def megatron_activations(L, s, b, h, f, V, o, pp, tp):
    """Megatron-LM's activations, with sequence parallel and selective recompute."""
    return (L * s * b * h * (18 + 4 * f / h) + 8 * s * b * pp + s * b * h * pp + 4 * o * s * b * (h + V)) / tp


@formula(source="eleutherai-cookbook calc/calc_transformer_mem.py")
def cookbook_states_zero3(N, n):
    """The cookbook's states under ZeRO-3 with fp32 gradients, its buckets, and a billion gathered parameters."""
    return 18 * N / n + 2 * 500_000_000 + 2 * 1_000_000_000


@formula(source="eleutherai-cookbook calc/calc_transformer_mem.py")
def cookbook_activations(L, s, b, h, a):
    """The cookbook's activations without recompute: every score matrix is kept."""
    return L * s * b * h * (34 + 5 * a * s / h)


@formula(source="llm-analysis llm_analysis/analysis.py")
def llm_analysis_states_zero3(N, n):
    """llm-analysis' states under ZeRO-3: bf16 weights, fp32 gradients, fp32 master copy and moments."""
    return 18 * N / n


@formula(source="zero-2020 §3.1")
def sixteen(N):
    """Sixteen bytes a parameter, on one GPU."""
    return 16 * N


@formula(source="zero-2020 §3.1")
def eighteen(N):
    """Eighteen bytes a parameter, on one GPU: gradients in fp32."""
    return 18 * N


FORMULAS: Final[Mapping[str, Term]] = MappingProxyType(
    {
        each.name: each
        for each in (
            accelerate_float32, accelerate_float16, deepspeed_zero2, deepspeed_zero3, megatron_states,
            megatron_activations, cookbook_states_zero3, cookbook_activations, llm_analysis_states_zero3, sixteen,
            eighteen,
        )
    }
)  # fmt: skip


def by_others(names: Iterable[str], case: Case) -> Iterator[ExplainedFigure]:
    """What each formula gives for the case."""
    for name in names:
        each = FORMULAS[name]
        values = {letter: LETTERS[letter].of(case) for letter in each.symbols}
        amount = float(each(values))
        yield ExplainedFigure(
            name=each.summary.rstrip("."),
            value=amount,
            text=f"{format_bytes(amount)} a GPU",
            formula=each.formula,
            substituted=each.substituted(values),
            source=each.source,
        )
