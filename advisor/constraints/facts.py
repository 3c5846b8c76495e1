"""The names that rules may use: what each means and how it is read from a case.

A fact is read from a case and a layout; the layout is a ``Layout`` (one number a name) or ``Columns`` (a numpy column
a name). Layout arguments keep their own names. Everything a rule can say about a job is in this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, get_args

from advisor.phases import MODULE_SLOTS
from advisor.types import arguments as a
from advisor.types.case import Case, Layout
from advisor.types.columns import OFFLOAD_TARGETS, RECOMPUTE_POLICIES, Columns

AnyLayout = Layout | Columns
FASTEST_UNKNOWN_LINK: Final = 10**9


@dataclass(frozen=True)
class Fact:
    """One name of the rules' language.

    Attributes:
        name: the word that rules write.
        meaning: what it counts, in a few words.
        read: the value for a case and a layout.
        words: the values it takes when it is a choice; empty for numbers and free names.
    """

    name: str
    meaning: str
    read: Callable[[Case, AnyLayout], Any]
    words: tuple[str, ...] = ()


def _decoded(words: tuple[str, ...], value: Any) -> Any:
    """A choice's word: itself for one layout, looked up for a column of places in ``words``."""
    if isinstance(value, str):
        return value
    import numpy as np  # noqa: PLC0415 - only columns come this far

    return np.asarray(words)[np.asarray(value, dtype=np.int64)]


_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "recompute": RECOMPUTE_POLICIES,
    "offload_optimizer": OFFLOAD_TARGETS,
    "offload_parameters": OFFLOAD_TARGETS,
    "offload_activations": OFFLOAD_TARGETS,
    "pipeline_schedule": get_args(a.Schedule),
    "context_parallel_kind": get_args(a.ContextKind),
}
_NOT_NUMBERS: Final = ("stage_layers", "recompute_modules")


def _layout_fact(name: str) -> Fact:
    """A layout argument under its own name; one that no column varies is the same for all rows."""
    words = _CHOICES.get(name, ())

    def read(case: Case, layout: AnyLayout) -> Any:
        value = getattr(layout, name, None)
        value = getattr(case.layout, name) if value is None else value
        return _decoded(words, value) if words else value

    meaning = a.CaseArguments.model_fields[name].description or name.replace("_", " ")
    return Fact(name, meaning, read, words)


def _world(_case: Case, layout: AnyLayout) -> Any:
    return layout.tensor_parallel * layout.pipeline_parallel * layout.context_parallel * layout.data_parallel


def _global_batch(case: Case, layout: AnyLayout) -> Any:
    per_step = layout.micro_batch * layout.gradient_accumulation * layout.data_parallel
    return case.training.global_batch or per_step


def _split(case: Case, layout: AnyLayout) -> tuple[int, ...]:
    return layout.stage_layers if isinstance(layout, Layout) else case.layout.stage_layers


def _split_named(case: Case, layout: AnyLayout) -> Any:
    """Whether the split over stages is spelt out; a search spells out its own where stages differ."""
    if isinstance(layout, Columns) and "stage_layers" in case.free:
        return (case.model.layers % layout.pipeline_parallel > 0) | (layout.last_stage_layers > 0)
    return bool(_split(case, layout))


def _split_stages(case: Case, layout: AnyLayout) -> Any:
    searched = isinstance(layout, Columns) and "stage_layers" in case.free
    return layout.pipeline_parallel if searched else len(_split(case, layout))


def _split_layers(case: Case, layout: AnyLayout) -> int:
    searched = isinstance(layout, Columns) and "stage_layers" in case.free
    return case.model.layers if searched else sum(_split(case, layout))


def _fast_link(case: Case) -> int:
    device = case.cluster.device
    return device.scale_up_bytes_per_s or device.host_link_bytes_per_s or FASTEST_UNKNOWN_LINK


def _slow_link(case: Case) -> int:
    """The rate outside the fast domain: the network, or the host link between GPUs of one node."""
    network, host = case.cluster.network_bytes_per_s, case.cluster.device.host_link_bytes_per_s
    return (network if case.cluster.nodes > 1 else host) or FASTEST_UNKNOWN_LINK


def _rank_parameters(case: Case, layout: AnyLayout) -> Any:
    dense = case.parameters.total - case.parameters.experts
    experts = case.parameters.experts / (layout.expert_parallel * layout.expert_tensor_parallel)
    return (dense / layout.tensor_parallel + experts) / layout.pipeline_parallel


MODULES: Final = tuple(MODULE_SLOTS)


def _recomputes(module: str) -> Callable[[Case, AnyLayout], bool]:
    return lambda case, layout: module in getattr(layout, "recompute_modules", case.layout.recompute_modules)


_MODEL: Final = (
    Fact("layers", "transformer layers", lambda c, _: c.model.layers),
    Fact("hidden", "width of the residual stream", lambda c, _: c.model.hidden),
    Fact("heads", "query heads", lambda c, _: c.model.attention.heads),
    Fact("kv_heads", "key and value heads", lambda c, _: c.model.attention.kv_heads),
    Fact("mla", "attention is multi-head latent attention", lambda c, _: c.model.attention.kind == "mla"),
    Fact("vocab", "rows of the embedding", lambda c, _: c.model.vocab),
    Fact("tied_embeddings", "head and embedding share one matrix", lambda c, _: c.model.tied_embeddings),
    Fact("moe", "some layers route to experts", lambda c, _: c.model.experts is not None),
    Fact("experts", "routed experts a layer; 0 in a dense model", lambda c, _: getattr(c.model.experts, "count", 0)),
    Fact("top_k", "experts a token visits; 0 in a dense model", lambda c, _: getattr(c.model.experts, "top_k", 0)),
    Fact("max_positions", "longest sequence the model was made for; 0: unknown", lambda c, _: c.model.max_positions),
    Fact("total_parameters", "parameters of the model", lambda c, _: c.parameters.total),
    Fact("active_parameters", "parameters one token's forward pass reads", lambda c, _: c.parameters.active),
    Fact("routed_parameters", "parameters in routed experts", lambda c, _: c.parameters.experts),
)
_CLUSTER: Final = (
    Fact("gpus", "GPUs of the job", lambda c, _: c.cluster.gpus),
    Fact("nodes", "nodes of the job", lambda c, _: c.cluster.nodes),
    Fact("gpus_per_node", "GPUs in one node", lambda c, _: c.cluster.gpus_per_node),
    Fact("fast_domain", "GPUs that reach each other over NVLink or its like", lambda c, _: c.cluster.fast_domain),
    Fact("nvme_known", "the node's NVMe space was given", lambda c, _: bool(c.cluster.nvme_bytes_per_node)),
    Fact("flops_per_second", "matmul FLOP/s of one GPU", lambda c, _: c.cluster.device.matmul_flops_per_s),
    Fact("fast_link", "bytes/s of one GPU inside the fast domain", lambda c, _: _fast_link(c)),
    Fact("slow_link", "bytes/s of one GPU outside the fast domain", lambda c, _: _slow_link(c)),
    Fact("host_link", "bytes/s between one GPU and its host", lambda c, _: c.cluster.device.host_link_bytes_per_s or 1),
)
_TRAINING: Final = (
    Fact("framework", "the training framework", lambda c, _: c.training.framework, get_args(a.Framework)),
    Fact("method", "what is trained", lambda c, _: c.training.method, get_args(a.Method)),
    Fact("adapters", "only adapters are trained", lambda c, _: c.training.method in ("lora", "dora", "qlora")),
    Fact("quantized", "the frozen weights are quantized", lambda c, _: c.training.quantization not in ("", "none")),
    Fact("optimizer", "the optimizer's name in the catalog", lambda c, _: c.training.optimizer.name),
    Fact("precision", "the precision's name in the catalog", lambda c, _: c.training.precision),
    Fact("attention", "the attention kernel", lambda c, _: c.training.attention, get_args(a.AttentionKernel)),
    Fact("loss", "the loss kernel", lambda c, _: c.training.loss, get_args(a.LossKernel)),
    Fact("implementation", "the modules' kernels", lambda c, _: c.training.implementation, get_args(a.Implementation)),
    Fact("sequence_length", "tokens a sequence", lambda c, _: c.training.sequence_length),
    Fact("global_batch", "sequences an optimizer step", _global_batch),
    Fact("global_batch_given", "the global batch was given", lambda c, _: c.training.global_batch > 0),
)
_DERIVED: Final = (
    Fact("data_parallel", "ranks that see different samples", lambda _, x: x.data_parallel),
    Fact("world", "GPUs the layout uses", _world),
    Fact("shard_ranks", "ranks that share optimizer states: shards times context parallel",
         lambda _, x: x.data_parallel_shard * x.context_parallel),
    Fact("stage_layers_given", "the split of layers over stages was given", _split_named),
    Fact("stage_layers_count", "stages in the given split", _split_stages),
    Fact("stage_layers_sum", "layers in the given split", _split_layers),
    *(Fact(f"recomputes_{name}", f"{name} is among the modules to recompute", _recomputes(name)) for name in MODULES),
    Fact("recompute_modules_count", "modules named to recompute", lambda c, _: len(c.layout.recompute_modules)),
    Fact("rank_parameters", "parameters one rank works with, before ZeRO divides them", _rank_parameters),
    Fact("rank_tokens", "tokens of one micro-batch on one rank",
         lambda c, x: x.micro_batch * c.training.sequence_length / x.context_parallel),
)  # fmt: skip

#: Names that are read from the job alone, whatever its layout.
OF_THE_JOB: Final = frozenset(fact.name for fact in (*_MODEL, *_CLUSTER, *_TRAINING)) - {"global_batch"}


@cache
def facts() -> Mapping[str, Fact]:
    """All names of the language, in the order of their groups."""
    layout = [_layout_fact(name) for name in Layout.model_fields if name not in _NOT_NUMBERS]
    return {fact.name: fact for fact in (*layout, *_DERIVED, *_MODEL, *_CLUSTER, *_TRAINING)}


class FactsOf(dict[str, Any]):
    """The facts of one case and layout; each is read when an expression first asks for it."""

    def __init__(self, case: Case, layout: AnyLayout) -> None:
        super().__init__()
        self._case = case
        self._layout = layout

    def __missing__(self, name: str) -> Any:
        value = facts()[name].read(self._case, self._layout)
        self[name] = value
        return value
