"""`python -m tests.validation.step_time_fit`: the efficiencies of the catalog, fitted on the project's published runs.

Least absolute errors of the logarithm of seconds, by Gauss-Newton steps, with each value drawn to what single
kernels and links measure (``expected`` in efficiencies.yaml); runs of one configuration count once. A fit that leaves
few rows out takes the sensitivities of the whole fit, one that leaves many out takes its own; predictions are always
those of the whole model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.catalog.efficiencies import efficiencies
from advisor.rates import in_use
from advisor.timing.job import Job
from advisor.timing.stage import candidate_stages, stage_time
from advisor.types.case import Case

NAMES = tuple(efficiencies())
PRIOR = np.log(list(efficiencies("expected").values()))

WIDTH = 0.5  # how far, as a logarithm, a value may stray from what is expected before it costs as much as a wrong run
SMALLEST = 0.05  # errors below it weigh by their square
STEP = 0.02
ROUNDS = 6
LARGE = 0.1  # share of the runs that moves a fit so far that sensitivities are taken anew

Array = Any  # of float64


@dataclass(frozen=True)
class Run:
    """A case whose step was timed; runs of one configuration share their weight."""

    case: Case
    measured: float
    configuration: str


@dataclass(frozen=True)
class Sensitivities:
    """Around some values: each run's logarithmic error, and how it changes with each value's logarithm."""

    logs: Array
    errors: Array
    slopes: Array
    weights: Array

    def without(self, rows: Array) -> Sensitivities:
        """The same, without some rows."""
        return Sensitivities(self.logs, self.errors[~rows], self.slopes[~rows], self.weights[~rows])


def catalog_logs() -> Array:
    """The catalog's efficiencies, as logarithms in the order of ``NAMES``."""
    return np.log([efficiencies()[name] for name in NAMES])


def seconds(case: Case, logs: Array) -> Any:
    """Seconds of a step with these efficiencies: one number, or a column where ``logs`` holds columns."""
    assumed = in_use(case, dict(zip(NAMES, np.exp(logs), strict=True)))
    job, stages = Job(case, case.layout, assumed), candidate_stages(case, case.layout)
    timed = [stage_time(job, stage).seconds for stage in stages]
    return np.maximum.reduce([np.broadcast_to(one, logs.shape[1:]) for one in timed])


def sensitivities(runs: Sequence[Run], logs: Array) -> Sensitivities:
    """Errors and slopes of all runs around some values."""
    varied = np.repeat(logs[:, None], len(NAMES) + 1, axis=1)
    varied[range(len(NAMES)), range(1, len(NAMES) + 1)] += STEP
    errors = np.array([np.log(seconds(run.case, varied) / run.measured) for run in runs])
    often = Counter(run.configuration for run in runs)
    weights = np.array([1 / often[run.configuration] for run in runs])
    return Sensitivities(logs, errors[:, 0], (errors[:, 1:] - errors[:, :1]) / STEP, weights)


def improved(around: Sensitivities) -> Array:
    """The values that the slopes promise to fit best."""
    change = np.zeros(len(NAMES))
    for _ in range(30):
        left = np.abs(around.errors + around.slopes @ change)
        pull = around.weights / np.maximum(left, SMALLEST)
        matrix = around.slopes.T @ (pull[:, None] * around.slopes) + np.eye(len(NAMES)) / WIDTH**2
        target = around.slopes.T @ (pull * around.errors) + (around.logs - PRIOR) / WIDTH**2
        change = np.clip(-np.linalg.solve(matrix, target), -1, 1)
    return around.logs + change


def fit(runs: Sequence[Run]) -> Array:
    """The values that fit the runs best, as logarithms."""
    logs = PRIOR
    for _ in range(ROUNDS):
        logs = (logs + 2 * improved(sensitivities(runs, logs))) / 3
    return improved(sensitivities(runs, logs))


def left_out(runs: Sequence[Run], around: Sensitivities, groups: Sequence[str]) -> list[float]:
    """Each run's seconds, by a fit without its group."""
    ours = np.zeros(len(runs))
    labels = np.array(groups)
    for group in sorted(set(groups)):
        held = labels == group
        logs = improved(around.without(held))
        if held.mean() > LARGE:
            kept = [run for run, out in zip(runs, held, strict=True) if not out]
            logs = improved(sensitivities(kept, (around.logs + 2 * logs) / 3))
        ours[held] = [seconds(runs[index].case, logs) for index in np.flatnonzero(held)]
    return [float(value) for value in ours]


def main() -> None:
    """Prints the fitted values, to be written into advisor/catalog/efficiencies.yaml."""
    from tests.validation.facts import own_files  # noqa: PLC0415
    from tests.validation.step_time import runs_to_fit  # noqa: PLC0415 - it knows the rows, and imports this module

    (path,) = own_files("step_time")
    for name, value in zip(NAMES, np.exp(fit(runs_to_fit(path))), strict=True):
        print(f"{name}: {value:.3g}")


if __name__ == "__main__":
    main()
