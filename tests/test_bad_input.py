"""Bad input is answered: one sentence, the place, what is close; in bounded time, never a traceback."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, model_validator
from starlette.testclient import TestClient

from advisor.api import ModelArguments
from advisor.errors import AdvisorError
from advisor.request import read_request
from advisor.request_words import accepted
from advisor.types import CaseArguments
from tests.doors import by_http, by_mcp, by_python, command_line
from tools.http_door import build_app


def deep(levels: int) -> dict:
    data: dict = {}
    for _ in range(levels):
        data = {"inside": data}
    return data


#: arguments, code, pointer, words of the sentence
TABLE = [
    ({"micro_batc": 2}, "unknown_argument", "/micro_batc", "did you mean 'micro_batch'"),
    ({"tp": 8}, "unknown_argument", "/tp", "did you mean 'tensor_parallel'"),
    ({"seq-len": 8}, "unknown_argument", "/seq-len", "did you mean 'sequence_length'"),
    ({"zzz": 1}, "unknown_argument", "/zzz", "none of the"),
    ({"": 1}, "unknown_argument", "/", "unknown argument ''"),
    ({"x" * 100_000: 1}, "unknown_argument", "/" + "x" * 80, "unknown argument 'xxx"),
    ({"micro_batch": 1, "micro-batch": 2}, "invalid_value", "/micro_batch", "given twice"),
    ({"method": "ful"}, "invalid_value", "/method", "did you mean 'full'"),
    ({"method": 3}, "invalid_value", "/method", "got 3; accepted: full, freeze"),
    ({"micro_batch": -1}, "invalid_value", "/micro_batch", "got -1; accepted: an integer from 1 to 65,536"),
    ({"micro_batch": 2.5}, "invalid_value", "/micro_batch", "got 2.5; accepted: an integer"),
    ({"micro_batch": True}, "invalid_value", "/micro_batch", "got true; accepted: an integer"),
    ({"micro_batch": [2]}, "invalid_value", "/micro_batch", "got a list of 1"),
    ({"sequence_length": 0}, "invalid_value", "/sequence_length", "got 0; accepted: an integer"),
    ({"sequence_length": "8x"}, "invalid_value", "/sequence_length", "got '8x'"),
    ({"sequence_length": "8q"}, "invalid_value", "/sequence_length", "did you mean '8k'?"),
    ({"sequence_length": "1B"}, "invalid_value", "/sequence_length", "got '1B'; accepted: an integer"),
    ({"train_tokens": "2X"}, "invalid_value", "/train_tokens", "got '2X'; accepted: an integer"),
    ({"zero_stage": "3q"}, "invalid_value", "/zero_stage", "got '3q'; accepted: an integer from 0 to 3"),
    ({"sequence_length": 10**12}, "invalid_value", "/sequence_length", "got 1000000000000"),
    ({"sequence_length": 10**5000}, "invalid_value", "/sequence_length", "too large"),
    ({"headroom": float("nan")}, "invalid_value", "/headroom", "expected a finite number"),
    ({"headroom": float("-inf")}, "invalid_value", "/headroom", "expected a finite number"),
    ({"headroom": 0.95}, "invalid_value", "/headroom", "of at least 0 and below 0.9"),
    ({"cpu_memory_gib": False}, "invalid_value", "/cpu_memory_gib", "got false"),
    ({"keep_logits": "perhaps"}, "invalid_value", "/keep_logits", "accepted: true or false"),
    ({"hardware": 8}, "invalid_value", "/hardware", "accepted: text"),
    ({"hardware": "x" * 500}, "invalid_value", "/hardware", "text of at most 200 characters"),
    ({"hf_config": "llama"}, "invalid_value", "/hf_config", "accepted: an object"),
    ({"hf_config": deep(70)}, "invalid_value", "/hf_config/inside", "nested more than 64 levels"),
    ({"hf_config": {"a": list(range(20_000))}}, "invalid_value", "/hf_config/a", "more than 10,000 items"),
    ({"hf_config": {"a": "x" * 2_000_000}}, "invalid_value", "/hf_config/a", "text of more than"),
    ({"hf_config": {"a": {1, 2}}}, "invalid_value", "/hf_config/a", "expected plain JSON data, got a set"),
    ({"model": "\0"}, "invalid_value", "/model", "text with a null character"),
    ({"framework_version": "\ud800"}, "invalid_value", "/framework_version", "half a character"),
    ({"\ud800": 1}, "invalid_value", "", "a name of an argument is text with half a character"),
    ({"hf_config": {"x": {"a\0": 1}}}, "invalid_value", "/hf_config/x", "a name of an argument is text with a null"),
    ({"hf_config": {"a/b~": float("nan")}}, "invalid_value", "/hf_config/a~1b~0", "finite"),
    ({"stage_layers": ["a"]}, "invalid_value", "/stage_layers/0", "got 'a'; accepted: an integer"),
    ({"lora_targets": ["q"] * 100}, "invalid_value", "/lora_targets", "at most 64 items"),
    ([1], "invalid_value", "", "expected an object with arguments, got a list of 1"),
    (None, "invalid_value", "", "got null"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "pointer", "words"), TABLE, ids=[f"{row[1]}{row[2][:30]}" for row in TABLE]
)
def test_bad_arguments_are_answered(arguments, code, pointer, words):
    with pytest.raises(AdvisorError) as refusal:
        read_request(CaseArguments, arguments)
    error = refusal.value
    assert error.code == code
    assert error.pointer.startswith(pointer)
    assert words in error.detail
    assert len(error.detail) < 500
    assert "pydantic" not in error.detail


def test_too_many_values_are_refused_wherever_they_stand():
    wide = {str(number): [0] * 9000 for number in range(40)}
    with pytest.raises(AdvisorError, match="more than 200,000 values"):
        read_request(CaseArguments, {"hf_config": wide})


def test_a_case_inside_another_request_is_read_like_a_case():
    read = read_request(ModelArguments, {"case": {"micro-batch": "2", "sequence_length": None, "model": "8B"}})
    assert read.case == CaseArguments(micro_batch=2, model="8B")
    with pytest.raises(AdvisorError) as refusal:
        read_request(ModelArguments, {"case": {"micro_batch": -1}})
    assert refusal.value.pointer == "/case/micro_batch"
    with pytest.raises(AdvisorError, match="did you mean 'micro_batch'"):
        read_request(ModelArguments, {"case": {"micro_batc": 1}})


@pytest.mark.parametrize("text", ["", " ", ","])
def test_an_empty_list_may_be_text(text):
    assert read_request(CaseArguments, {"stage_layers": text, "lora_targets": text}) == CaseArguments()


def test_null_and_an_empty_list_are_the_same_as_absent_and_hyphens_as_underscores():
    arguments = {"micro-batch": 4, "method": None, "stage_layers": [], "recompute_modules": ()}
    assert read_request(CaseArguments, arguments) == CaseArguments(micro_batch=4)


class Question(BaseModel):
    """A request with an argument that must be given, and a rule over several."""

    text: str = Field(max_length=20)
    other: str | None = None

    @model_validator(mode="after")
    def differ(self) -> Question:
        if self.text == self.other:
            raise ValueError("text and other are the same; accepted: two different texts")
        return self


def test_a_missing_argument_is_named_with_what_it_accepts():
    with pytest.raises(AdvisorError) as refusal:
        read_request(Question, {"other": "x"})
    assert refusal.value.as_dict() == {
        "code": "missing_argument",
        "detail": "text is missing; accepted: text of at most 20 characters",
        "pointer": "/text",
        "suggestions": [],
    }


def test_a_rule_over_several_arguments_keeps_its_sentence():
    with pytest.raises(AdvisorError, match=r"^text and other are the same; accepted: two different texts$"):
        read_request(Question, {"text": "x", "other": "x"})


@pytest.mark.parametrize(("text", "count"), [("8k", 8192), ("128K", 131_072), ("1M", 1_048_576), ("4,096", 4096)])
def test_counts_may_be_written_short(text, count):
    assert read_request(CaseArguments, {"sequence_length": text}).sequence_length == count


@pytest.mark.parametrize(("text", "count"), [("500M", 5 * 10**8), ("1B", 10**9), ("14.8t", 14_800 * 10**9), ("7", 7)])
def test_tokens_of_a_training_are_counted_in_powers_of_ten(text, count):
    assert read_request(CaseArguments, {"train_tokens": text}).train_tokens == count


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 0, "maximum": 3}, "an integer from 0 to 3"),
        ({"type": "number", "exclusiveMinimum": 0}, "a number above 0"),
        ({"type": "array", "maxItems": 4, "items": {"type": "string"}}, "a list: at most 4 items, each text"),
        ({"enum": ["a", "b"]}, "a, b"),
        ({"type": "boolean"}, "true or false"),
        ({}, "a value"),
    ],
)
def test_what_is_accepted_is_said_from_the_schema(schema, words):
    assert accepted(schema) == words


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": "llama-3-8b", "hf_config": {"model_type": "llama"}},
        {"model": "llama-3-8b", "case": {"model": "llama-3-8b"}},
        {},
        {"case": {}},
        {"model": "lama-3-8b"},
        {"model": "../../etc/passwd"},
        {"hf_config": {}},
        {"hf_config": {"model_type": "llama", "hidden_size": -1}},
        {"architecture": {"layer": 3}},
    ],
)
def test_a_model_that_cannot_be_read_is_refused(arguments):
    kind, error = by_python("describe_model", arguments)
    assert kind == "error"
    assert error["detail"]
    assert "Traceback" not in error["detail"]


# --- arguments that contradict each other, or that would change nothing -----------------------------------------------

DENSE = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2"}
CUT = {
    "model": "llama-3-70b", "hardware": "4x8 H100-80GB", "framework": "megatron", "tensor_parallel": 4,
    "pipeline_parallel": 4,
}  # fmt: skip
ADAPTED = {"model": "llama-3-8b", "hardware": "1 RTX-4090", "method": "lora"}
ROUTED = {"model": "qwen3-30b-a3b", "hardware": "1x8 H100-80GB", "framework": "megatron", "expert_parallel": 8}

#: base, more arguments, code, pointer, words of the sentence
CONTRADICTIONS = [
    (DENSE, {"lora_rank": 8}, "conflicting_arguments", "/lora_rank", "method=full has none; give method (lora, dora"),
    (DENSE, {"lora_dropout": 0}, "conflicting_arguments", "/lora_dropout", "leave lora_dropout out"),
    (ADAPTED, {"trainable": "top:4"}, "conflicting_arguments", "/trainable", "the rest is frozen"),
    (ADAPTED, {"lora_modules_to_save": ["q_proj"]}, "not_modelled", "/lora_modules_to_save", "embed_tokens, lm_head"),
    (ADAPTED, {"quantization": "nf4"}, "invalid_value", "/quantization", "needs method=qlora"),
    (ADAPTED | {"method": "qlora"}, {"quantization": "none"}, "invalid_value", "/quantization", "is method=lora"),
    (DENSE, {"method": "freeze"}, "missing_argument", "/trainable", "the part that is not frozen"),
    (DENSE, {"method": "freeze", "trainable": "all"}, "missing_argument", "/trainable", "top:N"),
    (DENSE, {"recompute": "full", "recompute_modules": ["mlp"]}, "conflicting_arguments", "/recompute_modules", "full"),
    (DENSE, {"recompute": "none", "recompute_layers": 4}, "conflicting_arguments", "/recompute_layers", "=blocks"),
    (DENSE, {"recompute": "full", "recompute_every": 4}, "conflicting_arguments", "/recompute_every", "=every_k"),
    (DENSE, {"recompute_modules": ["mlp"], "recompute_layers": 4}, "conflicting_arguments", "/recompute_layers", "two"),
    (DENSE, {"recompute": "every_k"}, "missing_argument", "/recompute_every", "from one checkpoint to the next"),
    (DENSE, {"recompute": "modules"}, "illegal_layout", "/recompute_modules", "names none"),
    (DENSE, {"recompute": "blocks"}, "illegal_layout", "/recompute_layers", "recompute_layers"),
    (DENSE, {"recompute_modules": ["mpl"]}, "unknown_recompute_module", "/recompute_modules", "did you mean 'mlp'"),
    (DENSE, {"images_per_sample": 1}, "not_modelled", "/images_per_sample", "leave it out"),
    (DENSE, {"global_batch": 12}, "illegal_layout", "/global_batch", "not a multiple"),
    (DENSE, {"global_batch": 64, "gradient_accumulation": 4}, "illegal_layout", "/global_batch", "contradicts"),
    (DENSE, {"data_parallel_replicate": 3}, "illegal_layout", "/data_parallel_shard", "must be 8"),
    (DENSE, {"tensor_parallel": 3}, "illegal_layout", "/tensor_parallel", "must be one of 1, 2, 4, 8"),
    (CUT, {"virtual_stages": 3}, "illegal_layout", "/virtual_stages", "accepted: 1, 2, 4, 5, 10, 20 ["),
    (CUT, {"pipeline_parallel": 8, "virtual_stages": 4}, "illegal_layout", "/pipeline_parallel", "5, 10, 20 ["),
    (DENSE, {"offload_parameters": "nvme"}, "illegal_layout", "/framework", "accepted: deepspeed ["),
    (DENSE | {"framework": "deepspeed"}, {"offload_parameters": "nvme", "zero_stage": 1}, "illegal_layout",
     "/zero_stage", "accepted: 3 ["),
    (CUT, {"stage_layers": [40, 40]}, "illegal_layout", "/stage_layers", "4 numbers that add up to 80"),
    (CUT, {"stage_layers": [20, 20, 20, 21]}, "illegal_layout", "/stage_layers", "add up to 80"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "more", "code", "pointer", "words"),
    CONTRADICTIONS,
    ids=[f"{' '.join(row[1])}-{number}" for number, row in enumerate(CONTRADICTIONS)],
)
def test_a_contradiction_is_answered_with_what_to_do(base, more, code, pointer, words):
    kind, error = by_python("estimate_memory", base | more)
    assert kind == "error"
    assert (error["code"], error["pointer"]) == (code, pointer)
    assert words in error["detail"]


@pytest.mark.parametrize("name", ["recompute_modules", "recompute_layers", "recompute_every"])
def test_a_recompute_argument_that_says_nothing_goes_with_every_policy(name):
    """So that a whole layout of an answer can be sent back."""
    nothing = {"recompute_modules": [], "recompute_layers": 0, "recompute_every": 1}
    assert by_python("estimate_memory", {**DENSE, "recompute": "full", name: nothing[name]})[0] == "answer"


IDLE = [
    (DENSE, {"moe_imbalance": 2}, "moe_imbalance changes nothing: llama-3-8b has no routed experts"),
    (DENSE, {"moe_capacity_factor": 2}, "moe_capacity_factor changes nothing"),
    (DENSE, {"expert_tensor_parallel": 2}, "expert_tensor_parallel changes nothing"),
    (DENSE, {"compile": True}, "compile changes nothing"),
    (DENSE, {"framework_version": "wow 3"}, "framework_version='wow 3' changes nothing"),
    (DENSE, {"pipeline_schedule": "zb_v"}, "pipeline_schedule counts only with pipeline_parallel"),
    (DENSE, {"context_parallel_kind": "all_gather"}, "context_parallel_kind counts only with context_parallel"),
    (DENSE | {"framework": "ddp"}, {"data_parallel_shard": 8}, "data_parallel_shard divides nothing with ddp"),
    (CUT, {"reshard_after_forward": False}, "reshard_after_forward counts only where ranks share the weights"),
    (
        DENSE,
        {"profile": "article-m3", "weight_loading": "one_rank"},
        "changes nothing under profile=article-m3: w",
    ),
    (DENSE, {"profile": "article-m3", "checkpoint_saving": "whole"}, "changes nothing under profile=article-m3: c"),
    (DENSE, {"offload_fraction": 0.5}, "offload_fraction counts only where the optimizer is offloaded"),
    (DENSE, {"recompute_modules": ["mlp", "moe"]}, "recompute_modules: moe changes nothing, llama-3-8b has no such"),
    (CUT, {"recompute_modules": ["layernorm"]}, "recompute_modules: layernorm changes nothing, megatron has the norms"),
    (CUT, {"pipeline_schedule": "zb_h1"}, "pipeline_schedule=zb_h1 is not in Megatron Core"),
    (ROUTED, {"recompute_modules": ["mlp"]}, "recompute_modules: mlp changes nothing"),
    (ROUTED, {"moe_imbalance": 2, "moe_capacity_factor": 1.5}, "moe_imbalance changes nothing: moe_capacity_factor"),
]


@pytest.mark.parametrize(("base", "more", "words"), IDLE, ids=[" ".join(row[1]) + row[0]["model"] for row in IDLE])
def test_an_argument_that_does_not_do_what_it_seems_to_is_warned_of(base, more, words):
    assert not [warning for warning in answered(base)["warnings"] if warning.startswith(words)]
    assert [warning for warning in answered(base | more)["warnings"] if warning.startswith(words)]


def test_megatrons_own_way_of_cutting_experts_is_named_where_none_is_given():
    job = {"model": "mixtral-8x7b", "hardware": "1x8 H100-80GB", "framework": "megatron", "tensor_parallel": 4}
    assert any("give expert_tensor_parallel=4" in warning for warning in answered(job)["warnings"])
    assert not any("expert_tensor" in text for text in answered(job | {"expert_tensor_parallel": 1})["warnings"])
    assert not any("expert_tensor" in text for text in answered(job | {"tensor_parallel": 1})["warnings"])


@pytest.mark.parametrize(
    ("base", "more"),
    [
        (ROUTED, {"moe_imbalance": 2, "recompute_modules": ["moe"]}),
        (DENSE | {"framework": "torchtitan"}, {"compile": True}),
        (CUT, {"offload_optimizer": "cpu", "offload_fraction": 0.5}),
        (ROUTED | {"framework": "megatron"}, {"recompute_modules": ["layernorm"]}),
    ],
)
def test_an_argument_that_counts_is_not_warned_of(base, more):
    warnings = answered(base | more)["warnings"]
    assert not [warning for warning in warnings if warning.startswith(tuple(more))]


#: A value of each argument that no base case has.
OTHER = {
    "gpu_memory_gib": 40, "cpu_memory_gib": 512, "nvme_gib": 1000, "network": 10, "method": "dora",
    "trainable": "top:4", "lora_rank": 64, "lora_targets": ["attention"], "lora_dtype": "fp32", "lora_dropout": 0.1,
    "lora_modules_to_save": ["embed_tokens"], "quantization": "int8", "framework": "deepspeed",
    "framework_version": "torch 2.5.0", "precision": "fp32", "gradient_dtype": "fp32", "optimizer": "sgd",
    "implementation": "fused", "attention": "eager", "loss": "fused", "keep_logits": True, "compile": True,
    "sequence_length": 8192, "micro_batch": 2, "global_batch": 64, "gradient_accumulation": 16,
    "gradient_sync": "last", "images_per_sample": 1, "tokens_per_image": 10, "moe_imbalance": 2,
    "moe_capacity_factor": 1.25, "train_tokens": 10**9, "price_per_gpu_hour": 2, "measured_peak_gib": 20,
    "weight_loading": "one_rank", "checkpoint_saving": "whole",
    "tensor_parallel": 2, "sequence_parallel": False, "pipeline_parallel": 2, "pipeline_schedule": "gpipe",
    "virtual_stages": 2, "stage_layers": [20, 20, 20, 20], "context_parallel": 2, "context_parallel_kind": "ulysses",
    "expert_parallel": 2, "expert_tensor_parallel": 2, "data_parallel_replicate": 2, "data_parallel_shard": 4,
    "zero_stage": 2, "reshard_after_forward": False, "recompute": "full", "recompute_modules": ["mlp"],
    "recompute_layers": 4, "recompute_every": 4, "distribute_checkpoints": True, "offload_optimizer": "cpu",
    "offload_parameters": "cpu", "offload_activations": "cpu", "offload_fraction": 0.5, "headroom": 0.2,
    "objective": "throughput", "law": "strict", "profile": "article-m3", "rules": "nowhere.yaml", "detail": "full",
}  # fmt: skip


def answered(arguments):
    kind, answer = by_python("estimate_memory", arguments)
    assert kind == "answer", answer
    return answer


def test_every_argument_has_a_value_to_try():
    in_the_bases = {"model", "hf_config", "architecture", "hardware"}
    assert set(OTHER) == set(CaseArguments.model_fields) - in_the_bases


@pytest.mark.parametrize("base", [DENSE, CUT, ADAPTED, ROUTED], ids=["dense", "cut", "adapted", "routed"])
@pytest.mark.parametrize("name", OTHER)
def test_no_argument_is_ignored_in_silence(base, name):
    """It is refused, or changes the answer, or is at least said to be given or to change nothing."""
    kind, answer = by_python("estimate_memory", {**base, name: OTHER[name]})
    if kind == "error":
        assert name in answer["detail"] or name in answer["pointer"] or str(OTHER[name]) in answer["detail"]
        return
    said = [each["argument"] for each in answer["assumptions"] if each["origin"] == "given"]
    assert name in said or answer["symbols"] != answered(base)["symbols"]


#: Arguments that only a search reads: tests/test_recommend.py has them change what is chosen.
OF_A_SEARCH = {"objective", "law"}
#: Arguments that count beside another one, which the bases lack.
BESIDE = {
    "nvme_gib": {"framework": "deepspeed", "zero_stage": 3, "offload_optimizer": "nvme"},
    "price_per_gpu_hour": {"train_tokens": 10**9},
    "framework_version": {"framework": "torchtitan", "compile": True},
    "gradient_sync": {"gradient_accumulation": 4},
    "headroom": {"gpu_memory_gib": 60},
}


def told(arguments):
    """All that an answer says of a job, but for what it only repeats; or the refusal."""
    kind, answer = by_python("estimate_memory", arguments)
    repeated = ("assumptions", "layout", "next_calls", "questions", "versions")
    return answer if kind == "error" else {name: part for name, part in answer.items() if name not in repeated}


@pytest.mark.parametrize("name", sorted(set(OTHER) - OF_A_SEARCH))
def test_every_argument_is_read(name):
    """To stand among the given ones is not enough: somewhere it changes what is said."""
    bases = [{**base, **BESIDE.get(name, {})} for base in (DENSE, CUT, ADAPTED, ROUTED)]
    assert any(told({**base, name: OTHER[name]}) != told(base) for base in bases)


@pytest.mark.parametrize("idle", [{"expert_tensor_parallel": 2}, {"pipeline_schedule": "zb_h1"}, {"stage_layers": ""}])
def test_an_argument_that_changes_nothing_infers_no_framework(idle):
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}
    assert answered(job | idle)["framework"] == answered(job)["framework"] == "fsdp2"


def test_zero_2_keeps_weights_between_forward_and_backward_unless_told_otherwise():
    whole = answered(DENSE | {"zero_stage": 2})
    assert whole["layout"]["reshard_after_forward"] is False
    assert whole["peak_bytes"] > answered(DENSE | {"zero_stage": 2, "reshard_after_forward": True})["peak_bytes"]


@pytest.mark.parametrize(
    "more", [{"recompute_layers": 10}, {"recompute_modules": ["core_attn"]}, {"stage_layers": [19, 21, 21, 19]}]
)
def test_a_search_keeps_what_an_argument_implies(more):
    base = {name: CUT[name] for name in ("model", "hardware", "framework")}
    kind, answer = by_python("recommend_setup", {**base, **more})
    assert kind == "answer"
    name, value = next(iter(more.items()))
    assert answer["layout"][name] == value
    assert answer["layout"]["recompute"] == {"recompute_layers": "blocks", "recompute_modules": "modules"}.get(
        name, answer["layout"]["recompute"]
    )
    assert name != "stage_layers" or answer["layout"]["pipeline_parallel"] == len(value)


def test_text_that_is_no_text_is_refused_at_the_doors_too():
    http = TestClient(build_app(), raise_server_exceptions=False)
    reply = http.post("/v1/estimate-memory", content=b'{"\\ud800": 1}', headers={"content-type": "application/json"})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_value")
    assert by_mcp("estimate_memory", {"model": "\0"}) == by_http("estimate_memory", {"model": "\0"}, http)


@pytest.mark.parametrize(("given", "words"), [("estimat-memory", "'estimate-memory'"), ("sreve", "'serve'")])
def test_a_misspelt_command_is_answered_with_the_commands_there_are(given, words, capsys):
    code, _, said = command_line([given], capsys)
    assert code == 64
    assert f"did you mean {words}" in said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--json", "estimate-memory"], "--json stands before the command; write it after: trainfit estimate-memory"),
        (["--modle", "x"], "unknown argument 'modle'; accepted: version, help"),
        (["serve", "--nope"], "--help lists them"),
        (["serve", "--htpp"], "did you mean 'http'"),
        (["list-catalog", "--kind", "models", "--query", "a", "--kind", "devices"], "kind: given twice"),
        (["list-catalog", "--json", "--json"], "json: given twice"),
    ],
)
def test_an_option_in_the_wrong_place_is_answered_with_the_right_one(given, words, capsys):
    code, _, said = command_line(given, capsys)
    assert code == 64
    assert words in said


def test_the_bare_command_shows_its_help_and_no_error(capsys):
    code, out, said = command_line([], capsys)
    assert (code, said) == (0, "")
    assert "recommend-setup" in out
