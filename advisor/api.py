"""The public functions, one an operation: plain arguments in, one answer out.

Every door (Python, command line, MCP, HTTP) calls the same :data:`OPERATIONS`, so the same arguments give the same
answer and the same error on each of them. The rooms behind are imported when first needed: a door opens quickly.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import Field

from advisor.errors import AdvisorError, unknown_name
from advisor.progress import Listener, told_to
from advisor.refusals import refuse_measured, refuse_profile, refuse_rules_from_elsewhere
from advisor.request import read_request, tool_name
from advisor.types import (
    EXPLAINED,
    CaseArguments,
    CatalogAnswer,
    ExplainAnswer,
    ExplainArguments,
    ExploreAnswer,
    ExploreArguments,
    LimitAnswer,
    LimitArguments,
    MemoryAnswer,
    ModelAnswer,
    SetupAnswer,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class ModelArguments(Value):
    """Which model to describe: exactly one way of naming it."""

    model: str | None = Field(default=None, max_length=400, description="preset name, size ('70B') or own path")
    hf_config: dict[str, Any] | None = Field(default=None, description="the object in a Hugging Face config.json")
    architecture: dict[str, Any] | None = Field(default=None, description="hyper-parameters: layers, hidden, heads …")
    case: CaseArguments | None = Field(default=None, description="a case whose model is described")


class CatalogArguments(Value):
    """Which part of the catalog to list."""

    kind: str | None = Field(
        default=None,
        max_length=40,
        description="devices, models, optimizers, precisions, frameworks or sources, all of them when absent; or what "
        "explain takes as id: topics, terms, symbols, rules, conflicts, numbers",
    )
    query: str | None = Field(default=None, max_length=200, description="text to find in ids, titles and aliases")


@dataclass(frozen=True)
class Operation:
    """One question TrainFit answers.

    Attributes:
        name: what every door calls it.
        request: the model of its arguments.
        answer: the model of its answer.
        run: the function, over a validated request; the second argument says whether paths may be read.
    """

    name: str
    request: type[Value]
    answer: type[Value]
    run: Callable[[Any, bool], Value]


def estimate_memory(**arguments: Any) -> MemoryAnswer:
    """Memory per GPU of one training job, term by term, with its verdict and speed.

    Args:
        **arguments: the arguments of a case (docs/contract.md), such as ``model``, ``hardware``, ``tensor_parallel``.

    Raises:
        AdvisorError: for arguments that are unknown, out of range or contradictory, and for an illegal layout.
    """
    return cast("MemoryAnswer", call("estimate_memory", arguments, allow_paths=True))


def recommend_setup(*, progress: Listener | None = None, **arguments: Any) -> SetupAnswer:
    """The configuration to run, the steps that led there, and what else was considered.

    Args:
        progress: called with a few words on each part of the search before it starts.
        **arguments: the arguments of a case; a layout argument that is given is kept, an absent one is free.

    Raises:
        AdvisorError: for arguments that are unknown, out of range or contradictory.
    """
    with told_to(progress):
        return cast("SetupAnswer", call("recommend_setup", arguments, allow_paths=True))


def describe_model(**arguments: Any) -> ModelAnswer:
    """Exact parameters by component, FLOP per token and checkpoint size of a model.

    Args:
        **arguments: one of ``model``, ``hf_config``, ``architecture``, or a ``case`` that holds one of them.

    Raises:
        AdvisorError: when no model, several models or an unreadable one is given.
    """
    return cast("ModelAnswer", call("describe_model", arguments, allow_paths=True))


def explore(*, progress: Listener | None = None, **arguments: Any) -> ExploreAnswer:
    """A sweep: a case with some arguments over lists or ranges, as a table.

    Args:
        progress: called with a few words on each part of the sweep before it is computed.
        **arguments: ``case``, ``vary``, and optionally ``where``, ``sort``, ``limit``, ``budget_s``, ``format``.

    Raises:
        AdvisorError: the case or the sweep cannot be understood, or no combination is legal.
    """
    with told_to(progress):
        return cast("ExploreAnswer", call("explore", arguments, allow_paths=True))


def find_limit(**arguments: Any) -> LimitAnswer:
    """The largest micro-batch or sequence, the fewest GPUs or the smallest device that still fits.

    Args:
        **arguments: ``case`` and ``of``.

    Raises:
        AdvisorError: the case cannot be understood.
    """
    return cast("LimitAnswer", call("find_limit", arguments, allow_paths=True))


def explain(**arguments: Any) -> ExplainAnswer:
    """What a term, symbol, rule, policy or worked number is, with figures computed for the job asked about.

    Args:
        **arguments: ``question`` in words, or ``id`` of an entry; optionally ``case``, or ``values`` of letters.

    Raises:
        AdvisorError: neither or both of question and id, or an entry that does not exist.
    """
    return cast("ExplainAnswer", call("explain", arguments, allow_paths=True))


def list_catalog(**arguments: Any) -> CatalogAnswer:
    """What the catalog knows.

    Args:
        **arguments: ``kind`` (devices, models, …) and ``query``; both may be left out.

    Raises:
        AdvisorError: for a kind that does not exist.
    """
    return cast("CatalogAnswer", call("list_catalog", arguments, allow_paths=True))


def call(name: str, arguments: Any, *, allow_paths: bool) -> Value:
    """Answer an operation by name from plain data.

    Args:
        name: an operation; hyphens are read as underscores.
        arguments: a mapping of argument names to JSON values.
        allow_paths: whether files named in the arguments may be read; True only on the caller's own machine.

    Raises:
        AdvisorError: ``unknown_tool``, or what is wrong with the arguments.
    """
    operation = find_operation(name)
    return operation.run(read_request(operation.request, arguments), allow_paths)


def find_operation(name: str) -> Operation:
    """The operation of that name; hyphens are read as underscores.

    Raises:
        AdvisorError: ``unknown_tool`` with the nearest names.
    """
    operation = OPERATIONS.get(tool_name(name))
    if operation is None:
        raise unknown_name("tool", name[:80], OPERATIONS, pointer="")
    return operation


def _estimate_memory(arguments: CaseArguments, allow_paths: bool) -> MemoryAnswer:
    from advisor.answer import answer  # noqa: PLC0415 - see the module's docstring
    from advisor.resolve import resolve  # noqa: PLC0415

    refuse_rules_from_elsewhere(arguments, allow_paths)
    if arguments.profile not in (None, "exact"):
        from advisor.by_profile import answer_by_profile  # noqa: PLC0415

        return answer_by_profile(arguments, allow_paths=allow_paths)
    return answer(resolve(arguments, allow_paths=allow_paths))


def _recommend_setup(arguments: CaseArguments, allow_paths: bool) -> SetupAnswer:
    from advisor.recommend import recommend  # noqa: PLC0415

    refuse_rules_from_elsewhere(arguments, allow_paths)
    refuse_profile(arguments)
    refuse_measured(arguments)
    return recommend(arguments, allow_paths=allow_paths)


def _explore(arguments: ExploreArguments, allow_paths: bool) -> ExploreAnswer:
    from advisor.sweep import explore as sweep  # noqa: PLC0415

    refuse_rules_from_elsewhere(arguments.case, allow_paths, pointer="/case/rules")
    refuse_measured(arguments.case, pointer="/case/measured_peak_gib")
    return sweep(arguments, allow_paths=allow_paths)


def _find_limit(arguments: LimitArguments, allow_paths: bool) -> LimitAnswer:
    from advisor.limits import find_limit as limit  # noqa: PLC0415

    refuse_rules_from_elsewhere(arguments.case, allow_paths, pointer="/case/rules")
    refuse_measured(arguments.case, pointer="/case/measured_peak_gib")
    if arguments.of in ("gpus", "device"):
        refuse_profile(arguments.case, pointer="/case/profile")
    return limit(arguments, allow_paths=allow_paths)


def _describe_model(arguments: ModelArguments, allow_paths: bool) -> ModelAnswer:
    from advisor.architecture import resolve_model  # noqa: PLC0415
    from advisor.describe import describe  # noqa: PLC0415

    ways = ("model", "hf_config", "architecture")
    own = {way: getattr(arguments, way) for way in ways}
    if arguments.case is not None and any(value is not None for value in own.values()):
        raise AdvisorError(
            "invalid_value",
            "the model is given both in case and beside it; accepted: one of model, hf_config, architecture, case",
            pointer="/case",
        )
    named = {way: getattr(arguments.case, way) for way in ways} if arguments.case else own
    return describe(resolve_model(**named, allow_paths=allow_paths))


def _explain(arguments: ExplainArguments, allow_paths: bool) -> ExplainAnswer:
    from advisor.explaining import explain as tell  # noqa: PLC0415

    if arguments.case is not None:
        refuse_rules_from_elsewhere(arguments.case, allow_paths, pointer="/case/rules")
    return tell(arguments)


def _list_catalog(arguments: CatalogArguments, allow_paths: bool) -> CatalogAnswer:  # noqa: ARG001 - reads no paths
    from advisor.catalog.entries import KINDS, list_entries  # noqa: PLC0415
    from advisor.versions import versions  # noqa: PLC0415

    kind, kinds = arguments.kind, (*KINDS, *EXPLAINED)
    if kind is not None and kind not in kinds:
        raise unknown_name("kind", kind, kinds, pointer="/kind")
    if kind in EXPLAINED:
        from advisor.explaining.listing import list_explained  # noqa: PLC0415

        entries = list_explained(kind, arguments.query)
    else:
        entries = list_entries(kind, arguments.query)
    return CatalogAnswer(entries=entries, total=len(entries), kinds=kinds, versions=versions())


#: Every operation by its name, in the order users see them.
OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {
        operation.name: operation
        for operation in (
            Operation("estimate_memory", CaseArguments, MemoryAnswer, _estimate_memory),
            Operation("recommend_setup", CaseArguments, SetupAnswer, _recommend_setup),
            Operation("explore", ExploreArguments, ExploreAnswer, _explore),
            Operation("find_limit", LimitArguments, LimitAnswer, _find_limit),
            Operation("describe_model", ModelArguments, ModelAnswer, _describe_model),
            Operation("explain", ExplainArguments, ExplainAnswer, _explain),
            Operation("list_catalog", CatalogArguments, CatalogAnswer, _list_catalog),
        )
    }
)
