"""The articles' advice as rules: when each speaks, that it is in the answer, and that the file decides."""

import pytest

import advisor
from advisor.constraints import advice as advising
from advisor.constraints import expression, rulebook
from advisor.constraints.answer_facts import ANSWER_FACTS
from advisor.constraints.facts import facts
from advisor.errors import AdvisorError
from advisor.types import CaseArguments
from tests.test_rules import UNSAID

#: What an example need not say of the answer.
UNSAID_OF_ANSWERS = {**UNSAID, "profile": "exact", "fits": True, "usable": 100, "precision_given": False}

EXAMPLES = [
    pytest.param(rule, given, kind == "fires", id=f"{rule.id}-{kind}-{place}")
    for rule in rulebook.advice_rules()
    for kind in ("fires", "silent")
    for place, given in enumerate(getattr(rule.examples, kind))
]

#: One job for each rule that fires, and a small change under which it does not.
JOBS = {
    "states-follow-all-experts": ({"model": "qwen3-30b-a3b"}, {"model": "llama-3-8b"}),
    "mixed-precision-spares-no-states": (
        {"model": "70B", "precision": "bf16_mixed", "framework": "ddp"}, {"precision": None},
    ),
    "adapters-spare-no-activations": (
        {"method": "lora", "micro_batch": 4, "sequence_length": 8192}, {"recompute": "full"},
    ),
    "large-vocabulary-makes-large-logits": ({"micro_batch": 2, "sequence_length": 8192}, {"loss": "fused"}),
    "long-sequence-needs-flash": ({"attention": "eager", "sequence_length": 8192}, {"attention": "flash"}),
    "tensor-parallel-leaves-activations": (
        {"framework": "megatron", "tensor_parallel": 4, "sequence_parallel": False}, {"sequence_parallel": True},
    ),
    "stages-of-unlike-length": (
        {"framework": "megatron", "pipeline_parallel": 4, "stage_layers": [7, 9, 8, 8]}, {"stage_layers": None},
    ),
    "tensor-parallel-beyond-the-node": (
        {"framework": "megatron", "hardware": "2x4 H100-80GB", "tensor_parallel": 8}, {"tensor_parallel": 4},
    ),
    "offload-that-is-not-needed": (
        {"framework": "deepspeed", "zero_stage": 2, "offload_optimizer": "cpu", "cpu_memory_gib": 1000},
        {"model": "70B", "zero_stage": 3},
    ),
    "what-optimizer-offload-costs": (
        {"framework": "deepspeed", "zero_stage": 2, "offload_optimizer": "cpu", "cpu_memory_gib": 1000},
        {"offload_optimizer": None},
    ),
}  # fmt: skip
EVERY = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "sequence_length": 4096}


def fired(**arguments):
    """The ids of the advice in an answer."""
    warnings = advisor.estimate_memory(**{**EVERY, **arguments}).warnings
    known = {rule.id for rule in rulebook.advice_rules()}
    return {warning.rpartition("[")[2].partition(";")[0] for warning in warnings} & known


@pytest.mark.parametrize(("rule", "example", "fires"), EXAMPLES)
def test_advice_speaks_as_its_examples_say(rule, example, fires):
    assert bool(expression.read(rule.when)({**UNSAID_OF_ANSWERS, **example})) is fires


@pytest.mark.parametrize("key", JOBS)
def test_an_answer_holds_the_advice_that_concerns_its_job_and_no_longer_when_the_job_changes(key):
    job, change = JOBS[key]
    assert key in fired(**job)
    assert key not in fired(**{**job, **change})


def test_the_sentence_shows_the_jobs_own_figures_the_article_and_whether_it_is_right():
    warnings = advisor.estimate_memory(**EVERY | {"model": "qwen3-30b-a3b"}).warnings
    said = next(warning for warning in warnings if "states-follow-all-experts" in warning)
    assert "all 30.5 B parameters, not the 3.4 B" in said
    assert said.endswith("[states-follow-all-experts; article-16-bytes, section 9: right]")


def test_a_slow_down_is_the_bandwidth_models_own():
    job = {**EVERY, **JOBS["what-optimizer-offload-costs"][0]}
    resting = {key: value for key, value in job.items() if key != "offload_optimizer"}
    ratio = advisor.estimate_memory(**job).time.step_time_s / advisor.estimate_memory(**resting).time.step_time_s
    said = next(warning for warning in advisor.estimate_memory(**job).warnings if "what-optimizer-offload" in warning)
    assert f"takes {ratio:.2f} times" in said


def test_what_frameworks_refuse_is_advised_on_under_an_articles_profile():
    job = {"model": "qwen3-30b-a3b", "framework": "megatron", "profile": "article-m3"}
    assert "stages-of-unlike-length" in fired(**job, hardware="5x8 H100-80GB", pipeline_parallel=5)
    assert "experts-not-divided-evenly" in fired(**job, hardware="7x8 H100-80GB", expert_parallel=7)


def test_the_file_decides(monkeypatch, tmp_path):
    rules = (rulebook.rules_folder() / "advice" / "20-activations.yaml").read_text(encoding="utf-8")
    file = tmp_path / "20-activations.yaml"
    file.write_text(rules.replace("sequence_length >= 4096", "sequence_length >= 999999"), encoding="utf-8")
    assert "long-sequence-needs-flash" in fired(attention="eager", sequence_length=8192)
    monkeypatch.setattr(advising, "advice_rules", lambda: rulebook.read_advice(tmp_path))
    advising._ready.cache_clear()
    try:
        assert "long-sequence-needs-flash" not in fired(attention="eager", sequence_length=8192)
    finally:
        advising._ready.cache_clear()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("saved_activations > usable", "saved_activation > usable", "did you mean 'saved_activations'?"),
        ("judged: wrong", "judged: false", "judged"),
        ("pointer: loss", "pointer: lost", "did you mean 'loss'?"),
        ("key: article-m3", "key: article-m4", "did you mean 'article-m3'?"),
        ('profile == "exact"', 'profile == "exakt"', "value of profile"),
    ],
)
def test_a_file_that_means_nothing_is_refused_by_line_and_name(tmp_path, old, new, words):
    rules = (rulebook.rules_folder() / "advice" / "20-activations.yaml").read_text(encoding="utf-8")
    (tmp_path / "20-activations.yaml").write_text(rules.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(AdvisorError, match=r"20-activations.yaml:\d+: rule ") as refused:
        rulebook.read_advice(tmp_path)
    assert words in refused.value.detail


def test_a_name_of_an_answer_is_none_of_a_case_and_pointers_are_arguments():
    assert not set(ANSWER_FACTS) & set(facts())
    assert {rule.pointer for rule in rulebook.advice_rules()} <= set(CaseArguments.model_fields)
