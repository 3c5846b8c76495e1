"""The evals: each expected call is answered, a right transcript scores in full, a wrong one is told what differs."""

import json

import pytest

from advisor.errors import AdvisorError
from tests.doors import by_python
from tests.evals.__main__ import main
from tests.evals.score import Call, meaning, questions, read_calls, score

QUESTIONS = questions()
CALLED = {key: question for key, question in QUESTIONS.items() if question.tool}


def expected(question):
    """The arguments of a right call: those that must be right, or the question in its own words."""
    if not question.entry:
        return dict(question.arguments)
    numbered = "-ch" in question.entry
    return {"id": question.entry} if numbered else {"question": question.prompt}


def transcript(**changed):
    calls = {key: (question.tool, expected(question)) for key, question in CALLED.items()} | changed
    rows = [{"id": key, "tool": tool, "arguments": arguments} for key, (tool, arguments) in calls.items() if tool]
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def differences(text):
    return {each.question.id: each.differences for each in score(read_calls(text)) if each.differences}


def test_there_are_enough_questions_in_both_languages_and_of_every_tool():
    chinese = [question for question in QUESTIONS.values() if any(letter >= "\u4e00" for letter in question.prompt)]
    assert len(QUESTIONS) >= 40
    assert len(chinese) >= 12
    tools = {question.tool for question in CALLED.values()}
    assert len(tools) == 7
    assert all(sum(question.tool == tool for question in CALLED.values()) >= 3 for tool in tools)


@pytest.mark.parametrize("key", CALLED)
def test_every_expected_call_is_answered(key):
    kind, answer = by_python(CALLED[key].tool, expected(CALLED[key]))
    assert kind == "answer", answer
    if CALLED[key].entry:
        assert answer["id"] == CALLED[key].entry


def test_a_right_transcript_scores_in_full(tmp_path, capsys):
    file = tmp_path / "right.jsonl"
    file.write_text(transcript(), encoding="utf-8")
    assert main([str(file)]) == 0
    assert f"tool and arguments: {len(QUESTIONS)} of {len(QUESTIONS)} right" in capsys.readouterr().out


def test_a_wrong_transcript_is_told_what_differs(tmp_path, capsys):
    file = tmp_path / "wrong.jsonl"
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "zero_stage": 2}
    text = transcript(
        **{
            "fits-zero-3": ("estimate_memory", job),
            "limit-sequence": ("explore", {}),
            "why-zero": ("explain", {"question": "How does FlashAttention save memory?"}),
            "model-size": ("describe_model", {"modl": "mixtral-8x7b"}),
            "names-devices": ("", {}),
            "none-code": ("explain", {"question": "a haiku"}),
        }
    )
    file.write_text(text, encoding="utf-8")
    assert main([str(file)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:-1] == [
        "fits-zero-3: sequence_length is left out, not 8192",
        "fits-zero-3: zero_stage is 2, not 3",
        "limit-sequence: called explore; find_limit answers this",
        "model-size: refused: unknown argument 'modl'; did you mean 'model'?",
        "why-zero: reaches flash-attention, not zero",
        "names-devices: called nothing; list_catalog answers this",
        "none-code: called explain; no call is needed",
    ]
    assert said[-1].startswith(f"tool: {len(QUESTIONS) - 3} of")


@pytest.mark.parametrize(
    ("tool", "one", "other"),
    [
        ("estimate_memory", {"sequence_length": "8k"}, {"sequence_length": 8192}),
        ("estimate_memory", {"hardware": "8 H100"}, {"hardware": "1x8 h100-80gb"}),
        ("estimate_memory", {"model": "meta-llama/Meta-Llama-3-8B-Instruct"}, {"model": "llama-3-8b"}),
        (
            "explore",
            {"case": {}, "vary": {"micro_batch": "1..8 *2"}},
            {"case": {}, "vary": {"micro_batch": [8, 4, 2, 1]}},
        ),
        ("find_limit", {"case": {"hardware": "16 H100"}, "of": "gpus"}, {"case": {"hardware": "1 H100"}, "of": "gpus"}),
        ("list_catalog", {"kind": "devices", "query": "H100"}, {"kind": "devices", "query": "h100"}),
    ],
)
def test_calls_of_one_meaning_are_alike_however_they_are_spelt(tool, one, other):
    assert meaning(tool, one) == meaning(tool, other)


def test_calls_of_another_meaning_are_not_alike():
    hardware = [meaning("estimate_memory", {"hardware": text}) for text in ("8 H100", "2x8 H100", "8 A100-80GB")]
    assert hardware[0] != hardware[1] != hardware[2] != hardware[0]


def test_the_best_of_several_calls_counts_and_the_hosts_prefix_does_not():
    right, wrong = QUESTIONS["model-size"].arguments, {"model": "llama-3-8b"}
    calls = [Call("model-size", "describe_model", wrong), Call("model-size", "mcp__trainfit__describe_model", right)]
    (found,) = [each for each in score(calls) if each.question.id == "model-size"]
    assert (found.tool, found.differences) == (True, ())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "fits-zero-4", "tool": "explain", "arguments": {}}', "did you mean 'fits-zero-3'"),
        ('{"id": "fits-zero-3"}', "line 1: expected an object with id, tool, arguments"),
        ("{", "line 1 is not JSON"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused(line, said, tmp_path, capsys):
    with pytest.raises(AdvisorError, match=said):
        read_calls(line)
    file = tmp_path / "bad.jsonl"
    file.write_text(line, encoding="utf-8")
    assert main([str(file)]) == 64
    assert said in capsys.readouterr().err


def test_the_questions_are_printed_for_whoever_asks_them(capsys):
    assert main(["--prompts"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in printed] == list(QUESTIONS)
