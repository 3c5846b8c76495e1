"""The walk's eight pitfalls, each shown not to occur, and the checklists of docs/planner.md."""

import re

import pytest

import advisor
from advisor import timing
from advisor.catalog.devices import find_device
from advisor.constraints.rulebook import constraints, law
from advisor.decide.moves import moved, plain_data_parallel, values_of
from advisor.phases import LAYER_SLOTS
from advisor.search import cost
from advisor.timing.job import Job as TimingJob
from advisor.timing.stage import stage_time
from tests.cases import case
from tests.planner import PLANNER_CHECKS, PLANNER_JOBS, context_parallel_in_the_hundreds
from tests.test_experts import with_layout

every_job = pytest.mark.parametrize("job", PLANNER_JOBS, ids=lambda job: job.title)
SEVENTY_B = PLANNER_JOBS[1]
M3_LONG = next(job for job in PLANNER_JOBS if "1M" in job.title)
GIB = 1024**3


@every_job
def test_an_expert_finds_nothing_to_object_to_in_a_job_of_the_planners_page(job):
    found = [(check.__name__, check(job)) for check in PLANNER_CHECKS]
    assert [(name, finding.because) for name, finding in found if finding and not finding.passes] == []


def test_context_parallel_in_the_hundreds_is_objected_to_where_fewer_ranks_do():
    assert not context_parallel_in_the_hundreds(with_layout(M3_LONG, context_parallel=128)).passes


# 1. The time of layouts that are only passed through is nobody's.


@every_job
def test_a_step_says_the_levers_share_of_the_answers_own_step_and_no_time_of_the_path(job):
    parts = {rule.id: rule.time for rule in law().steps}
    goal = job.case.model_copy(update={"layout": job.layout})
    for step in job.answer.steps:
        assert not re.search(r"\d ?%|longer|slower|faster", step.because), step.because
        assert step.share_of_step == cost.share(goal, parts[step.id])
        assert 0 <= (step.share_of_step or 0) <= 1


# 2 and 3. A lever alone, and everything searched again: in fixed sentences, the constraint by its name.

ALONE = (
    r"\S+ alone (does not divide the [\d,]+ GPUs|is illegal: .* \[(?P<rule>[\w-]+)\]|misses by [\d.,]+ \w+"
    r"|fits and (?P<priced>.*?))\."
)
AGAIN = (
    r"With (\S+=\S+ and )?everything else searched again "
    r"(nothing fits|the best takes (about as long|[\d,]+% longer))\."
)
SENTENCE = re.compile(rf"({ALONE})?( ?{AGAIN})?", re.DOTALL)
PRICED = re.compile(
    r"takes [\d.,]+% longer|takes as long; the simpler layout was taken"
    r"|takes [\d.]+% less, within what counts as equal or on a lower rung; the simpler layout was taken"
)


@every_job
def test_why_nots_say_the_lever_alone_and_searched_again_in_fixed_sentences(job):
    ids = {rule.id for rule in constraints()}
    for step in job.answer.steps:
        for said in filter(None, (step.why_not_less, step.why_not_more)):
            found = SENTENCE.fullmatch(said)
            assert found, said
            assert found["rule"] is None or found["rule"] in ids
            assert found["priced"] is None or PRICED.fullmatch(found["priced"]), said


@every_job
def test_a_lever_alone_never_fits_at_a_price_that_the_ties_do_not_cover(job):
    """Unless it belongs to a lower rung: recompute, offload."""
    ladder = law().ladder
    band = ladder.tie_band.moe if job.case.model.experts else ladder.tie_band.dense
    for step in job.answer.steps:
        less = re.search(r"takes ([\d.]+)% less", step.why_not_less + step.why_not_more)
        assert less is None or "recompute" in step.id or "offload" in step.id or float(less[1]) / 100 <= band + 0.0005


# 4. The GPUs are fixed: each lever takes its ranks from data parallelism.


@every_job
def test_every_point_of_the_walk_uses_all_gpus(job):
    goal = job.case.model_copy(update={"layout": job.layout})
    layout = plain_data_parallel(goal)
    for rule in law().steps:
        layout = moved(goal, layout, values_of(goal.layout, rule.levers)) or layout
        assert layout.world == job.case.cluster.gpus


def test_the_ranks_that_share_states_are_counted_after_the_model_is_divided():
    order = [rule.id for rule in law().steps]
    dividing = ("tensor-parallel", "pipeline-parallel", "expert-parallel")
    assert all(order.index(step) < order.index("sharding") for step in dividing)


# 5. A pipeline divides states, not activations; levers that cost memory are called what they are.


@every_job
def test_a_pipeline_step_saves_states_and_not_the_first_stages_activations(job):
    for step in job.answer.steps:
        if step.id == "pipeline-parallel":
            states = [name for name in step.before_terms if name.startswith(("weights", "gradients", "optimizer"))]
            assert sum(step.after_terms.get(name, 0) for name in states) < sum(step.before_terms[n] for n in states)
            kept = [sum(terms.get(slot, 0) for slot in LAYER_SLOTS) for terms in (step.before_terms, step.after_terms)]
            assert kept[1] > kept[0] / job.layout.pipeline_parallel


def test_virtual_stages_are_called_a_speed_lever_and_raise_memory():
    held = SEVENTY_B.asked_with(virtual_stages=5)
    step = next(step for step in held.steps if step.id == "virtual-stages")
    assert step.because.startswith("A speed lever")
    assert step.after > step.before


def test_copies_of_a_sharded_group_raise_memory():
    asked = {"model": "llama-3-8b", "hardware": "4x8 H100-80GB", "framework": "fsdp2"}
    whole = advisor.estimate_memory(**asked, data_parallel_replicate=1)
    copies = advisor.estimate_memory(**asked, data_parallel_replicate=4)
    assert copies.peak_bytes > whole.peak_bytes


# 6. A step waits for its slowest stage: stages that differ are timed one by one.


@pytest.mark.parametrize("splits", [(12, 12, 12, 12), (6, 14, 14, 14), (18, 10, 10, 10), (13, 13, 13, 9)])
def test_a_step_takes_as_long_as_its_slowest_stage(splits):
    asked = case(
        model="qwen3-30b-a3b",
        hardware="4x8 H100-80GB",
        framework="megatron",
        pipeline_parallel=4,
        expert_parallel=8,
        stage_layers=list(splits),
    )
    stages = [stage_time(TimingJob(asked, asked.layout), stage).seconds for stage in range(4)]
    assert timing.step_time(asked).seconds == pytest.approx(max(stages), rel=1e-9)
    assert max(stages) > min(stages)


# 7. ZeRO-2 reduces gradients once a micro-batch, ZeRO-1 once a step.


def exchange(zero_stage, accumulation):
    asked = case(
        model="llama-3-8b",
        hardware="4x8 A100-80GB",
        framework="deepspeed",
        zero_stage=zero_stage,
        gradient_accumulation=accumulation,
    )
    parts = timing.step_time(asked).parts
    return sum(part.seconds for part in parts if part.name.startswith("exchange.reduce"))


def test_what_zero_2_reduces_grows_with_accumulation_and_what_zero_1_reduces_does_not():
    assert exchange(2, 32) > 8 * exchange(2, 1)
    assert exchange(1, 32) <= exchange(1, 1) * 1.01


# 8. What a card is sold as is not what its driver reports.


@pytest.mark.parametrize(("device", "least", "most"), [("rtx-4090", 23.5, 24.0), ("h100-80gb", 79.0, 80.0)])
def test_usable_memory_starts_from_what_the_driver_reports(device, least, most):
    assert least < find_device(device).driver_bytes / GIB < most
