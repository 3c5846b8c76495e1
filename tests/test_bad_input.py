"""Bad input is answered: one sentence, the place, what is close; in bounded time, never a traceback."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, model_validator

from advisor.api import ModelArguments
from advisor.errors import AdvisorError
from advisor.request import read_request
from advisor.request_words import accepted
from advisor.types import CaseArguments
from tests.doors import by_python


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
