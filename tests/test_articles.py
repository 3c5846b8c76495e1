"""The articles' worked numbers, each asked of the product's public calls and held against an independent reading."""

from functools import cache
from pathlib import Path

import pytest

import advisor
from advisor import symbols
from advisor.articles import case_ids, conflicts, find_case
from advisor.articles.letters import LETTERS
from advisor.errors import AdvisorError
from tests.article_doors import doors
from tests.validation import articles

DATA = Path(__file__).parent / "data" / "articles.yaml"


@cache
def rows():
    return {row["id"]: row for row in articles.read_rows(DATA)}


@cache
def answer_of(case_id):
    """What the product says with the independent reading's own inputs, in the article's letters."""
    return articles.asked(rows()[case_id])


WITH_FORMULA = [key for key, row in rows().items() if row["recomputed"] is not None]
#: The article prints a number, and no formula that gives it.
NOT_EXECUTABLE = {
    "s0-ch1.2-fp8adam-chunked": "4 bytes in chunks is said, not derived",
    "s3-6-act-direction": "frozen bottom layers keep everything is said, not derived",
    "s3-6-act-direction-top": "frozen top layers keep half is said, not derived",
}


@pytest.mark.parametrize("case_id", WITH_FORMULA)
def test_a_worked_number_comes_out_as_recomputed(case_id):
    assert articles.is_recomputed(rows()[case_id], answer_of(case_id))


@pytest.mark.parametrize("case_id", [key for key in WITH_FORMULA if rows()[key]["agrees"]])
def test_a_worked_number_that_agrees_is_the_printed_one_digit_for_digit(case_id):
    note = answer_of(case_id).article
    assert note.as_printed == note.stated


@pytest.mark.parametrize("case_id", [key for key in WITH_FORMULA if rows()[key]["agrees"] is False])
def test_a_worked_number_that_disagrees_names_the_conflict(case_id):
    assert [entry for entry in answer_of(case_id).see if entry.id.startswith("conflict:")]


@pytest.mark.parametrize("case_id", WITH_FORMULA)
def test_the_articles_own_values_are_those_of_the_independent_reading(case_id):
    assert advisor.explain(id=case_id).figures == answer_of(case_id).figures


@pytest.mark.parametrize("case_id", doors())
def test_a_number_that_a_tool_gives_as_well_is_the_same_there(case_id):
    door, figure = doors()[case_id], answer_of(case_id).figures[0]
    expected = figure.value if figure.holds is None else figure.holds
    if door.tool == "describe_model":  # the model's own shapes, which the article's formula misses
        expected = find_case(case_id).better * articles.UNITS.get(rows()[case_id]["unit"], 1)
    assert door.value() == pytest.approx(expected, rel=1e-6)


def test_the_file_as_a_whole_passes_but_for_numbers_without_a_formula():
    assert articles.run(DATA) == {
        "passed": 439, "failed": 0, "not_executable": 3, "agreeing": 370, "to_the_printed_digit": 370,
    }  # fmt: skip


def test_what_cannot_be_computed_has_no_formula_and_says_so():
    assert {key for key, row in rows().items() if row["formula"] is None} == set(NOT_EXECUTABLE)
    for case_id in NOT_EXECUTABLE:
        with pytest.raises(AdvisorError, match="without a formula"):
            advisor.explain(id=case_id)


def test_a_row_with_other_inputs_or_another_value_is_told_apart():
    row = rows()["s1-ch4.5-7b-zero1"]
    doubled = row | {"inputs": {"Phi": 14e9, "N": 8}, "recomputed": 77.0, "stated": 77}
    assert articles.outcome(doubled) == ""
    assert articles.outcome(row | {"recomputed": 40.0}) == "38.5 instead of 40.0 GB"
    assert articles.outcome(row | {"stated": 40}) == "38.5 is not the printed 40 GB"
    assert "s1-ch99" in articles.outcome(row | {"id": "s1-ch99"})


@pytest.mark.parametrize("case_id", rows())
def test_the_product_says_what_the_reading_says_of_a_number(case_id):
    ours, row = find_case(case_id), rows()[case_id]
    assert (ours.unit, ours.agrees, ours.sound) == (row["unit"], row["agrees"], row["sound"])
    assert ours.stated == (tuple(row["stated"]) if isinstance(row["stated"], list) else row["stated"])
    assert ours.section == str(row["section"])


def test_every_worked_number_is_known_and_none_besides():
    assert sorted(case_ids()) == sorted(rows())


@pytest.mark.parametrize("case_id", WITH_FORMULA)
def test_the_numbers_shown_make_the_value(case_id):
    for figure in answer_of(case_id).figures[1:]:
        shown = figure.substituted.replace(",", "").replace("·", "*").replace("^", "**")
        assert eval(shown) == pytest.approx(figure.value, rel=1e-9)  # numbers and signs only


# --- letters ---------------------------------------------------------------------------------------------------------


def value_of(case_id, **values):
    figure = advisor.explain(id=case_id, values=values).figures[0]
    return figure.value if figure.holds is None else figure.holds


def test_other_numbers_give_another_value_in_either_spelling():
    assert value_of("s1-ch4.5-7b-zero1", Phi=13e9) == pytest.approx(71.5e9)
    assert value_of("s1-ch4.5-7b-zero1", N=8, Phi=7e9) == pytest.approx(38.5e9)
    assert value_of("s1-ch4.5-7b-zero1", N=7e9, dp=8) == pytest.approx(38.5e9)
    assert value_of("s0-ch2.5-fits", cap_gb=500) is True


def test_a_letter_the_number_does_not_depend_on_is_refused_with_those_it_does():
    with pytest.raises(AdvisorError, match="accepted: N, dp") as refused:
        value_of("s1-ch4.5-7b-zero1", heads=3)
    assert refused.value.code == "unknown_letter"
    with pytest.raises(AdvisorError, match="does not depend on the article's N") as refused:
        value_of("s1-ch4.5-7b-ddp", Phi=7e9, N=8)
    assert refused.value.code == "unknown_letter"


@pytest.mark.parametrize(
    ("values", "words"), [({"N": 8}, "give Phi or dp, or both"), ({"Phi": 1, "N": 2, "dp": 3}, "gives it already")]
)
def test_a_letter_that_means_one_thing_here_and_another_in_the_article_is_not_guessed(values, words):
    with pytest.raises(AdvisorError, match=words) as refused:
        value_of("s1-ch4.5-7b-zero1", **values)
    assert "data-parallel ranks" in refused.value.detail


def test_a_value_that_leaves_no_number_is_refused():
    with pytest.raises(AdvisorError, match="no finite number"):
        value_of("s1-ch4.5-7b-zero1", dp=0)


# --- conflicts and letters of the catalog ----------------------------------------------------------------------------


def test_every_conflict_has_its_place_in_the_list_and_the_cases_name_no_other():
    named = {key for case_id in case_ids() for key in find_case(case_id).conflicts}
    assert named <= set(conflicts())
    assert list(conflicts()) == [f"C{number}" for number in range(1, 70)]


def test_a_number_that_is_not_sound_says_why():
    unsound = [key for key in case_ids() if not find_case(key).sound]
    assert [key for key in unsound if not find_case(key).conflicts and find_case(key).better is None] == []


def test_a_letter_of_the_glossary_means_one_thing():
    names = [symbol.name for symbol in symbols._ALL]
    assert [name for name in set(names) if names.count(name) > 1] == []


def test_a_letter_that_articles_and_engine_share_counts_the_same():
    shared = {name for name in LETTERS if name in symbols.GLOSSARY}
    assert {name for name in shared if LETTERS[name].unit != symbols.GLOSSARY[name].unit} == set()


# --- profiles over the one engine ------------------------------------------------------------------------------------

M3 = {
    "model": "minimax-m3", "hardware": "64x8 H100-80GB", "framework": "megatron", "tensor_parallel": 4,
    "pipeline_parallel": 4, "expert_parallel": 8, "data_parallel_shard": 32, "zero_stage": 2, "micro_batch": 2,
    "sequence_length": 8192, "recompute": "full", "profile": "article-m3",
}  # fmt: skip


def test_an_answer_by_profile_says_so_first_with_the_exact_peak_and_the_conflicts_it_meets():
    answer = advisor.estimate_memory(**M3)
    exact = advisor.estimate_memory(**{**M3, "zero_stage": 1, "profile": "exact"})
    assert answer.warnings[0].startswith("profile=article-m3 gives the article's arithmetic")
    assert f"{exact.peak_bytes / 2**30:,.1f} GiB" in answer.warnings[0]
    met = {warning.split(" ")[0] for warning in answer.warnings}
    assert {"C2", "C9", "C12", "C26", "C29", "C37"} <= met
    assert not {"C10", "C46", "C47"} & met


@pytest.mark.parametrize("changes", [{"recompute": "selective"}, {"offload_activations": "cpu"}, {"virtual_stages": 3}])
def test_what_an_article_has_no_formula_for_is_refused(changes):
    with pytest.raises(AdvisorError, match="has no formula in article-m3"):
        advisor.estimate_memory(**{**M3, **changes})


def test_an_argument_that_changes_nothing_under_a_profile_is_named():
    answer = advisor.estimate_memory(**M3, loss="fused")
    assert "changes nothing under profile=article-m3: loss" in answer.warnings


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("recommend_setup", {"model": "70B", "hardware": "4x8 H100-80GB", "profile": "article-m3"}),
        ("find_limit", {"case": M3, "of": "gpus"}),
        ("find_limit", {"case": M3, "of": "device"}),
    ],
)
def test_which_layout_should_run_is_not_asked_of_an_article(tool, arguments):
    with pytest.raises(AdvisorError, match="no article searches for one"):
        getattr(advisor, tool)(**arguments)


@pytest.mark.parametrize("profile", ["article-m3", "article-must-know", "article-16-bytes"])
def test_a_sweep_by_an_articles_arithmetic_is_the_answers_by_it(profile):
    case = {**M3, "profile": profile, "sequence_length": 8192}
    varied = {"micro_batch": [1, 2, 8], "recompute": ["none", "full"], "tensor_parallel": [2, 4]}
    swept = advisor.explore(case=case, vary=varied, limit=20)
    assert len(swept.rows) == 12
    assert swept.refused == 0
    assert swept.warnings[0].startswith(f"profile={profile} gives the article's arithmetic")
    for row in swept.rows:
        shown = dict(zip(swept.columns, row, strict=True))
        answer = advisor.estimate_memory(**case | {name: shown[name] for name in varied})
        assert answer.peak_bytes == pytest.approx(shown["peak_bytes"], abs=2)
        assert answer.verdict == shown["verdict"]


def test_a_limit_by_an_articles_arithmetic_is_its_largest_batch():
    qlora = {
        "model": "llama-3-70b", "hardware": "1x1 H100-80GB", "framework": "single", "method": "qlora",
        "recompute": "full", "headroom": 0, "profile": "article-m3",
    }  # fmt: skip
    case = {**qlora, "sequence_length": 8192}
    found = advisor.find_limit(case=case, of="micro_batch")
    assert found.value == advisor.explain(id="s0-ch9.6-t8192-maxb").figures[0].value == 4
    assert found.warnings[0].startswith("profile=article-m3 gives the article's arithmetic")
    peak = advisor.estimate_memory(**case, micro_batch=4).peak_bytes
    assert (found.at.peak_bytes, found.at.verdict) == (peak, "fits")


def test_the_exact_profile_is_the_answer_without_a_profile():
    plain = {key: value for key, value in M3.items() if key not in ("profile", "zero_stage")}
    assert advisor.estimate_memory(**plain).peak_bytes == advisor.estimate_memory(**plain, profile="exact").peak_bytes
