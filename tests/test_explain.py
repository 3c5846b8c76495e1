"""explain: questions reach the entry that answers, figures follow the job, and nothing is guessed."""

from pathlib import Path

import pytest

import advisor
from advisor.articles import case_ids, find_case
from advisor.articles.collectives import all_gather, all_reduce, reduce_scatter
from advisor.catalog.reader import read_catalog_file, read_yaml
from advisor.errors import AdvisorError
from advisor.explaining.entries import beside, entries
from advisor.explaining.live import read_question
from advisor.explaining.spelling import words
from advisor.symbols import GLOSSARY
from advisor.terms import TERMS
from advisor.types import EXPLAINED
from advisor.words import explain_text

QUESTIONS = read_yaml(Path(__file__).parent / "data" / "questions.yaml")
OTHERS = [question for asked in QUESTIONS.values() for question in asked["others"]]
MISSED_AT_MOST = 4


@pytest.mark.parametrize("asked", QUESTIONS)
def test_of_forty_questions_thirty_six_reach_an_entry_that_answers(asked):
    ours = QUESTIONS[asked]["ours"]
    missed = {
        row["question"]: (row["entries"], answer.id)
        for row in ours
        if (answer := advisor.explain(question=row["question"])).id not in row["entries"]
    }
    assert len(ours) == 40
    assert len(missed) <= MISSED_AT_MOST, missed


@pytest.mark.parametrize("question", OTHERS)
def test_another_subject_is_not_covered(question):
    answer = advisor.explain(question=question)
    assert not answer.covered
    assert answer.says == ()
    assert explain_text(answer).startswith("Not covered")


def test_an_offload_that_kills_the_host_leads_to_its_memory():
    answer = advisor.explain(question="why does my ZeRO-3 job with CPU offload kill the host")
    assert "host-memory (" in explain_text(answer)


def test_every_question_names_entries_that_exist():
    named = {key for asked in QUESTIONS.values() for row in asked["ours"] for key in row["entries"]}
    assert named <= set(entries())
    assert len(OTHERS) == 50


def test_a_topic_is_reached_by_the_ways_to_ask_for_it():
    ways = [(key, ask) for key, entry in entries().items() for ask in entry.asks][::5]
    missed = [(key, ask) for key, ask in ways if advisor.explain(question=ask).id != key]
    assert len(ways) > 150
    assert len(missed) <= len(ways) // 30, missed


@pytest.mark.parametrize("key", beside())
def test_a_subject_beside_ours_is_neither_covered_nor_named(key):
    for ask in beside()[key].asks:
        answer = advisor.explain(question=ask)
        assert not answer.covered, ask
        assert key not in {near.id for near in answer.see}


@pytest.mark.parametrize(("kind", "between"), [("chinese", " "), ("same", " "), ("phrases", "; ")])
def test_a_spelling_stands_for_one_thing(kind, between):
    spellings = [
        word for listed in read_catalog_file("knowledge/words.yaml")[kind].values() for word in listed.split(between)
    ]
    assert len(spellings) == len(set(spellings))


def test_chinese_and_english_words_for_one_thing_are_one_word():
    assert list(words("张量并行")) == list(words("tensor parallelism")) == list(words("TP"))
    assert list(words("全量重算激活")) == list(words("full recomputation of activations"))
    assert list(words("爨")) == []  # one character that no list holds tells nothing
    assert list(words("爨鼎簋")) == ["爨鼎", "鼎簋"]
    assert list(words("tp4 80G torch.cuda")) == [*words("TP 4"), *words("80 GB"), *words("torch cuda")]


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
    assert read_question("全参训练7B要多少显存？", None).parameters == 7e9


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


# --- other calculators, and the reader's own GPU ----------------------------------------------------------------------

JOB = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "zero_stage": 3}


@pytest.mark.parametrize(
    ("question", "entry"),
    [
        ("Why does this differ from accelerate estimate-memory?", "calculator-accelerate"),
        ("Why does DeepSpeed's estimate_zero3_model_states_mem_needs say less?", "calculator-deepspeed"),
        ("Megatron prints a theoretical memory footprint that differs, why?", "calculator-megatron"),
        ("The EleutherAI cookbook calculator says something else", "calculator-cookbook"),
        ("llm-analysis gives another figure", "calculator-llm-analysis"),
        ("A VRAM calculator says 16 bytes per parameter, why is yours larger?", "calculators"),
        ("为什么和其他显存计算器的结果不一样？", "calculators"),
        ("Give me a script to measure the peak on my own GPU", "probe"),
    ],
)
def test_a_question_about_another_calculator_reaches_what_it_leaves_out(question, entry):
    assert advisor.explain(question=question).id == entry


def test_another_calculators_formula_is_worked_for_the_job_beside_our_peak():
    job = {**JOB, "framework": "deepspeed"}
    zero2, zero3, peak, _ = advisor.explain(id="calculator-deepspeed", case=job).figures
    total, table = 8_030_261_248, 128_256 * 4_096
    assert zero2.value == 2 * total + 18 * total / 8
    assert zero3.value == 4 * table + 18 * total / 8
    assert zero3.substituted == "4 · 525,336,576 + 18 · 8,030,261,248 / 8"
    assert peak.value == advisor.estimate_memory(**job).peak_bytes


def test_megatrons_report_counts_the_tables_of_the_fullest_stage():
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "megatron", "sequence_length": 4096}
    whole, divided = (
        advisor.explain(
            id="calculator-megatron", case=job | {"pipeline_parallel": stages, "tensor_parallel": 2}
        ).figures
        for stages in (1, 2)
    )
    table, rest = 128_256 * 4_096, 8_030_261_248 - 2 * 128_256 * 4_096
    assert whole[0].value == pytest.approx((rest + 2 * table) / 2 * (6 + 12 / 4))
    assert divided[0].value == pytest.approx((rest / 2 + table) / 2 * (6 + 12 / 2))
    logits = 4 * 4_096 * (4_096 + 128_256) / 2
    embedding = (8 + 4_096) * 4_096 / 2
    assert whole[1].value - divided[1].value == pytest.approx(logits - embedding)


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, ["fully_shard(layer, mp_policy=policy, reshard_after_forward=True)", "torchrun --nproc-per-node 8"]),
        ({"zero_stage": 2}, ["reshard_after_forward=False"]),
        ({"framework": "ddp", "zero_stage": None}, ["DistributedDataParallel(model, [rank])", "enabled=True"]),
        (
            {"framework": "single", "hardware": "1 H200", "zero_stage": None, "precision": "bf16", "recompute": "full"},
            ["# python probe.py", "dtype=torch.bfloat16", "gradient_checkpointing_enable", "enabled=False"],
        ),
        ({"sequence_length": "8k", "micro_batch": 2}, ["= 2, 8192, 1"]),
        ({"hardware": "2x8 H100-80GB"}, ["--nnodes 2"]),
    ],
)
def test_the_probe_is_a_whole_program_for_the_job(change, holds):
    answer = advisor.explain(id="probe", case=JOB | change)
    compile(answer.program, "probe.py", "exec")
    assert [part for part in [*holds, "'hidden_size': 4096", "measured_peak_gib="] if part not in answer.program] == []
    assert answer.program in explain_text(answer)


def test_a_probe_that_cannot_be_written_says_why_and_gives_the_lines():
    answer = advisor.explain(id="probe", case={**JOB, "framework": "megatron", "zero_stage": 1})
    assert "framework=megatron" in answer.caveats[0]
    assert "max_memory_allocated" in answer.program
    assert "import" not in answer.program


def test_the_probe_of_a_given_config_holds_it():
    config = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
    config |= {"intermediate_size": 512, "vocab_size": 1000}
    answer = advisor.explain(id="probe", case={"hf_config": config, "hardware": "1 H100", "framework": "single"})
    assert f"CONFIG = {config}" in answer.program
