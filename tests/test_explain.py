"""explain: questions reach the entry that answers, figures follow the job, and nothing is guessed."""

import pytest

import advisor
from advisor.articles import case_ids, find_case
from advisor.articles.collectives import all_gather, all_reduce, reduce_scatter
from advisor.errors import AdvisorError
from advisor.explaining.entries import entries
from advisor.explaining.live import read_question
from advisor.symbols import GLOSSARY
from advisor.terms import TERMS
from advisor.types import EXPLAINED
from advisor.words import explain_text

QUESTIONS = {
    "What takes up GPU memory while training a large language model?": "components",
    "Why does Adam need 12 bytes per parameter?": "optimizer-states",
    "How much memory do the model states of a 7B model take in mixed precision?": "sixteen-bytes",
    "Does bf16 mixed precision reduce the memory of model states?": "mixed-precision",
    "What is the difference between ZeRO stage 1, 2 and 3?": "zero",
    "Why does DeepSeek use pipeline parallelism with ZeRO-1 instead of ZeRO-3?": "zero-with-pipeline",
    "How does FlashAttention save memory?": "flash-attention",
    "What does gradient checkpointing cost?": "recompute",
    "When do I need context parallelism?": "context-parallel",
    "Why should tensor parallelism stay inside a node?": "tensor-parallel",
    "Does pipeline parallelism reduce activation memory?": "pipeline-parallel",
    "What is HSDP and when is it useful?": "hsdp",
    "Is the peak of FSDP the whole model?": "fsdp",
    "What does LoRA save and what does it not?": "lora",
    "Can QLoRA fine-tune a 70B model on a 48GB card?": "qlora",
    "Should I freeze the bottom or the top layers?": "frozen-layers",
    "How big are the logits with a 128K vocabulary?": "logits",
    "Explain all-reduce as reduce-scatter plus all-gather": "collectives",
    "How slow is CPU offloading of the optimizer?": "offload-optimizer",
    "ZeRO-Offload versus ZeRO-Infinity": "offload",
    "How many parameters does a Llama have, by formula?": "dense-count",
    "Does gradient accumulation increase memory?": "gradient-accumulation",
    "GB or GiB, what is the difference?": "units",
    "How do expert weights divide with expert parallelism?": "expert-parallel",
    "Do MoE states follow active or total parameters?": "moe-states",
    "What is sequence parallelism?": "sequence-parallel",
    "Where does the vision tower's memory go?": "vision",
    "Show me a cheat sheet of the formulas": "formula-sheet",
    "训练时显存由哪些部分组成？": "components",
    "为什么训练比推理需要更多显存？": "training-or-inference",
    "ZeRO三个阶段的区别是什么": "zero",
    "激活重计算的原理和代价": "recompute",
    "混合精度为什么不省模型状态的显存？": "mixed-precision",
    "张量并行为什么要放在机内？": "tensor-parallel",
    "什么时候需要上下文并行？": "context-parallel",
    "LoRA微调能省多少显存？": "lora",
    "冻结底层还是顶层能省激活？": "frozen-layers",
    "FlashAttention的原理": "flash-attention",
    "优化器状态占多少字节？": "optimizer-states",
    "数据并行与模型并行的区别": "zero-or-model-parallel",
}
OFF_TOPIC = [
    "What is the capital of France?",
    "How do I bake bread with a pipeline of ovens?",
    "Who won the world cup in 2022?",
    "Write a poem about autumn leaves",
    "How do I centre a div in CSS?",
    "What is the boiling point of ethanol?",
    "Recommend a good restaurant in Berlin",
    "今天天气怎么样？",
    "如何学习弹钢琴？",
    "Translate good morning into Spanish",
]
MISSED_AT_MOST = 4


def test_forty_questions_reach_their_entry():
    missed = {
        question: (expected, answer.id)
        for question, expected in QUESTIONS.items()
        if (answer := advisor.explain(question=question)).id != expected
    }
    assert len(QUESTIONS) == 40
    assert len(missed) <= MISSED_AT_MOST, missed


@pytest.mark.parametrize("question", OFF_TOPIC)
def test_another_subject_is_not_covered(question):
    answer = advisor.explain(question=question)
    assert not answer.covered
    assert answer.says == ()
    assert explain_text(answer).startswith("Not covered")


def test_every_entry_can_be_asked_for_and_read():
    derived = [key for key, entry in entries().items() if ":" in key]
    for key in {*entries()} - {*derived} | {*derived[::5]}:
        entry = entries()[key]
        answer = advisor.explain(id=key)
        assert answer.covered
        assert answer.title == entry.title
        assert len(explain_text(answer)) < 3200, key


def test_what_an_entry_points_to_exists():
    for entry in entries().values():
        assert [key for key in entry.see if key not in entries()] == [], entry.id
        assert [key for key in entry.figures if key not in case_ids()] == [], entry.id


@pytest.mark.parametrize("entry", [entry for entry in entries().values() if entry.compare], ids=lambda entry: entry.id)
def test_the_jobs_of_an_entry_are_legal(entry):
    figures = [
        figure
        for figure in advisor.explain(id=entry.id).figures
        if figure.name in ("as it is", *entry.compare["changes"])
    ]
    assert [figure.text for figure in figures if figure.value is None] == []
    assert len(figures) == 1 + len(entry.compare["changes"])


def test_every_term_symbol_and_conflict_has_an_entry():
    wanted = {f"term:{term.name}" for term in TERMS} | {f"symbol:{name}" for name in GLOSSARY}
    assert wanted <= set(entries())
    assert {f"conflict:C{number}" for number in range(1, 70)} <= set(entries())


def test_a_worked_number_shows_formula_numbers_what_is_printed_and_what_is_wrong():
    answer = advisor.explain(id="s0-ch2.5-act")
    assert answer.figures[0].value == pytest.approx(25669140480)
    assert "34" in find_case("s0-ch2.5-act").title or answer.formula.startswith("17 · w")
    assert answer.article.stated == "25.7 GB"
    assert answer.article.sound is False
    assert "conflict:C29" in [each.id for each in answer.see]
    assert "25.67 GB (23.9 GiB)" in explain_text(answer)


def test_other_values_of_a_worked_number_are_computed():
    answer = advisor.explain(id="s1-ch4.5-7b-zero1", values={"Phi": 13e9})
    assert answer.figures[0].value == pytest.approx(71.5e9)


def test_figures_follow_the_model_and_the_gpus_in_the_question():
    small = advisor.explain(question="What do ZeRO stage 1, 2 and 3 need for a 13B model on 16 GPUs?")
    assert small.id == "zero"
    assert small.figures[0].value == pytest.approx(4 * 13e9 + 12 * 13e9 / 16)
    assert read_question("llama-3-70b on 8 H100 GPUs", None).model == "llama-3-70b"


def test_figures_follow_the_case():
    case = {"model": "llama-2-7b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "zero_stage": 3}
    ours = advisor.explain(id="recompute", case=case).figures
    peak = advisor.estimate_memory(**case).peak_bytes
    assert next(figure.value for figure in ours if figure.name == "as it is") == peak
    term = advisor.explain(id="term:weights_dense", case=case).figures[0]
    assert term.value == pytest.approx(6738415616 * 4 / 8, rel=1e-6)
    assert advisor.explain(id="symbol:h", case=case).figures[0].value == 4096


def test_the_matrix_says_what_divides_what():
    rows = advisor.explain(id="response-matrix").table
    table = {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[1:]}
    assert table["weights"]["tp"] == "0.50"
    assert table["weights"]["cp"] == "1.00"
    assert table["optimizer"]["dp"] == "0.50"
    assert table["activations"]["dp"] == "1.00"
    assert float(table["activations"]["full recompute"]) < 0.5


def test_all_reduce_is_reduce_scatter_then_all_gather():
    ranks = ((1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15, 16))
    assert all_gather(reduce_scatter(ranks)) == all_reduce(ranks) == (28, 32, 36, 40)
    few = ((1, 2), (3, 4), (5, 6), (7, 8))
    assert reduce_scatter(few) == ((16,), (20,), (), ())
    assert all_gather(reduce_scatter(few)) == all_reduce(few)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either question or id"),
        ({"question": "zero", "id": "zero"}, "either question or id"),
        ({"id": "zerro"}, "zerro"),
        ({"id": "zero", "values": {"N": 1}}, "worked number"),
        ({"id": "s0-ch2.5-act", "case": {"model": "7B", "hardware": "1 H100"}}, "takes values"),
        ({"id": "s0-ch99"}, "s0-ch99"),
    ],
)
def test_a_call_that_cannot_be_answered_says_why(arguments, words):
    with pytest.raises(AdvisorError, match=words):
        advisor.explain(**arguments)


@pytest.mark.parametrize("kind", EXPLAINED)
def test_what_is_listed_as_explained_can_be_asked_for_by_its_id(kind):
    listed = advisor.list_catalog(kind=kind)
    assert kind in listed.kinds
    assert len(listed.entries) == listed.total > 10
    for entry in (listed.entries[0], listed.entries[-1]):
        assert advisor.explain(id=entry.id).title == entry.title


def test_what_is_explained_is_found_by_a_word_of_its_title():
    assert [entry.id for entry in advisor.list_catalog(kind="topics", query="Formula sheet").entries] == [
        "formula-sheet"
    ]


def test_every_entry_that_can_be_explained_is_listed():
    listed = {entry.id for kind in EXPLAINED for entry in advisor.list_catalog(kind=kind).entries}
    unlisted = {key for key in entries() if not key.startswith(("formula:", "optimizer:"))} - listed
    assert unlisted == set()
