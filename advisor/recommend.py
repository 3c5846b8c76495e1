"""The recommendation: search each framework in question, take the best, walk to it, and say what else there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor import budget
from advisor.answer import answer, describe
from advisor.constraints.rulebook import law, overlay
from advisor.decide import walk
from advisor.estimate import estimate
from advisor.node_memory import host_warnings
from advisor.search.choose import Found, Pick
from advisor.search.sizes import compare_sizes
from advisor.suggest import suggestions
from advisor.types.answers import Alternative, NextCall, Searched, SetupAnswer
from advisor.types.case import Assumption, Case, Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.types.arguments import CaseArguments


def recommend(arguments: CaseArguments, *, allow_paths: bool) -> SetupAnswer:
    """The configuration to run, the steps that lead there, and what was not chosen.

    A layout argument that is given is kept; an absent one is free. Nothing that changes the training is applied.

    Raises:
        AdvisorError: the request cannot be understood, or no layout of it is legal.
    """
    compared = compare_sizes(arguments, allow_paths=allow_paths)
    case = _concluded(compared, named=arguments.framework is not None)
    found = compared[0].with_case(case)
    memory = answer(case) if found.winner else describe(estimate(case))
    ways_out = suggestions(arguments, found, allow_paths=allow_paths)
    return SetupAnswer(
        verdict=memory.decisive_verdict,
        layout=case.layout,
        framework=case.training.framework,
        rung=_rung(found),
        steps=walk(found),
        estimate=memory,
        alternatives=_alternatives(found, compared),
        next_rung=_alternative(found, found.next_rung, "the best one rung down"),
        fastest=_alternative(found, found.fastest, "the cheapest step of what fits on the rungs that were searched"),
        searched=_counts(compared),
        suggestions=ways_out,
        assumptions=case.assumptions,
        warnings=(*host_warnings(case, memory.host), *case.warnings, *budget.left_out()),
        next_calls=_next_calls(arguments, case),
        versions=memory.versions,
    )


def _concluded(compared: Sequence[Found], *, named: bool) -> Case:
    """The case of the answer, with what the search assumed and noticed."""
    found = compared[0]
    case, site = found.case, overlay(found.case.policy.rules)
    said = [
        known for known in case.assumptions if known.argument not in (*_SEARCHED, *(() if named else ("framework",)))
    ]
    kept = [known for known in case.assumptions if known.argument in _SEARCHED and known.argument not in case.free]
    if not named:
        said.append(
            Assumption(
                argument="framework", value=case.training.framework, origin="derived", note=_why_framework(compared)
            )
        )
    if site.headroom and site.headroom.share > case.policy.headroom:
        said.append(Assumption(argument="headroom", value=site.headroom.share, origin=f"rule:{site.headroom.id}"))
    return case.model_copy(update={"assumptions": (*said, *kept)})


_SEARCHED = frozenset(Layout.model_fields)
ABOUT_EQUAL = 0.005


def _why_framework(compared: Sequence[Found]) -> str:
    said = [_against(compared[0], other) for other in compared[1:]]
    return "; ".join(said) if said else "the only framework that accepts these arguments"


def _against(found: Found, other: Found) -> str:
    name = other.case.training.framework
    if other.winner is None or found.winner is None:
        return f"compared with {name}, where nothing fits"
    more = other.winner.cost / found.winner.cost - 1
    if other.winner.rung > found.winner.rung:
        return f"compared with {name}, which fits only at {other.winner.rung}"
    costs = f"takes {more:.0%} longer" if more > ABOUT_EQUAL else "takes about as long"
    return f"compared with {name}, whose best {costs}"


def _rung(found: Found) -> str:
    """The highest rung that draws the layout's levers; a lever that the user gave may stand on a lower one."""
    layout, rungs = found.case.layout, law().ladder.rungs
    offloads = [name for name in Layout.model_fields if name.startswith("offload_") and name != "offload_fraction"]
    for levers in (["recompute", *offloads], offloads):
        for rung in rungs:
            if any(all(getattr(choice, name) == getattr(layout, name) for name in levers) for choice in rung.choices):
                return rung.id
    return rungs[-1].id


def _alternative(found: Found, pick: Pick | None, why: str, *, of: Found | None = None) -> Alternative | None:
    """A layout of the same framework, or of another one's search, beside the winner."""
    if pick is None or found.winner is None:
        return None
    relative = round(pick.cost / found.winner.cost, 4)
    framework = (of or found).case.training.framework
    return Alternative(
        framework=framework,
        layout=pick.layout,
        rung=pick.rung,
        peak_bytes=pick.peak_bytes,
        fits=pick.fits,
        cost=relative,
        why=why,
    )


def _alternatives(found: Found, compared: Sequence[Found]) -> tuple[Alternative, ...]:
    """The rung that was left for speed, and the other frameworks' best."""
    left = _alternative(found, found.left, "the rung above fits as well, but is more than a tenth costlier")
    others = [
        _alternative(found, other.winner, f"the best of {other.case.training.framework}", of=other)
        for other in compared[1:]
    ]
    return tuple(alternative for alternative in (left, *others) if alternative)


def _counts(compared: Sequence[Found]) -> Searched:
    rows = [rows for found in compared for rows in found.opened]
    return Searched(
        layouts=sum(one.layouts for one in rows),
        legal=sum(len(one.columns) for one in rows),
        fitting=sum(one.fitting for one in rows),
        rungs=tuple(dict.fromkeys(one.rung for one in rows)),
    )


def _next_calls(arguments: CaseArguments, case: Case) -> tuple[NextCall, ...]:
    given = arguments.model_dump(exclude_none=True, exclude={"law", "objective", "rules"})
    layout = case.layout.model_dump(mode="json", exclude_defaults=True) | {"zero_stage": case.layout.zero_stage}
    batch = {"global_batch": case.training.global_batch} if case.training.global_batch else {}
    cluster = case.cluster
    hardware = f"{cluster.nodes}x{cluster.gpus_per_node} {cluster.device.name}"
    complete = {**given, "hardware": hardware, "framework": case.training.framework, **batch, **layout}
    return (NextCall(tool="estimate_memory", arguments=complete, why="every term of this layout, with its formula"),)
