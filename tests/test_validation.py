"""The product against the facts it ships: how close it must be, and what the validation command refuses."""

import importlib
import json
import sys
from types import SimpleNamespace
from typing import get_args

import pytest

from advisor.diagnose import decode_allocation
from advisor.errors import AdvisorError
from advisor.resolve import resolve
from advisor.types import CaseArguments
from advisor.types.arguments import Framework
from advisor.units import gib
from tests.validation import __main__ as command
from tests.validation import accuracy, activations, comparison, measured, params, peaks, reports
from tests.validation.comparison import Comparison
from tests.validation.facts import OWN_FOLDER, BadCallError, notes, own_files
from tests.validation.recount import __main__ as recount
from tests.validation.torch_cases import OPTIONS, case_of

TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 256,
}
ROW = {"seq": 128, "mbs": 1}
ROWS = [Comparison(f"row {error}", "group", 100, 100 + error) for error in (0, 1, -2, 3, 4, -5, 6, 7, 8, 30)]


def refused(arguments, capsys):
    """The sentence that a call of the command is refused with."""
    assert command.main([str(argument) for argument in arguments]) == command.BAD_CALL
    return capsys.readouterr().err


# The product against the facts


def test_parameters_equal_those_of_the_real_modules():
    figures = params.run(OWN_FOLDER / "params.json")
    assert figures["exact"] == figures["n"] == 42


def test_saved_activations_agree_with_autograd():
    # 2026-11-29: 191 of 191 rows within 2 %; median error 0.02 %, largest 1.62 %.
    figures = activations.run(OWN_FOLDER / "activations.json")
    assert figures["n"] == 191
    assert figures["within_2_percent"] >= 0.95
    assert figures["within_5_percent"] == 1


# 2026-11-29: 58 of 58 and 20 of 20 rows within 5 %; median errors 0.005 % and 0.009 %, largest 1.65 % and 2.45 %.
@pytest.mark.parametrize(("name", "count"), [("peaks.json", 58), ("peaks_fsdp.json", 20)])
def test_peaks_agree_with_a_whole_step(name, count):
    figures = peaks.run(OWN_FOLDER / name)
    assert figures["n"] == count
    assert figures["within_5_percent"] >= 0.9
    assert figures["median_error"] <= 0.005


@pytest.mark.parametrize("path", own_files("activations") + own_files("peaks"), ids=lambda path: path.stem)
def test_the_product_refuses_no_row(path):
    kind = importlib.import_module(f"tests.validation.{path.stem.split('_')[0]}")
    assert [row.refusal for row in kind.comparisons(path) if row.refusal] == []


def test_published_measurements_are_met_where_pytorch_can_count():
    # 2026-11-29, 515 countable rows: known 1.0 % median, 4.4 % p90 of 73; by source 4.5 % and 10.1 %, left out 4.6 %;
    # false fits 9.1 %, false misfits 1.5 %, tight 3.0 %; band 91.5 %; 92.7 % of the A rows predicted.
    figures = measured.run(OWN_FOLDER / "measured.json", rows="countable")
    assert figures["n"] == 515
    assert figures["a_grade_predicted"] >= 0.90
    assert figures["known_median_error"] <= 0.05
    assert figures["known_p90_error"] <= 0.12
    assert figures["macro_median_error"] <= 0.05
    assert figures["macro_p90_error"] <= 0.20
    assert figures["loso_macro_median_error"] <= 0.10
    assert figures["false_fit_rate"] <= 0.10
    assert figures["false_misfit_rate"] <= 0.05
    assert figures["tight_rate"] <= 0.15
    assert 0.85 <= figures["band_coverage"] <= 0.95


def test_rows_of_clusters_are_answered_or_refused_with_a_reason():
    answers = measured.predictions(OWN_FOLDER / "measured.json", "cluster")
    assert len(answers.rows) == len(answers.answered) + len(answers.refused) == 312
    assert all(why for _, why in answers.refused)


def test_public_reports_get_the_verdict_and_the_term_that_they_had():
    # 2026-11-29, 17 of 39 countable reports of high confidence in reach: verdict 15 of 17, dominating term 13 of 13.
    figures = reports.run(OWN_FOLDER / "reports.yaml", rows="countable")
    assert figures["in_reach"] >= 17
    assert figures["verdict_class_accuracy"] >= 0.85
    assert figures["dominating_accuracy"] >= 0.85
    assert figures["decoded_rate"] == 1


@pytest.mark.parametrize("path", own_files("reports"), ids=lambda path: path.stem)
def test_every_missed_report_of_high_confidence_says_why_and_no_other(path):
    missed = {
        found.report["source"]
        for found in reports.judged(path)
        if reports.missed(found) and found.report["confidence"] == reports.HIGH
    }
    assert set(notes("reports")) == missed


# A failed allocation


def decode(size, **arguments):
    """The likeliest tensor of a failed allocation of so many GiB."""
    case = resolve(CaseArguments(**arguments), allow_paths=False)
    return next(iter(decode_allocation(case, gib(size))), None)


def test_a_failed_size_is_one_copy_of_the_logits():
    # simplescaling/s1#106: 9.37 GiB asked for in the loss.
    found = decode(9.37, model="qwen2.5-32b", hardware="8 H200", sequence_length=32_768, framework="fsdp1")
    assert (found.tensor.name, found.width, found.exact) == ("loss.logits", 2, True)
    assert found.tokens == pytest.approx(33_100, rel=0.001)


def test_a_failed_size_tells_that_the_batch_holds_more_tokens():
    # modelscope/ms-swift#6966: 49 GiB where 32k tokens would take 18.5.
    found = decode(49, model="qwen3-30b-a3b", hardware="64 A100-80GB", sequence_length=32_768, framework="deepspeed")
    assert (found.tensor.name, found.width, found.exact) == ("loss.logits", 4, False)
    assert found.tokens == pytest.approx(86_600, rel=0.001)


def test_a_failed_size_is_a_ranks_experts():
    # modelscope/ms-swift#9403: 26.44 GiB on a rank of EP8 x PP2.
    degrees = {"tensor_parallel": 4, "pipeline_parallel": 2, "expert_parallel": 8}
    found = decode(26.44, model="qwen3-235b-a22b", hardware="32 A100-80GB", framework="megatron", **degrees)
    assert (found.tensor.name, found.width, found.exact) == ("weights.experts", 2, True)


def test_a_size_that_is_no_tensor_of_the_job_has_no_candidate():
    assert decode(0.001, model="llama-3-8b", hardware="1 H100", sequence_length=4096) is None


# The page


def test_each_compared_row_counts_for_one_framework():
    path = OWN_FOLDER / "measured.json"
    lines = measured._framework_table(path).splitlines()[2:]
    assert {line.split(" | ")[0].strip("| ") for line in lines} <= set(get_args(Framework))
    assert sum(int(line.split(" | ")[1]) for line in lines) == len(measured.comparisons(path))


def test_the_page_on_accuracy_is_up_to_date():
    assert accuracy.PAGE.read_text(encoding="utf-8") == command.own_page(), "run make validate"


@pytest.mark.parametrize("kind", [activations, measured, peaks], ids=["activations", "measured", "peaks"])
def test_every_note_on_an_error_still_has_one(kind):
    name = kind.__name__.rsplit(".", 1)[-1]
    rows = [row for path in own_files(name) for row in kind.comparisons(path) if accuracy.noticeable(row)]
    stale = [pattern for pattern in notes(name) if not any(accuracy.fits(row.name, pattern) for row in rows)]
    assert stale == [], "take them out of notes.yaml"


# The figures


def test_a_share_within_counts_its_own_edge():
    assert comparison.within([Comparison("a", "g", 64, 65), Comparison("b", "g", 64, 66)], 1 / 64) == 0.5


def test_percentiles_are_rows_that_exist():
    assert [comparison.error_at(ROWS, share) for share in (0.1, 0.9, 1)] == pytest.approx([0, 0.08, 0.3])


def test_bias_keeps_the_sign_and_the_median_does_not():
    assert comparison.bias(ROWS) == pytest.approx(0.052)
    assert comparison.median_error(ROWS) == pytest.approx(0.045)


def test_a_refused_row_is_wholly_wrong_and_says_why():
    def refuse():
        raise AdvisorError("invalid_value", "too many", pointer="/layers")

    row = comparison.compare("row", "group", 100, refuse)
    assert (row.error, row.refusal) == (-1, "invalid_value at /layers: too many")


# The command


def test_figures_come_last_as_one_json_line(capsys):
    assert command.main(["peaks", str(OWN_FOLDER / "peaks_fsdp.json")]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(figures) == {"n", "within_5_percent", "median_error"}


def test_rows_reach_a_kind_that_knows_them(monkeypatch, tmp_path, capsys):
    kind = SimpleNamespace(run=lambda path, rows=None: {"path": path.name, "rows": rows})
    monkeypatch.setattr(command, "kinds", lambda: {"measured": kind})
    assert command.main(["measured", str(tmp_path), "--rows", "cluster"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": tmp_path.name, "rows": "cluster"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["peak", "facts.json"], "accepted: all, activations"),
        (["peaks"], "needs the file"),
        (["peaks", OWN_FOLDER], "not a file that can be read: Is a directory"),
        (["peaks", OWN_FOLDER / "params.json"], "has no 'configs' and no 'cases'"),
        (["peaks", OWN_FOLDER / "peaks.json", "--rows", "cluster"], "leave --rows out"),
        (["measured", OWN_FOLDER / "peaks.json"], "holds no list of rows"),
        (["reports", OWN_FOLDER / "measured.json"], "has no 'confidence'"),
        (["all", OWN_FOLDER / "peaks.json"], "leave FILE"),
        (["all", "--rows", "cluster"], "leave FILE and --rows out"),
    ],
)
def test_a_call_that_is_not_understood_gets_one_sentence(arguments, said, capsys):
    sentence = refused(arguments, capsys)
    assert said in sentence
    assert len(sentence.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "is not JSON"),
        ("[1]", "holds no JSON object"),
        ('{"configs": {}, "cases": {}}', "has no 'configs'"),
        (
            '{"configs": {"a": {}}, "cases": {"row": {"config": "a", "options": {"seq": 1}}}}',
            "row has no 'saved_total'",
        ),
        ('{"configs": {"a": {}}, "cases": {"row": {"config": "b", "options": {}}}}', "configs has no 'b'"),
    ],
)
def test_a_file_of_another_shape_gets_one_sentence(text, said, tmp_path, capsys):
    path = tmp_path / "facts.json"
    path.write_text(text, encoding="utf-8")
    assert said in refused(["activations", path], capsys)


# Rows of PyTorch → cases


@pytest.mark.parametrize(
    ("change", "said"),
    [({"zero": 3}, "'zero'"), ({"attn": "ring"}, "attn='ring'"), ({"lora_r": 8, "lora_targets": "mlp"}, "'mlp'")],
)
def test_an_option_of_a_row_is_never_ignored(change, said):
    with pytest.raises(BadCallError, match=said):
        case_of({**ROW, **change}, TINY, framework="single", hardware="1 H100-80GB")


def test_a_known_option_is_one_that_a_row_has():
    files = own_files("activations") + own_files("peaks")
    rows = [case for path in files for case in json.loads(path.read_text(encoding="utf-8"))["cases"].values()]
    assert {name for row in rows for name in row["options"]} | {"layers"} == OPTIONS


def test_a_frozen_lower_half_still_passes_gradients_to_learned_positions():
    shapes = {"n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 256, "n_positions": 128}
    case = case_of({**ROW, "freeze": "bottom"}, {"model_type": "gpt2", **shapes}, hardware="1 H100-80GB")
    assert case.training.trainable == "top:2,positions"


# The recount


@pytest.mark.parametrize("model", ["gemma-3-4b", "deepseek-v2-lite", "gpt2-xl"])
def test_layers_counted_one_by_one_sum_to_the_layers_together(model):
    options = {**ROW, "attn": "eager"}
    config = recount.language_model(model)
    each = recount.ours_by_layer(config, options, 7)
    assert sum(each) == pytest.approx(recount.ours(recount.shortened(config, 7), options)[0], abs=7)


def test_a_recount_without_pytorch_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tests.validation.recount.modules", raising=False)
    assert recount.main(["llama-3-8b"]) == recount.BAD_CALL
    assert capsys.readouterr().err == "torch is not installed; run: pip install --group validate-torch\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["llama-3-8c"], "did you mean 'llama-3-8b'"),
        (["llama-3-8b", "--layers", "33"], "accepted: 1 to 32"),
        (["llama-3-8b", "--sequence", "0"], "1 or more tokens"),
    ],
)
def test_a_recount_that_is_not_understood_gets_one_sentence(arguments, said, capsys):
    assert recount.main(arguments) == recount.BAD_CALL
    assert said in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "llama3_8b|attn=sdpa,mbs=1,seq=2048",
        "qwen3_30b_a3b|attn=sdpa,mbs=1,seq=2048",
        "gemma2_9b|attn=eager,layers=4,mbs=1,seq=2048",
    ],
)
def test_pytorch_counts_again_what_the_file_says(name):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    modules = importlib.import_module("tests.validation.recount.modules")
    facts = json.loads((OWN_FOLDER / "activations.json").read_text(encoding="utf-8"))
    row = facts["cases"][name]
    options = row["options"]
    saved = modules.count_saved(facts["configs"][row["config"]], sequence=options["seq"], attention=options["attn"])
    # Without a GPU, the experts' routing indices take 36 bytes a token less; the other two agree to the byte.
    assert sum(saved.by_layer) + saved.outside == pytest.approx(row["saved_total"], rel=2e-4)
