"""A stage of a pipeline: its layers, which ends of the model it holds, its micro-batches in flight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advisor.columnwise import Number, at_most, choose, pick
from advisor.layers import stage_starts
from advisor.types.architecture import ModelArchitecture
from advisor.types.case import Case

#: Schedules that cut the model into two parts a rank and come back: rank 0 holds the first part and the last one.
RETURNING = ("zb_v",)


@dataclass(frozen=True)
class Stage:
    """A stage, or a column of them, of a case in one layout or in columns of layouts."""

    case: Case
    layout: Any
    stage: Number = 0

    @property
    def model(self) -> ModelArchitecture:
        """The model's shapes."""
        return self.case.model

    @property
    def schedule(self) -> str:
        """The pipeline's schedule; layouts in columns share one."""
        schedule: str = getattr(self.layout, "pipeline_schedule", self.case.layout.pipeline_schedule)
        return schedule

    # --- the stage's part of the model -----------------------------------------------------------------------

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Index of each stage's first layer, and of the end; layouts in columns share one pipeline."""
        layout = self.layout
        given = getattr(layout, "stage_layers", self.case.layout.stage_layers)
        return stage_starts(self.model.layers, layout.pipeline_parallel, layout.last_stage_layers, given)

    @cached_property
    def first_layer(self) -> Number:
        """Index of the stage's first layer."""
        return pick(self.starts, self.stage)

    @cached_property
    def end_layer(self) -> Number:
        """Index after the stage's last layer."""
        return pick(self.starts, self.stage + 1)

    @property
    def layers(self) -> Number:
        """Layers of the stage."""
        return self.end_layer - self.first_layer

    @cached_property
    def is_first(self) -> Number:
        """1 on the stage that begins the model."""
        return choose(self.stage == 0, 1, 0)

    @cached_property
    def is_last(self) -> Number:
        """1 on the stage that ends the model: the last of a line, the first where the pipeline comes back to it."""
        end = 0 if self.schedule in RETURNING else self.layout.pipeline_parallel - 1
        return choose(self.stage == end, 1, 0)

    # --- micro-batches in flight -----------------------------------------------------------------------------

    @cached_property
    def micro_batches(self) -> Number:
        """Micro-batches a stage works through in one optimizer step."""
        return self.layout.gradient_accumulation

    @cached_property
    def in_flight(self) -> Number:
        """Micro-batches whose activations are alive at once, in units of the stage's layers.

        1F1B keeps min(m, pp - stage); interleaving adds (pp - 1) / (pp · v) of the model (Narayanan 2021, §2.2).
        """
        layout = self.layout
        pp, m = layout.pipeline_parallel, self.micro_batches
        if self.schedule == "gpipe":
            return m
        depth = {"zb_h2": 2 * pp - 1, "zb_v": pp, "dualpipe": pp + 1}.get(self.schedule)
        if depth is not None:
            return at_most(m, depth)
        plain = at_most(m, pp - self.stage)
        chunks = (2 * (pp - self.stage - 1) + (layout.virtual_stages - 1) * pp + 1) / layout.virtual_stages
        return choose(layout.virtual_stages > 1, at_most(m, chunks), plain)
