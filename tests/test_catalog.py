"""The catalog: devices, optimizers, precision recipes, frameworks and the sources that they all cite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from advisor import units
from advisor.catalog import entries, recipes
from advisor.catalog.devices import Hardware, device_aliases, find_device, parse_hardware
from advisor.catalog.entries import KINDS, catalog_version, list_entries
from advisor.catalog.frameworks import find_framework
from advisor.catalog.optimizers import find_optimizer
from advisor.catalog.reader import catalog_folder, entry_ids, normalised, read_catalog_file
from advisor.catalog.recipes import find_recipe, precisions_of
from advisor.catalog.sources import source, source_keys
from advisor.errors import AdvisorError
from advisor.types.arguments import Framework
from advisor.types.case import Layout

DEVICES = entry_ids("devices")
FRAMEWORKS = get_args(Framework)
OPTIMIZERS = tuple(read_catalog_file("optimizers.yaml"))
RECIPES = [(framework, precision) for framework in FRAMEWORKS for precision in precisions_of(framework)]


def error_of(call, *arguments):
    with pytest.raises(AdvisorError) as caught:
        call(*arguments)
    return caught.value


# Devices


@pytest.mark.parametrize("device_id", DEVICES)
def test_a_device_reports_a_little_less_memory_than_its_nominal_size(device_id):
    device = find_device(device_id)
    assert 0.9 <= device.driver_bytes / device.nominal_bytes <= 1


@pytest.mark.parametrize("device_id", DEVICES)
def test_a_device_has_plausible_rates(device_id):
    device = find_device(device_id)
    assert 10**11 < device.memory_bytes_per_s < 10**13
    assert 5 * 10**13 < device.matmul_flops_per_s <= device.bf16_flops_per_s < 10**16
    assert device.host_link_bytes_per_s > 10**10
    assert device.context_bytes < units.GIB
    assert (device.scale_up_bytes_per_s > 0) or (device.scale_up_domain == 1)


@pytest.mark.parametrize("device_id", DEVICES)
def test_every_value_of_a_device_says_where_it_comes_from(device_id):
    entry = read_catalog_file(f"devices/{device_id}.yaml")
    values = {key: value for key, value in entry.items() if isinstance(value, dict)}
    assert all({"value", "unit", "source", "checked_on"} <= set(value) for value in values.values())
    assert entry["context"]["evidence"] in ("derived", "code", "fitted")


@pytest.mark.parametrize("device_id", DEVICES)
def test_a_memory_figure_that_nobody_published_says_how_it_was_derived(device_id):
    figure = read_catalog_file(f"devices/{device_id}.yaml")["driver_memory"]
    assert figure["sourced"] or figure["note"]


def test_no_two_devices_share_a_name():
    owners = {}
    for device_id, aliases in device_aliases().items():
        for name in (device_id, *aliases):
            assert owners.setdefault(normalised(name), device_id) == device_id


def test_the_aliases_read_line_by_line_are_those_of_the_whole_files():
    whole = {name: tuple(map(str, read_catalog_file(f"devices/{name}.yaml")["aliases"])) for name in DEVICES}
    assert device_aliases() == whole


@pytest.mark.parametrize("name", ["h100-80gb", "H100", "h100 80GB", "H100-SXM-80GB", "h100_sxm_80gb"])
def test_a_device_is_found_by_any_of_its_names(name):
    assert find_device(name).name == "h100-80gb"


def test_h800_has_the_memory_of_an_h100_and_less_than_half_its_link():
    assert find_device("H800").driver_bytes == find_device("H100").driver_bytes
    assert find_device("H800").scale_up_bytes_per_s == units.gb(200)


def test_a_rack_scale_device_reaches_beyond_its_node():
    assert find_device("GB200").scale_up_domain > find_device("GB200").gpus_per_node


def test_an_unknown_device_is_refused_with_the_nearest_names():
    error = error_of(find_device, "H10")
    assert error.code == "unknown_device"
    assert "H100" in error.suggestions


@pytest.mark.parametrize(
    ("text", "name", "nodes", "gpus_per_node"),
    [
        ("H100", "h100-80gb", 1, 1),
        ("1 RTX-4090", "rtx-4090", 1, 1),
        ("4090", "rtx-4090", 1, 1),
        ("8x4090", "rtx-4090", 1, 8),
        ("8 GPUs H100", "h100-80gb", 1, 8),
        ("4x8 H100-80GB", "h100-80gb", 4, 8),
        ("  4 x 8   h100 ", "h100-80gb", 4, 8),
        ("4\u00d78 H100", "h100-80gb", 4, 8),
        ("2 nodes x 8 A100", "a100-80gb", 2, 8),
        ("2 nodes of 4 GPUs A100-40GB", "a100-40gb", 2, 4),
        ("2 nodes H100", "h100-80gb", 2, 8),
        ("64 H200", "h200-141gb", 8, 8),
        ("12 H100", "h100-80gb", 2, 6),
        ("20 H100", "h100-80gb", 4, 5),
        ("72 GB200", "gb200-186gb", 18, 4),
        ("1x72 GB200", "gb200-186gb", 1, 72),
        ("1000000 H100", "h100-80gb", 125_000, 8),
    ],
)
def test_a_hardware_line_is_read(text, name, nodes, gpus_per_node):
    assert parse_hardware(text) == Hardware(find_device(name), nodes, gpus_per_node)


@pytest.mark.parametrize(
    "text",
    ["", "64", "4x8", "-1 H100", "1.5 H100", "0 H100", "0x8 H100", "1000001 H100", "125001x8 H100", f"{'9' * 30} H100"],
)
def test_a_line_that_makes_no_cluster_is_refused_with_what_is_accepted(text):
    error = error_of(parse_hardware, text)
    assert error.code == "unreadable_hardware"
    assert "4x8 H100-80GB" in error.detail
    assert error.pointer == "/hardware"


def test_gpus_that_do_not_spread_evenly_are_refused_with_counts_that_do():
    assert error_of(parse_hardware, "13 H100").suggestions == ("8 h100-80gb", "16 h100-80gb")


def test_more_gpus_than_a_node_holds_are_offered_as_several_nodes():
    assert error_of(parse_hardware, "1x64 H100").suggestions == ("64 h100-80gb",)


def test_a_very_long_line_is_shortened_in_the_error():
    assert len(error_of(parse_hardware, "x" * 10_000).detail) < 200


# Optimizers


@pytest.mark.parametrize(
    ("name", "matrix", "other"),
    [
        ("adam", 8, 8),
        ("paged_adamw_8bit", 2 + 2 * 4 / 256, 2 + 2 * 4 / 256),
        ("adamw_4bit", 1 + 2 * 4 / 128, 1 + 2 * 4 / 128),
        ("dist_muon", 4, 8),
        ("sgd", 0, 0),
        ("lion", 4, 4),
        ("fp8_adam", 2, 2),
    ],
)
def test_an_optimizer_keeps_these_bytes_a_parameter(name, matrix, other):
    states = find_optimizer(name)
    assert (states.matrix_bytes, states.other_bytes) == (matrix, other)


def test_the_three_ways_of_torch_adamw_differ_only_in_the_scratch_of_the_step():
    foreach, fused, loop = map(find_optimizer, ("adamw_torch", "adamw_torch_fused", "adamw_for_loop"))
    assert foreach.matrix_bytes == fused.matrix_bytes == loop.matrix_bytes
    assert (foreach.step_matrix_bytes, fused.step_matrix_bytes, loop.step_matrix_bytes) == (4, 0, 0)
    assert (foreach.largest_tensor_bytes, fused.largest_tensor_bytes, loop.largest_tensor_bytes) == (0, 0, 8)
    assert not loop.matrices_alone
    assert find_optimizer("muon").matrices_alone


def test_no_two_optimizers_share_a_name():
    names = [name for key, entry in read_catalog_file("optimizers.yaml").items() for name in (key, *entry["aliases"])]
    assert len({normalised(name) for name in names}) == len(names)


def test_quantised_moments_do_not_follow_the_precision():
    assert not any(find_optimizer(name).follows_precision for name in OPTIMIZERS if "bit" in name or "fp8" in name)


def test_an_unknown_optimizer_is_refused_with_the_nearest_names():
    error = error_of(find_optimizer, "adamv")
    assert (error.code, error.pointer) == ("unknown_optimizer", "/optimizer")
    assert "adamw" in error.suggestions


# Recipes


def states_bytes(recipe):
    """Bytes a parameter with AdamW and nothing divided."""
    gradients = recipe.gradient_bytes + recipe.kept_gradient_bytes
    return recipe.weight_bytes + gradients + recipe.master_bytes + 2 * recipe.moment_bytes


@pytest.mark.parametrize(
    ("framework", "precision", "gradient_dtype", "total", "copied"),
    [
        ("megatron", "bf16_mixed", None, 18, 0),
        ("megatron", "fp16_mixed", None, 16, 4),
        ("megatron", "fp32", None, 16, 0),
        ("deepspeed", "bf16_mixed", None, 16, 6),
        ("deepspeed", "bf16_mixed", "fp32", 20, 0),
        ("deepspeed", "fp16_mixed", None, 16, 6),
        ("fsdp2", "bf16_mixed", None, 16, 0),
        ("torchtitan", "bf16_mixed", "bf16", 16, 0),
        ("single", "bf16_mixed", None, 16, 0),
        ("single", "bf16", None, 8, 0),
    ],
)
def test_a_recipe_adds_up_to_the_published_bytes_a_parameter(framework, precision, gradient_dtype, total, copied):
    recipe = find_recipe(framework, precision, gradient_dtype)
    assert (states_bytes(recipe), recipe.step_gradient_bytes) == (total, copied)


@pytest.mark.parametrize(("framework", "precision"), RECIPES)
def test_a_recipe_is_whole_and_cites_a_source(framework, precision):
    recipe = find_recipe(framework, precision)
    assert source(recipe.source)
    assert recipe.weights_divided_from >= recipe.gradients_divided_from >= recipe.optimizer_divided_from


@pytest.mark.parametrize(("framework", "precision"), RECIPES)
def test_each_recipe_accepts_its_own_gradients_by_name(framework, precision):
    accepted = read_catalog_file("recipes.yaml")[framework]["precisions"][precision]["gradient_dtypes"]
    assert any(find_recipe(framework, precision, dtype) == find_recipe(framework, precision) for dtype in accepted)


def test_megatron_never_divides_weights_under_the_distributed_optimizer():
    assert find_recipe("megatron", "bf16_mixed").weights_divided_from > Layout.model_fields["zero_stage"].metadata[1].le


def test_autocast_holds_copies_of_the_weights_and_fsdp_does_not():
    assert find_recipe("ddp", "bf16_mixed").cast_copy_bytes == 2
    assert find_recipe("fsdp2", "bf16_mixed").cast_copy_bytes == 0


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("megatron", "bf16"), "unknown_precision", "bf16_mixed, fp16_mixed, fp32"),
        (("ddp", "bf16_mixed", "bf16"), "unknown_gradient_dtype", "fp32"),
        (("megatorn", "bf16_mixed"), "unknown_framework", "megatron"),
    ],
)
def test_a_recipe_that_does_not_exist_is_refused_with_what_the_framework_accepts(arguments, code, named):
    error = error_of(find_recipe, *arguments)
    assert error.code == code
    assert named in error.detail


# Frameworks


def test_every_framework_of_the_arguments_has_facts_and_recipes():
    assert tuple(read_catalog_file("frameworks.yaml")) == FRAMEWORKS
    assert set(read_catalog_file("recipes.yaml")) == set(FRAMEWORKS)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_what_a_framework_takes_by_default_exists(name):
    facts = find_framework(name)
    assert find_recipe(name, facts.precision)
    assert find_optimizer(facts.optimizer)
    assert set(facts.dimensions) <= set(Layout.model_fields)


def test_a_framework_is_found_by_its_alias():
    assert find_framework("FSDP").name == "fsdp1"
    assert find_framework("Megatron-LM").name == "megatron"


def test_an_unknown_framework_is_refused_with_the_nearest_names():
    assert "megatron" in error_of(find_framework, "megatorn").suggestions


def test_only_deepspeed_reaches_nvme():
    assert [name for name in FRAMEWORKS if "nvme" in find_framework(name).offload_optimizer] == ["deepspeed"]


# Sources


def cited_sources():
    """Every source key that the catalog, the rules and the formulas cite."""
    root = catalog_folder().parent
    data = [path for path in catalog_folder().rglob("*.yaml") if path.name != "sources.yaml"]
    data += sorted((root.parent / "rules").rglob("*.yaml"))
    code = [path for room in ("terms", "timing", "explaining") for path in (root / room).rglob("*.py")]
    found = {
        path: re.findall(r"(?:\bsource|\bkey): \"?([a-z0-9-]+)", path.read_text(encoding="utf-8")) for path in data
    }
    found |= {path: re.findall(r"source=\"([a-z0-9-]+)", path.read_text(encoding="utf-8")) for path in code}
    return {(key, Path(path).name) for path, keys in found.items() for key in keys}


def test_every_source_that_is_cited_exists():
    assert sorted(pair for pair in cited_sources() if pair[0] not in source_keys()) == []


def test_only_the_literature_may_wait_for_its_first_citation():
    cited = {key for key, _ in cited_sources()}
    unused = [key for key in source_keys() if key not in cited and source(key).kind not in ("paper", "article")]
    assert unused == []


@pytest.mark.parametrize("key", source_keys())
def test_a_source_has_a_public_address_unless_it_has_no_document(key):
    found = source(key)
    assert found.url.startswith("https://") or found.kind in ("recalled", "article")


def test_an_unknown_source_is_refused_with_the_nearest_keys():
    assert "zero-2020" in error_of(source, "zero-2021").suggestions


# Entries


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "models"])
def test_each_kind_lists_its_entries(kind):
    listed = list_entries(kind)
    assert listed
    assert all(entry.kind == kind and entry.title and entry.sources for entry in listed if kind != "sources")


def test_entries_without_a_kind_are_those_of_all_kinds():
    assert len(list_entries()) == sum(len(list_entries(kind)) for kind in KINDS)


def test_a_query_finds_entries_by_alias():
    assert [entry.id for entry in list_entries("devices", "h100_sxm5")] == ["h100-80gb"]
    assert list_entries("devices", " ") == list_entries("devices")
    assert list_entries(query="(") == list_entries(query="\N{ROCKET}") == ()
    assert "adamw_8bit" in [entry.id for entry in list_entries("optimizers", "bnb")]


def test_an_entry_is_plain_json():
    assert '"value":80' in list_entries("devices", "h100-80gb")[0].model_dump_json()


def test_an_unknown_kind_is_refused_with_the_kinds():
    error = error_of(list_entries, "device")
    assert error.suggestions[0] == "devices"


def test_the_catalog_version_changes_with_any_file(tmp_path, monkeypatch):
    (tmp_path / "sources.yaml").write_text("a: 1\n", encoding="utf-8")
    monkeypatch.setattr(entries, "catalog_folder", lambda: tmp_path)
    before = catalog_version.__wrapped__()
    (tmp_path / "sources.yaml").write_text("a: 2\n", encoding="utf-8")
    assert catalog_version.__wrapped__() != before
    assert re.fullmatch(r"[0-9a-f]{12}", before)


def test_precisions_are_listed_most_usual_first():
    assert {recipes.precisions_of(framework)[0] for framework in FRAMEWORKS} == {"bf16_mixed"}
