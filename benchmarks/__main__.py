"""``python -m benchmarks``: prints one Markdown table; the ratios are of this run, on this machine."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import answers, columns, planner, start
from benchmarks.measure import Result, machine


def results() -> Iterator[Result]:
    """Every benchmark, the ones that other work on the machine disturbs most last."""
    yield columns.activation_terms()
    yield columns.whole_estimate()
    yield from planner.layouts_judged()
    yield from answers.estimates()
    yield from answers.searches()
    yield planner.sweep()
    yield planner.growth()
    yield start.initialize()


def main() -> None:
    """Print each line as soon as it is known."""
    print(f"{machine()}\n\n| what | measured | against |\n|---|---|---|")
    for result in results():
        print(f"| {result.what} | {result.measured} | {result.against} |", flush=True)


if __name__ == "__main__":
    main()
