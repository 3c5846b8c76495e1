"""Time: FLOP, bandwidth, exchange, pipelines and offload of one optimizer step, each quantity a cited formula."""

from advisor.timing.answer import time_answer, whole_training
from advisor.timing.columns import step_seconds
from advisor.timing.step import Part, StepTime, step_time

__all__ = ["Part", "StepTime", "step_seconds", "step_time", "time_answer", "whole_training"]
