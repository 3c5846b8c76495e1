"""Which layout: the fastest that fits in the lowest rung that has one, ties to the simplest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from advisor import budget, progress
from advisor.constraints import expression
from advisor.constraints.facts import FactsOf
from advisor.constraints.legality import legal_rows
from advisor.constraints.rulebook import law
from advisor.layers import even_as_possible
from advisor.search import cost
from advisor.search.room import is_unknown, limit_bytes, times_too_large
from advisor.search.space import cores_of, with_choices
from advisor.types.case import Case, Layout
from advisor.units import format_gpus

if TYPE_CHECKING:
    from advisor.constraints.rules import Ladder, Rung
    from advisor.types.columns import Columns


@dataclass(frozen=True, eq=False)
class Rows:
    """The legal layouts of one rung, judged.

    Attributes:
        rung: the rule's id of the rung.
        layouts: how many there were before the law on the rung's own levers.
        columns: the legal ones.
        peak, reserved: bytes on the worst rank.
        most: CPU memory of a node at the instant that needs most, of those that count.
        times: the need as a multiple of what there is, on the GPU or on its node; at most 1 where it fits.
        cost: GPU seconds of a token; infinite for what does not fit.
    """

    rung: str
    layouts: int
    columns: Columns
    peak: Any
    reserved: Any
    most: Any
    times: Any
    cost: Any

    @property
    def fits(self) -> Any:
        """Which ones fit, the headroom left free."""
        return self.times <= 1

    @property
    def fitting(self) -> int:
        """How many fit."""
        return int(self.fits.sum())


@dataclass(frozen=True)
class Pick:
    """One layout out of a rung's rows; ``fits`` is None where it leans on a node of which nobody said what it has."""

    layout: Layout
    rung: str
    peak_bytes: int
    reserved_bytes: int
    times_too_large: float
    fits: bool | None
    cost: float


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        case: the case with the winner's layout; with the closest layout when nothing fits.
        winner: None when nothing fits.
        closest: the layout whose need is the smallest multiple of what there is, when nothing fits.
        next_rung: the best of the rung below the winner's.
        fastest: the cheapest layout that fits in any rung that was opened.
        left: the winner of the rung that was left although it fits, by the ladder's one exception.
    """

    case: Case
    winner: Pick | None
    closest: Pick | None
    next_rung: Pick | None
    fastest: Pick | None
    left: Pick | None
    opened: tuple[Rows, ...]
    usable_bytes: int
    limit_bytes: int

    @property
    def fits_the_gpus(self) -> bool:
        """Whether the case's layout leaves the headroom of a GPU free, whatever its node has."""
        chosen = self.winner or self.closest
        return chosen is not None and chosen.reserved_bytes <= self.limit_bytes

    def with_case(self, case: Case) -> Found:
        """The same finds under a case that says more."""
        return replace(self, case=case)


#: Rungs at which the GPUs serve themselves; an offload is no way to need fewer of them.
ON_THE_GPUS = ("rung-0-sharding", "rung-1-recompute")
#: Needs of a node that differ by no more are as good as the same.
AS_GOOD = 0.01


def search(case: Case, *, on_the_gpus: bool = False) -> Found:
    """Look for the layout of a case whose free arguments are in ``case.free``.

    Args:
        case: the job.
        on_the_gpus: whether rungs that offload are left unopened.

    Raises:
        AdvisorError: ``beyond_budget`` when nothing had been found to fit before the work's budget was spent.
    """
    from advisor.estimate import usable_bytes  # noqa: PLC0415

    ladder, strict = law().ladder, case.policy.law == "strict"
    limit = limit_bytes(case, usable_bytes(case))
    cores = cores_of(case, ladder)
    opened: list[Rows] = []
    best: list[Pick | None] = []
    for rung in ladder.rungs:
        if on_the_gpus and rung.id not in ON_THE_GPUS:
            continue
        if any(best) and budget.is_spent_before("lower rungs"):
            break
        budget.refuse_when_spent(f"{rung.id} in {case.training.framework}")
        progress.tell(f"{case.training.framework} on {format_gpus(case.cluster.gpus)}, {rung.id}")
        opened.append(_judged(case, rung, cores, limit))
        best.append(_best(case, opened[-1], ladder))
        if _settled(case, best, opened):
            break
    place = _chosen(case, best, ladder, strict=strict)
    if place is None:
        legal = [rows for rows in opened if len(rows.columns)]
        nearest = min(legal, key=lambda rows: float(rows.times.min()), default=None)
        closest = _closest(case, nearest, limit) if nearest else None
        return Found(_with(case, closest), None, closest, None, None, None, tuple(opened), usable_bytes(case), limit)
    winner = best[place]
    below = next((pick for pick in best[place + 1 :] if pick), None)
    left = next((pick for pick in best[:place] if pick), None)
    fastest = min((_cheapest(case, rows) for rows in opened if rows.fitting), key=lambda pick: pick.cost)
    return Found(_with(case, winner), winner, None, below, fastest, left, tuple(opened), usable_bytes(case), limit)


def _settled(case: Case, best: list[Pick | None], opened: list[Rows]) -> bool:
    """A rung that fits and the one below it are enough, unless speed alone is asked for."""
    fitting = [place for place, pick in enumerate(best) if pick]
    enough = bool(fitting) and len(opened) > fitting[0] + 1
    return enough and case.policy.objective != "throughput"


def _chosen(case: Case, best: list[Pick | None], ladder: Ladder, *, strict: bool) -> int | None:
    """The place of the rung that wins: the first that fits, or the next where the ladder lets it be left."""
    places = [place for place, pick in enumerate(best) if pick]
    if not places:
        return None
    if case.policy.objective == "throughput":
        return min(places, key=lambda place: best[place].cost)  # type: ignore[union-attr]
    first = places[0]
    guard = None if strict else ladder.rungs[first].leave_if_costlier_by
    below = best[first + 1] if first + 1 < len(best) else None
    above = best[first]
    if guard is not None and below and above and above.cost > below.cost * (1 + guard):
        return first + 1
    return first


def _judged(case: Case, rung: Rung, cores: Columns, limit: int) -> Rows:
    """All legal layouts of a rung with their memory and cost."""
    import numpy as np  # noqa: PLC0415

    from advisor.judge import judge  # noqa: PLC0415

    choices = [choice for choice in rung.choices if case.policy.law in choice.laws]
    columns = with_choices(case, cores, choices)
    legal = columns.take(legal_rows(case, columns))
    judged = judge(case, legal)
    times = times_too_large(
        case, limit, reserved=judged.reserved_bytes, most=judged.most_host_bytes, nvme=judged.nvme_bytes
    )
    costs = np.full(len(legal), np.inf)
    costs[times <= 1] = cost.total(case, legal.take(times <= 1))
    return Rows(
        rung.id, len(columns), legal, judged.peak_bytes, judged.reserved_bytes, judged.most_host_bytes, times, costs
    )


def _best(case: Case, rows: Rows, ladder: Ladder) -> Pick | None:
    """The cheapest layout that fits; of those that cost as good as the same, the simplest."""
    import numpy as np  # noqa: PLC0415

    if not rows.fitting:
        return None
    near = np.flatnonzero(rows.fits & (rows.cost <= rows.cost[rows.fits].min() * (1 + tie_band(case))))
    names = FactsOf(case, rows.columns.take(near))
    keys = [np.broadcast_to(expression.read(rule.smaller)(names), len(near)) for rule in ladder.preferences]
    first = np.lexsort([rows.cost[near], *reversed(keys)])[0]
    return pick(case, rows, int(near[first]))


def tie_band(case: Case) -> float:
    """The share by which costs may differ and count as equal: the law's, and nothing when speed alone is asked for."""
    band = law().ladder.tie_band
    if case.policy.objective == "throughput":
        return 0.0
    return band.moe if case.model.experts else band.dense


def simplicity(case: Case) -> tuple[float, ...]:
    """What the ladder's preferences make of a case's layout, the first that differs decides; smaller is simpler."""
    names = FactsOf(case, case.layout)
    return tuple(float(expression.read(rule.smaller)(names)) for rule in law().ladder.preferences)


def _cheapest(case: Case, rows: Rows) -> Pick:
    import numpy as np  # noqa: PLC0415

    return pick(case, rows, int(np.where(rows.fits, rows.cost, np.inf).argmin()))


def _closest(case: Case, rows: Rows, limit: int) -> Pick:
    """The smallest excess; where it is the node's, the cheapest of those that ask as good as the least of it."""
    import numpy as np  # noqa: PLC0415

    near = np.flatnonzero(rows.times <= rows.times.min() * (1 + AS_GOOD))
    able = near[rows.reserved[near] <= limit]
    if not len(able):
        return pick(case, rows, int(rows.times.argmin()))
    return pick(case, rows, int(able[cost.total(case, rows.columns.take(able)).argmin()]))


def pick(case: Case, rows: Rows, index: int) -> Pick:
    """One row as a layout, with its figures."""
    layout = Layout(**{**case.layout.model_dump(), **rows.columns.row(index)})
    layout = completed(case, layout, int(rows.columns.last_stage_layers[index]))
    return Pick(
        layout,
        rows.rung,
        int(rows.peak[index]),
        int(rows.reserved[index]),
        float(rows.times[index]),
        None if rows.fits[index] and is_unknown(case, layout) else bool(rows.fits[index]),
        float(rows.cost[index]),
    )


def completed(case: Case, layout: Layout, last: int = 0) -> Layout:
    """The layout with what no column holds: the schedule's name and an uneven split, spelt out.

    Args:
        case: the job.
        layout: one of its layouts.
        last: layers of the last stage; 0 where the split is as even as can be.
    """
    changes: dict[str, Any] = {}
    if "pipeline_schedule" in case.free:
        changes["pipeline_schedule"] = "interleaved" if layout.virtual_stages > 1 else "1f1b"
    if "stage_layers" in case.free:
        split = even_as_possible(case.model.layers, layout.pipeline_parallel, last)
        changes["stage_layers"] = split if len(set(split)) > 1 else ()
    return layout.model_copy(update=changes)


def _with(case: Case, chosen: Pick | None) -> Case:
    return case.model_copy(update={"layout": chosen.layout}) if chosen else case
