"""What experts require holds for every recommendation of the page; a check that can fail is shown to fail."""

import pytest

from tests.experts import (
    CHECKS,
    JOBS,
    Job,
    context_parallel_where_the_sequence_asks,
    every_lever_has_its_reason,
    experts_on_the_fast_link,
    micro_batches_fill_the_pipeline,
    no_pipeline_inside_one_node,
    offload_last,
    tensor_parallel_on_the_fast_link,
    whole_key_value_heads,
)

every_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: job.title)
SEVENTY_B, QWEN = JOBS[2], JOBS[3]


@every_job
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_expert_finds_nothing_to_object_to(check, job):
    finding = check(job)
    assert finding is None or finding.passes, finding.because


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_is_asked_of_some_job(check):
    assert any(check(job) for job in JOBS)


def with_layout(job, **changes):
    """The job as if another layout had been recommended."""
    other = Job(job.title, job.arguments)
    layout = job.layout.model_copy(update=changes)
    other.__dict__["answer"] = job.answer.model_copy(update={"layout": layout})
    return other


@pytest.mark.parametrize(
    ("check", "job", "changes"),
    [
        (tensor_parallel_on_the_fast_link, SEVENTY_B, {"tensor_parallel": 16}),
        (context_parallel_where_the_sequence_asks, SEVENTY_B, {"context_parallel": 4}),
        (context_parallel_where_the_sequence_asks, QWEN, {"context_parallel": 2}),
        (micro_batches_fill_the_pipeline, SEVENTY_B, {"gradient_accumulation": 4}),
        (offload_last, SEVENTY_B, {"offload_optimizer": "cpu"}),
        (every_lever_has_its_reason, SEVENTY_B, {"micro_batch": 2, "offload_parameters": "cpu"}),
    ],
)
def test_a_check_objects_to_a_layout_that_no_expert_would_run(check, job, changes):
    assert not check(with_layout(job, **changes)).passes


@pytest.mark.parametrize(
    ("check", "changes"),
    [(whole_key_value_heads, {"tensor_parallel": 8}), (experts_on_the_fast_link, {"expert_parallel": 16})],
)
def test_a_rule_of_thumb_is_left_only_where_following_it_is_worse(check, changes):
    finding = check(with_layout(QWEN, **changes))
    assert not finding.passes
    assert finding.because.startswith("differs: ")


def test_a_pipeline_inside_a_node_that_could_do_without_is_objected_to():
    roomy = Job("Llama-3-8B", {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"})
    assert not no_pipeline_inside_one_node(with_layout(roomy, pipeline_parallel=2)).passes
