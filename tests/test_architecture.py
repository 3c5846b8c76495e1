"""Model descriptions: what they are read from, what is counted, what is refused."""

import json
from pathlib import Path

import pytest

from advisor.architecture import (
    count_parameters,
    layer_parameters,
    linear_shapes,
    matrix_elements,
    outer_parameters,
    presets,
    resolve_model,
)
from advisor.catalog.reader import entry_ids
from advisor.errors import AdvisorError
from tests.validation.__main__ import BAD_CALL, main
from tests.validation.params import compare, run

DATA = Path(__file__).parent / "data" / "params.json"
FACTS = json.loads(DATA.read_text(encoding="utf-8"))
LLAMA_3_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
ROUTED = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512}
SHAPES = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256}


def resolve(**given):
    arguments = {"model": None, "hf_config": None, "architecture": None, "allow_paths": False, **given}
    return resolve_model(**arguments)


def refused(**given):
    with pytest.raises(AdvisorError) as caught:
        resolve(**given)
    return caught.value


# Counts


@pytest.mark.parametrize("name", FACTS["models"])
def test_every_figure_of_a_config_equals_the_real_modules(name):
    assert compare(FACTS["models"][name])[1] == []


def test_a_wrong_figure_is_reported_by_its_name(tmp_path):
    facts = {**FACTS["models"]["gpt2"], "bias": 1}
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"models": {"gpt2": facts}}))
    assert run(path) == {"n": 1, "exact": 0, "differing": {"gpt2": ["bias"]}}


def test_every_preset_has_been_counted():
    assert set(FACTS["presets"]) == set(entry_ids("models"))


@pytest.mark.parametrize("identity", entry_ids("models"))
def test_a_preset_is_exact_and_equals_real_modules_and_its_publisher(identity):
    model = resolve(model=identity)
    counted = count_parameters(model)
    assert model.exact
    assert counted.total == FACTS["presets"][identity]
    published = presets.preset_entry(identity).get("published_parameters", counted.total)
    assert published in (counted.total, counted.total + counted.buffers)


@pytest.mark.parametrize("identity", entry_ids("models"))
def test_shards_components_and_layers_each_sum_to_the_total(identity):
    model = resolve(model=identity)
    counted, outer = count_parameters(model), outer_parameters(model)
    layers = [layer_parameters(model, index).total for index in range(model.layers)]
    around = outer.embedding + outer.positions + outer.embedding_norm + outer.final_norm + outer.head + outer.vision
    components = ("embedding", "attention", "ffn", "experts", "shared_experts", "router", "norms", "head", "vision")
    assert tuple(layers) == counted.per_layer
    assert sum(layers) + around == counted.total
    assert sum(getattr(counted, name) for name in components) == counted.total


def test_router_corrections_are_what_deepseek_v3_publishes_beyond_its_parameters():
    counted = count_parameters(resolve(model="deepseek-v3"))
    assert counted.total + counted.buffers == 671_026_419_200


def test_the_prediction_module_accounts_for_the_rest_of_a_published_checkpoint():
    model = resolve(model="glm-4.5-air")
    counted, outer = count_parameters(model), outer_parameters(model)
    its_correction, its_copies = model.experts.count, outer.embedding + outer.head
    assert counted.total + counted.buffers + counted.mtp + its_correction + its_copies == 110_468_824_832


def test_one_token_reads_only_the_experts_it_visits():
    counted = count_parameters(resolve(model="mixtral-8x7b"))
    assert counted.active == counted.total - counted.experts * 6 // 8


def test_tensor_parallelism_divides_matrices_and_column_biases_only():
    shares = layer_parameters(resolve(model="gpt2"), 0)
    assert shares.attention_sharded == 4 * 768**2 + 3 * 768
    assert shares.ffn_sharded == 8 * 768**2 + 4 * 768
    assert shares.replicated == 2 * 2 * 768 + 768 + 768


def test_latent_down_projections_and_routers_are_replicated():
    model = resolve(model="deepseek-v3")
    shares = layer_parameters(model, 10)
    down = 7168 * (1536 + 512 + 64)
    assert shares.replicated == down + 256 * 7168 + 2 * 7168 + 1536 + 512
    assert shares.ffn_sharded == 0
    assert layer_parameters(model, 0).experts == 0


def test_expert_biases_are_a_part_of_the_experts():
    shares = layer_parameters(resolve(model="gpt-oss-20b"), 0)
    assert shares.expert_biases == 32 * (2 * 2880 + 2880)
    assert shares.experts == 32 * 3 * 2880**2 + shares.expert_biases


def test_matrices_are_all_of_a_layer_but_its_vectors():
    model = resolve(model="qwen2.5-7b")
    vectors = 2 * 3584 + (28 + 2 * 4) * 128
    assert matrix_elements(model, 0) == layer_parameters(model, 0).total - vectors


@pytest.mark.parametrize(
    ("targets", "adapters"),
    [({"q_proj", "k_proj", "v_proj", "o_proj"}, 65_536_000), (None, 207_093_760)],
)
def test_rank_16_adapters_of_llama_3_70b_equal_those_of_peft(targets, adapters):
    model = resolve(model="llama-3-70b")
    shapes = [shape for index in range(model.layers) for shape in linear_shapes(model, index)]
    chosen = [shape for shape in shapes if targets is None or shape.name in targets]
    assert sum(16 * (shape.in_features + shape.out_features) * shape.copies for shape in chosen) == adapters


@pytest.mark.parametrize(
    ("identity", "names"),
    [
        ("phi-4", {"qkv_proj", "o_proj", "gate_up_proj", "down_proj"}),
        ("gpt2", {"c_attn", "c_proj", "c_fc"}),
        ("opt-6.7b", {"q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"}),
        (
            "deepseek-v2-lite",
            {"q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
        ),
    ],
)
def test_matrices_carry_the_names_that_lora_targets_use(identity, names):
    model = resolve(model=identity)
    assert {shape.name for shape in linear_shapes(model, model.layers - 1)} == names


def test_routed_experts_are_copies_of_one_shape():
    shapes = linear_shapes(resolve(model="qwen3-30b-a3b"), 0)
    assert {shape.copies for shape in shapes if shape.part == "experts"} == {128}
    assert "router" not in {shape.part for shape in shapes}


# What a model is read from


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("Llama-3-70B", "llama-3-70b"),
        ("llama3_70b", "llama-3-70b"),
        ("meta-llama/Meta-Llama-3-70B-Instruct", "llama-3-70b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("MiniMaxAI/MiniMax-M3", "minimax-m3"),
        ("mistral-7b", "mistral-7b-v0.1"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-r1"),
    ],
)
def test_a_preset_answers_to_its_id_its_aliases_and_its_publishers_name(name, identity):
    assert resolve(model=name).name == identity


def test_a_preset_called_by_its_id_opens_no_other_file(monkeypatch):
    opened = []
    presets.find_preset.cache_clear()
    presets.read_preset.cache_clear()
    read = presets.read_catalog_file
    monkeypatch.setattr(presets, "read_catalog_file", lambda name: opened.append(name) or read(name))
    monkeypatch.setattr(presets, "catalog_folder", lambda: pytest.fail("looked into the files"))
    resolve(model="llama-3.1-8b")
    assert opened == ["models/llama-3.1-8b.yaml"]


def test_no_two_presets_answer_to_one_name():
    entries = {identity: presets.preset_entry(identity) for identity in entry_ids("models")}
    names = [presets.normalised(n) for i, entry in entries.items() for n in {i, *entry.get("aliases", ())}]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_a_preset_names_its_sources_and_when_they_were_read():
    for identity in entry_ids("models"):
        entry = presets.preset_entry(identity)
        assert all(source["url"].startswith("https://") and source["title"] for source in entry["sources"])
        assert str(entry["checked_on"]) >= "2026-01-01"


def test_hyper_parameters_give_the_model_that_the_config_gives():
    by_shapes = resolve(architecture=SHAPES)
    assert by_shapes.exact
    assert count_parameters(by_shapes).per_layer == count_parameters(resolve(hf_config=LLAMA_3_8B)).per_layer


def test_hyper_parameters_default_to_plain_attention():
    attention = resolve(architecture={"layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 99}).attention
    assert (attention.kv_heads, attention.head_dim, attention.qk_norm, attention.qkv_bias) == (4, 16, "none", False)


def test_hyper_parameters_may_be_written_as_people_write_them():
    assert resolve(architecture={**SHAPES, "hidden": "4k", "max_positions": "128k"}).max_positions == 131072


def test_hyper_parameters_describe_experts_and_latent_attention():
    model = resolve(
        architecture={
            "layers": 61, "hidden": 7168, "heads": 128, "ffn": 18432, "vocab": 129280, "experts": 256, "top_k": 8,
            "expert_ffn": 2048, "shared_experts": 1, "first_dense_layers": 3, "q_lora_rank": 1536,
            "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        }
    )  # fmt: skip
    assert count_parameters(model).total == count_parameters(resolve(model="deepseek-v3")).total


def test_a_dense_width_that_no_layer_uses_is_said():
    routed = {**SHAPES, "experts": 8, "top_k": 2, "expert_ffn": 14336}
    assert "ffn is not used" in resolve(architecture=routed).notes[0]


@pytest.mark.parametrize("size", ["0.5B", "1b", "7B", "13B", "34B", "70B", "180B", "405b", "1.5T"])
def test_a_bare_size_is_met_within_five_percent_and_never_called_exact(size):
    model = resolve(model=size)
    wanted = float(size[:-1]) * {"b": 10**9, "t": 10**12}[size[-1].lower()]
    assert count_parameters(model).total == pytest.approx(wanted, rel=0.05)
    assert not model.exact
    assert "only a size" in model.notes[0]


def test_the_size_of_a_published_model_gives_its_shape():
    assert count_parameters(resolve(model="70B")).total == count_parameters(resolve(model="llama-3-70b")).total


def test_an_unknown_model_type_is_read_as_far_as_it_goes_and_says_so():
    model = resolve(hf_config={**LLAMA_3_8B, "model_type": "llama5"})
    assert count_parameters(model).total == 8_030_261_248
    assert not model.exact
    assert "llama5" in model.notes[0]


@pytest.mark.parametrize(
    "change",
    [
        {"layer_types": ["linear_attention"] * 32},
        {"hidden_act": "squared_relu"},
        {"vision_config": {"hidden_size": 8}},
        {"model_type": "opt", "word_embed_proj_dim": 512},
    ],
)
def test_what_is_not_understood_makes_a_model_inexact(change):
    model = resolve(hf_config={**LLAMA_3_8B, **change})
    assert not model.exact
    assert model.notes


def test_a_language_model_inside_a_wrapper_is_found_and_its_tower_counted():
    model = resolve(model="gemma-3-4b")
    assert (model.model_type, model.layers) == ("gemma3_text", 34)
    assert (model.vision.parameters, model.vision.tokens_per_image) == (419_816_304, 256)


def test_a_wrapper_that_keeps_its_text_fields_at_the_top_is_read_too():
    assert resolve(model="qwen2.5-vl-7b").vision.parameters == 676_550_144


@pytest.mark.parametrize(
    ("identity", "sliding", "window"),
    [
        ("mistral-7b-v0.1", tuple(range(32)), 4096),
        ("mistral-7b-v0.3", (), 0),
        ("qwen2.5-7b", (), 0),
        ("gpt-oss-20b", tuple(range(0, 24, 2)), 128),
        ("gemma-3-1b", tuple(index for index in range(26) if (index + 1) % 6), 512),
    ],
)
def test_the_layers_that_slide_are_those_of_the_family(identity, sliding, window):
    model = resolve(model=identity)
    assert (model.sliding_layers, model.attention.sliding_window) == (sliding, window)


@pytest.mark.parametrize(
    ("change", "routed"),
    [
        ({}, (0, 1, 2, 3)),
        ({"decoder_sparse_step": 2}, (1, 3)),
        ({"mlp_only_layers": [0]}, (1, 2, 3)),
        ({"first_k_dense_replace": 3}, (3,)),
        ({"moe_layer_freq": [0, 1, 0, 1]}, (1, 3)),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "dense"]}, (1, 2)),
        ({"moe_layers": [2]}, (2,)),
    ],
)
def test_the_layers_that_route_follow_whichever_custom_the_config_has(change, routed):
    config = {**LLAMA_3_8B, **ROUTED, "model_type": "qwen3_moe", "num_hidden_layers": 4, **change}
    assert resolve(hf_config=config).moe_layers == routed


def test_minimax_m3_has_dense_layers_first_and_indexers_in_the_rest():
    model = resolve(model="minimax-m3")
    assert model.moe_layers == model.indexed_layers == tuple(range(3, 60))
    assert (model.attention.indexer.heads, model.experts.shared_hidden, model.attention.rotary_share) == (4, 3072, 0.5)
    assert any("428B" in note for note in model.notes)


# Files


def test_a_config_is_read_from_a_file_or_its_folder_where_paths_are_allowed(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA_3_8B))
    for path in (file, tmp_path):
        assert count_parameters(resolve(model=str(path), allow_paths=True)).total == 8_030_261_248


def test_a_path_is_refused_without_looking_where_paths_are_not_allowed(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_8B))
    assert refused(model=str(tmp_path)).code == "path_not_allowed"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("{", "broken_file"),
        ("[]", "broken_file"),
        ('{"hidden_size": NaN}', "broken_file"),
        ("[" * 100_000, "broken_file"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "broken_file"),
        (" " * (2**20 + 1), "unreadable_file"),
        (None, "unreadable_file"),
    ],
)
def test_an_unusable_file_gets_one_error(tmp_path, content, code):
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content)
    assert refused(model=str(file), allow_paths=True).code == code


# What is refused


def test_exactly_one_description_is_asked_for():
    assert refused().code == "missing_argument"
    both = refused(model="llama-3-8b", hf_config=LLAMA_3_8B)
    assert (both.code, both.pointer) == ("conflicting_arguments", "/hf_config")


def test_a_misspelt_preset_gets_the_nearest_names():
    error = refused(model="lama-3-70b")
    assert (error.code, error.pointer, error.suggestions[0]) == ("unknown_model", "/model", "llama-3-70b")


@pytest.mark.parametrize("size", ["0B", "999999T", "1M"])
def test_a_size_beyond_reason_is_refused(size):
    assert refused(model=size).code == "invalid_value"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"hidden_size": 10**30}, "hidden_size"),
        ({"hidden_size": 10**5000}, "hidden_size"),
        ({"hidden_size": [4096]}, "hidden_size"),
        ({"hidden_size": {"a": {}}}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": 4096.5}, "hidden_size"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_key_value_heads": 5}, "num_key_value_heads"),
        ({"num_attention_heads": 33, "num_key_value_heads": 33}, "num_attention_heads"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"hidden_act": 3}, "hidden_act"),
        ({"attention_dropout": float("inf")}, "attention_dropout"),
        ({"attention_dropout": 1.0}, "attention_dropout"),
        ({"text_config": 3}, "text_config"),
        ({"model_type": "gemma3", "vision_config": [1]}, "vision_config"),
        ({"model_type": "gemma3_text", "sliding_window_pattern": 0}, "sliding_window_pattern"),
        ({"model_type": "gemma3_text", "layer_types": ["full_attention"]}, "layer_types"),
        ({"model_type": "qwen3_moe", **ROUTED, "num_experts_per_tok": 9}, "num_experts_per_tok"),
        ({"model_type": "qwen3_moe", **ROUTED, "decoder_sparse_step": 0}, "decoder_sparse_step"),
        ({"model_type": "qwen3_moe", **ROUTED, "mlp_only_layers": [99]}, "mlp_only_layers"),
        ({"model_type": "qwen3_moe", **ROUTED, "mlp_only_layers": ["0"]}, "mlp_only_layers"),
        ({"model_type": "qwen3_moe", **ROUTED, "moe_layer_freq": 2}, "moe_layer_freq"),
    ],
)
def test_a_bad_config_field_gets_one_error_that_points_at_it(change, field):
    error = refused(hf_config={**LLAMA_3_8B, **change})
    assert (error.code, error.pointer) == ("invalid_value", f"/hf_config/{field}")
    assert "accepted: " in error.detail
    assert len(error.detail) < 300


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({}, ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")),
        ({**LLAMA_3_8B, "vocab_size": None}, ("vocab_size",)),
        ({**LLAMA_3_8B, "model_type": "mixtral"}, ("num_experts",)),
        (
            {**LLAMA_3_8B, **ROUTED, "model_type": "deepseek_v3", "kv_lora_rank": 512},
            ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"),
        ),
    ],
)
def test_an_incomplete_config_names_every_missing_field(config, fields):
    error = refused(hf_config=config)
    assert (error.code, error.suggestions) == ("incomplete_config", fields)
    assert all(field in error.detail for field in fields)


@pytest.mark.parametrize("config", [[], "llama", 3])
def test_a_config_that_is_no_object_is_refused(config):
    assert refused(hf_config=config).pointer == "/hf_config"


def test_encoder_decoder_models_are_refused():
    assert refused(hf_config={**LLAMA_3_8B, "is_encoder_decoder": True}).code == "unsupported_model"


def test_a_config_nested_beyond_reason_is_refused_at_once():
    config = innermost = {}
    for _ in range(5000):
        innermost["text_config"] = innermost = {}
    assert refused(hf_config=config).code == "incomplete_config"


def test_shapes_that_multiply_beyond_any_model_are_refused():
    huge = {"num_hidden_layers": 4096, "hidden_size": 10**6, "head_dim": 64, "intermediate_size": 10**7}
    assert "10^15" in refused(hf_config={**LLAMA_3_8B, **huge}).detail


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"kv_head": 8}, "unknown_argument", "/architecture/kv_head"),
        ({"vocab": None}, "incomplete_config", "/architecture"),
        ({"ffn": None}, "incomplete_config", "/architecture"),
        ({"norm": "rms"}, "invalid_value", "/architecture/norm"),
        ({"qk_norm": "heads"}, "invalid_value", "/architecture/qk_norm"),
        ({"activation": "silo"}, "invalid_value", "/architecture/activation"),
        ({"gated": 1}, "invalid_value", "/architecture/gated"),
        ({"hidden": "many"}, "invalid_value", "/architecture/hidden"),
        ({"moe_layers": [1]}, "incomplete_config", "/architecture/moe_layers"),
        ({"experts": 8, "top_k": 2}, "incomplete_config", "/architecture"),
        ({"kv_lora_rank": 512}, "conflicting_arguments", "/architecture/kv_heads"),
    ],
)
def test_a_bad_hyper_parameter_gets_one_error_that_points_at_it(change, code, pointer):
    error = refused(architecture={**SHAPES, **change})
    assert (error.code, error.pointer) == (code, pointer)


def test_a_misspelt_hyper_parameter_gets_the_nearest_name():
    assert refused(architecture={**SHAPES, "kv_head": 8}).suggestions[0] == "kv_heads"


# The validation command


def test_the_validation_command_prints_its_figures_last(capsys):
    assert main(["params", str(DATA)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"n": 42, "exact": 42, "differing": {}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["parms", str(DATA)], "accepted: "),
        (["params", "nowhere.json"], "not a file"),
        (["params", str(DATA), "--rows", "cluster"], "--rows"),
    ],
)
def test_the_validation_command_says_what_it_accepts(arguments, said, capsys):
    assert main(arguments) == BAD_CALL
    assert said in capsys.readouterr().err
