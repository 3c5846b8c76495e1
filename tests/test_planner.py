"""The search against what it must equal: single estimates, whole spaces, exhaustive scans, and its own law."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import advisor
from advisor import timing
from advisor.constraints import legality, rulebook
from advisor.constraints.legality import check, legal_rows
from advisor.constraints.rulebook import law
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from advisor.judge import judge
from advisor.limits import job as largest
from advisor.limits import machine
from advisor.node_memory import most_bytes
from advisor.recommend import recommend
from advisor.search import cost, space
from advisor.search.choose import Rows, pick, search
from advisor.search.room import limit_bytes
from advisor.search.sizes import compare_sizes
from advisor.types import CaseArguments
from tests.spaces import cheapest, columns_of, every_layout, job, layout_of

# --- one layout and many --------------------------------------------------------------------------------------------

MANY = (
    *({"model": "llama-3-8b", "hardware": "2x8 H100-80GB", "framework": name} for name in (
        "megatron", "megatron_fsdp", "deepspeed", "fsdp1", "fsdp2", "torchtitan",
    )),
    *({"model": "qwen3-30b-a3b", "hardware": "2x8 A100-80GB", "framework": name} for name in (
        "megatron", "fsdp2", "deepspeed", "torchtitan",
    )),
    {"model": "llama-3-8b", "hardware": "1x8 A100-40GB", "framework": "fsdp2", "method": "lora"},
    {"model": "gemma-2-9b", "hardware": "2x8 H100-80GB", "framework": "fsdp2", "sequence_length": 8192},
    {"model": "gpt-oss-20b", "hardware": "2x8 H100-80GB", "framework": "megatron", "sequence_length": 16_384},
    {"model": "deepseek-v3", "hardware": "16x8 H800-80GB", "framework": "megatron"},
)  # fmt: skip


def legal_sample(case, count, seed):
    """Legal layouts of all rungs, drawn at random."""
    legal, cores = [], space.cores_of(case, law().ladder)
    for rung in law().ladder.rungs:
        columns = space.with_choices(case, cores, rung.choices)
        columns = columns.take(legal_rows(case, columns))
        drawn = np.random.default_rng(seed).permutation(len(columns))[: -(-count // len(law().ladder.rungs))]
        legal += [columns.take(drawn)] if len(drawn) else []
    return legal


def alone(case, columns):
    """Each row as a case of its own."""
    zeros = np.zeros(len(columns))
    rows = Rows("", len(columns), columns, zeros, zeros, zeros, zeros, zeros)
    return [case.model_copy(update={"layout": pick(case, rows, index).layout}) for index in range(len(columns))]


def differing(case, columns):
    """Rows whose memory is not the single estimate's to the byte, or whose step is not the single one's."""
    judged, seconds = judge(case, columns), timing.step_seconds(case, columns)
    together = zip(judged.peak_bytes, judged.host_bytes, judged.nvme_bytes, judged.most_host_bytes, strict=True)
    for one, figures, second in zip(alone(case, columns), together, seconds, strict=True):
        memory = estimate(one)
        same = figures == (
            memory.peak_bytes, memory.node_bytes("host"), memory.node_bytes("nvme"), most_bytes(memory)
        )  # fmt: skip
        if not same or timing.step_time(one).seconds != pytest.approx(second, rel=1e-9):
            yield one.layout


def judged_otherwise(count):
    """How many layouts were compared, and those that differ."""
    compared, wrong = 0, []
    for place, arguments in enumerate(MANY):
        case = job(**arguments)
        for columns in legal_sample(case, -(-count // len(MANY)), place):
            compared += len(columns)
            wrong += differing(case, columns)
    return compared, wrong


def test_layouts_are_judged_together_as_they_are_alone():
    compared, wrong = judged_otherwise(400)
    assert compared > 250
    assert wrong == []


@pytest.mark.slow
def test_ten_thousand_layouts_are_judged_together_as_they_are_alone():
    compared, wrong = judged_otherwise(20_000)  # some rungs of some frameworks have fewer legal layouts than asked for
    assert compared >= 10_000
    assert wrong == []


def pools_differ(arguments):
    """Layouts whose reserved memory is not the single estimate's."""
    case = job(**arguments)
    for columns in legal_sample(case, 60, 0):
        together = judge(case, columns).reserved_bytes
        wrong = [estimate(one).reserved_bytes != held for one, held in zip(alone(case, columns), together, strict=True)]
        yield from itertools.compress(columns.data_parallel, wrong)


@pytest.mark.parametrize("arguments", [one for one in MANY if one["framework"] not in ("fsdp2", "torchtitan")], ids=str)
def test_reserved_memory_is_judged_together_as_it_is_alone(arguments):
    assert list(pools_differ(arguments)) == []


def test_reserved_memory_without_data_parallel_is_judged_together_as_it_is_alone():
    assert list(pools_differ({"model": "llama-3-8b", "hardware": "2x8 H100-80GB", "framework": "torchtitan"})) == []


@pytest.mark.parametrize("schedule", ["gpipe", "zb_h2", "dualpipe"])
def test_a_given_schedule_is_judged_together_as_it_is_alone(schedule):
    case = job(model="llama-3-70b", hardware="4x8 H100-80GB", framework="megatron", pipeline_schedule=schedule)
    assert [layout for columns in legal_sample(case, 60, 0) for layout in differing(case, columns)] == []


WAYS = (
    (None, None), ("by_tensor", "by_tensor"), ("one_rank", "in_turn"), ("every_rank", "whole"),
    ("every_rank_fp32", "staged"), ("one_rank", "by_group"), ("by_tensor", "weights"),
)  # fmt: skip


@pytest.mark.parametrize("framework", ["megatron", "deepspeed", "torchtitan"])
@pytest.mark.parametrize(("loading", "saving"), WAYS)
def test_what_a_node_needs_is_judged_together_as_it_is_alone(framework, loading, saving):
    ways = {"weight_loading": loading, "checkpoint_saving": saving}
    case = job(model="qwen3-30b-a3b", hardware="2x8 H100-80GB", framework=framework, **ways)
    assert [layout for columns in legal_sample(case, 10, 0) for layout in differing(case, columns)] == []


# --- the search against whole spaces --------------------------------------------------------------------------------

SMALL = (
    {"model": "llama-3.2-1b", "hardware": "1x2 A10-24GB", "framework": "megatron"},
    {"model": "llama-3.2-1b", "hardware": "1x4 T4-16GB", "framework": "fsdp2", "precision": "fp16_mixed"},
    {"model": "llama-3.2-3b", "hardware": "1x4 A10-24GB", "framework": "torchtitan"},
    {"model": "llama-3.2-3b", "hardware": "1x2 A100-40GB", "framework": "deepspeed"},
    {"model": "qwen1.5-moe-a2.7b", "hardware": "1x4 H100-80GB", "framework": "megatron"},
)
#: Levers that are held at random, so that what is left can be looked at one by one.
HELD = {
    "micro_batch": (1, 2),
    "tensor_parallel": (1, 2),
    "pipeline_parallel": (1, 2),
    "data_parallel_replicate": (1, 2),
    "virtual_stages": (1, 2),
    "context_parallel": (1, 2),
}


def one_by_one(case):
    """The lowest cost of each rung, by single estimates; rungs where nothing fits are left out."""
    best = {}
    for rung in law().ladder.rungs[:2]:
        for values in every_layout(case, rung):
            one = case.model_copy(update={"layout": layout_of(case, values)})
            if check(one):
                continue
            memory = estimate(one)
            if memory.reserved_bytes <= limit_bytes(case, memory.usable_bytes):
                price = float(cost.total(case, one.layout))
                best[rung.id] = min(price, best.get(rung.id, price))
    return best


def small_spaces(count):
    """Small jobs with some levers held at random; those that no layout satisfies are left out."""
    draw, found = random.Random(5), 0
    while found < count:
        names = draw.sample(sorted(HELD), 2)
        arguments = {**draw.choice(SMALL), **{name: draw.choice(HELD[name]) for name in names}}
        try:
            case = job(**arguments, sequence_length=draw.choice((2048, 8192)))
            found_layout = search(case)
        except AdvisorError:
            continue  # what is held divides nothing
        found += 1
        yield case, found_layout


def assert_nothing_better(case, found):
    """The law, applied to what was looked at one by one, gives the search's answer."""
    best, ladder = one_by_one(case), law().ladder
    sharding, recompute = (best.get(rung.id) for rung in ladder.rungs[:2])
    if found.winner is None or found.winner.rung not in (ladder.rungs[0].id, ladder.rungs[1].id):
        assert best == {}
        return
    left = sharding is None or (recompute and sharding > recompute * (1 + ladder.rungs[0].leave_if_costlier_by))
    assert found.winner.rung == ladder.rungs[1 if left else 0].id
    band = ladder.tie_band.moe if case.model.experts else ladder.tie_band.dense
    lowest = best[found.winner.rung]
    assert lowest * (1 - 1e-9) <= found.winner.cost <= lowest * (1 + band)


def test_looking_at_small_spaces_one_by_one_finds_nothing_better():
    for case, found in small_spaces(5):
        assert_nothing_better(case, found)


@pytest.mark.slow
def test_looking_at_many_small_spaces_one_by_one_finds_nothing_better():
    spaces = list(small_spaces(40))
    assert sum(found.winner is not None for _, found in spaces) > 20
    for case, found in spaces:
        assert_nothing_better(case, found)


WHOLE = {
    "8b, one node": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "megatron"},
    "8b, FSDP2 on eight nodes": {"model": "llama-3-8b", "hardware": "8x8 H100-80GB", "framework": "fsdp2"},
    "70b, eight nodes": {"model": "llama-3-70b", "hardware": "8x8 H100-80GB", "framework": "megatron"},
    "70b, torchtitan": {"model": "llama-3-70b", "hardware": "8x8 H100-80GB", "framework": "torchtitan"},
    "mixture, two nodes": {"model": "qwen3-30b-a3b", "hardware": "2x8 H100-80GB", "framework": "megatron"},
}


def pruned_and_whole(arguments):
    """For each rung on the GPUs: the lowest cost of the search's space and of the whole one."""
    case = job(**arguments, sequence_length=8192)
    for rung in law().ladder.rungs[:2]:
        choices = [choice for choice in rung.choices if case.policy.law in choice.laws]
        pruned = space.with_choices(case, space.cores_of(case, law().ladder), choices)
        whole = columns_of(case, every_layout(case, rung))
        assert len(whole) > len(pruned)
        yield cheapest(case, pruned), cheapest(case, whole)


def test_pruning_keeps_the_best_of_a_small_space():
    for pruned, whole in pruned_and_whole(WHOLE["8b, one node"]):
        assert pruned == pytest.approx(whole, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_pruning_keeps_the_best_of_a_whole_space(name):
    for pruned, whole in pruned_and_whole(WHOLE[name]):
        assert pruned == pytest.approx(whole, rel=1e-9)


# --- limits against trying everything -------------------------------------------------------------------------------

LIMITED = {
    "model": ("llama-3.2-1b", "llama-3-8b", "qwen2.5-7b", "gemma-2-2b", "deepseek-v2-lite"),
    "hardware": ("1x1 RTX-4090", "1x2 A100-40GB", "1x8 A100-80GB", "1x4 L40S-48GB", "2x8 H100-80GB"),
    "method": ("full", "lora"),
    "framework": ("fsdp2", "deepspeed", "megatron"),
    "recompute": ("none", "full", "near_free"),
    "sequence_length": (512, 2048, 8192),
}


def random_limits(count):
    """Random cases and what is asked of them; those that no framework accepts are left out."""
    draw, found = random.Random(11), 0
    while found < count:
        arguments = {name: draw.choice(values) for name, values in LIMITED.items()}
        of = draw.choice(("micro_batch", "sequence_length", "micro_batch", "sequence_length", "gpus"))
        case = CaseArguments(**arguments)
        try:
            answer = advisor.find_limit(case=arguments, of=of)
        except AdvisorError:
            continue
        found += 1
        yield case, of, answer.value


def scanned(case, of):
    """The limit by trying every value."""
    if of == "gpus":
        device = case.hardware.partition(" ")[2]
        node = machine._cluster(case, allow_paths=False)
        sizes = machine._sizes(node.gpus_per_node if node.gpus > 1 else node.device.gpus_per_node)
        tried = [machine._searched(case, f"{nodes}x{gpus} {device}", allow_paths=False) for nodes, gpus in sizes]
        return next((one.breakdown.case.cluster.gpus for one in tried if one and one.fits), None)
    values = largest.candidates_of(case, of, allow_paths=False)
    fitting = [value for value in values if largest.measured(case, of, value, allow_paths=False).fits]
    return max(fitting, default=None)


def assert_limits_are_those_of_a_scan(monkeypatch, count):
    monkeypatch.setattr(largest, "LARGEST_MICRO_BATCH", 24)
    monkeypatch.setattr(largest, "TOKENS_A_STEP", 1024)
    monkeypatch.setattr(largest, "LONGEST_SEQUENCE", 24 * 1024)
    monkeypatch.setattr(machine, "MOST_NODES", 2)
    limits = [(case, of, limit, scanned(case, of)) for case, of, limit in random_limits(count)]
    assert [found for found in limits if found[2] != found[3]] == []
    inside = [limit for _, of, limit, _ in limits if limit and limit not in (24, 24 * 1024)]
    assert len(inside) > count / 5


def test_a_limit_is_what_trying_every_value_finds(monkeypatch):
    assert_limits_are_those_of_a_scan(monkeypatch, 12)


@pytest.mark.slow
def test_two_hundred_limits_are_what_trying_every_value_finds(monkeypatch):
    assert_limits_are_those_of_a_scan(monkeypatch, 200)


# --- what must never turn a fit into a misfit -----------------------------------------------------------------------

TIGHT = st.sampled_from(
    [
        {"model": "llama-3-8b", "framework": "megatron"},
        {"model": "llama-3-8b", "framework": "fsdp2"},
        {"model": "llama-2-13b", "framework": "deepspeed"},
        {"model": "qwen3-30b-a3b", "framework": "megatron"},
    ]
)
DEVICES = st.sampled_from(["A10-24GB", "A100-40GB", "L40S-48GB", "H100-80GB"])
SEQUENCES = st.sampled_from([1024, 2048, 4096, 6144, 8192, 16_384, 32_768])
few = settings(max_examples=8, deadline=None)


def fits(**arguments):
    """Whether some layout fits; GPUs may stay idle."""
    found = compare_sizes(CaseArguments(**arguments, objective="fewest_gpus"), allow_paths=False)[0]
    return found.winner is not None


@few
@given(TIGHT, DEVICES, SEQUENCES, st.integers(1, 4), st.integers(1, 4))
def test_more_whole_nodes_never_turn_a_fit_into_a_misfit(asked, device, sequence, nodes, more):
    def on(count):
        return fits(**asked, hardware=f"{count}x8 {device}", sequence_length=sequence)

    assert on(nodes + more) or not on(nodes)


@few
@given(TIGHT, SEQUENCES, st.integers(16, 100), st.integers(1, 40))
def test_more_memory_a_gpu_never_turns_a_fit_into_a_misfit(asked, sequence, gib, more):
    def with_memory(size):
        return fits(**asked, hardware="1x8 H100-80GB", gpu_memory_gib=size, sequence_length=sequence)

    assert with_memory(gib + more) or not with_memory(gib)


@few
@given(TIGHT, DEVICES, SEQUENCES, SEQUENCES)
def test_a_shorter_sequence_never_turns_a_fit_into_a_misfit(asked, device, one, other):
    def at(length):
        return fits(**asked, hardware=f"1x8 {device}", sequence_length=length)

    assert at(min(one, other)) or not at(max(one, other))


@few
@given(TIGHT, DEVICES, SEQUENCES, st.integers(1, 2))
def test_the_recommended_layout_sent_back_gives_the_same_figures(asked, device, sequence, nodes):
    found = advisor.recommend_setup(**asked, hardware=f"{nodes}x8 {device}", sequence_length=sequence)
    again = advisor.estimate_memory(**{**found.next_calls[0].arguments, **found.layout.model_dump()})
    assert (again.layout, again.peak_bytes, again.reserved_bytes) == (
        found.layout,
        found.estimate.peak_bytes,
        found.estimate.reserved_bytes,
    )
    assert not found.estimate.time or again.time.step_time_s == found.estimate.time.step_time_s


# --- the law is data ------------------------------------------------------------------------------------------------

SEVENTY_B = {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "framework": "megatron", "sequence_length": 8192}
EDITS = {
    "forbid": "forbid:\n- {{id: acme-rule, when: {degree} > {most}, message: the links are slow}}\n",
    "cap": "cap:\n- {{id: acme-rule, argument: {degree}, at_most: {most}, message: the links are slow}}\n",
}


@pytest.mark.parametrize("degree", ["tensor_parallel", "pipeline_parallel"])
@pytest.mark.parametrize("edit", EDITS)
def test_a_sites_rule_changes_the_answer_and_the_trace(edit, degree, tmp_path):
    free = advisor.recommend_setup(**SEVENTY_B)
    most = getattr(free.layout, degree) // 2
    site = tmp_path / "site.yaml"
    site.write_text(EDITS[edit].format(degree=degree, most=most), encoding="utf-8")
    held = recommend(CaseArguments(**SEVENTY_B, rules=str(site)), allow_paths=True)
    assert 1 <= getattr(held.layout, degree) <= most
    assert [(step.id, step.to) for step in held.steps] != [(step.id, step.to) for step in free.steps]


def test_one_edited_rule_file_changes_the_answer_and_its_reason(tmp_path, monkeypatch):
    free = advisor.recommend_setup(**SEVENTY_B)
    most = free.layout.tensor_parallel // 2
    rules = edited(tmp_path, "require: divides(tensor_parallel, heads)", f"require: tensor_parallel <= {most}")
    monkeypatch.setattr(legality, "constraints", lambda: rules)
    legality._of_framework.cache_clear()
    try:
        held = advisor.recommend_setup(**SEVENTY_B)
        with pytest.raises(AdvisorError, match="tensor-divides-heads"):
            advisor.estimate_memory(**SEVENTY_B, tensor_parallel=2 * most)
    finally:
        legality._of_framework.cache_clear()
    assert held.layout.tensor_parallel <= most
    assert [step.to for step in held.steps] != [step.to for step in free.steps]


def edited(folder, old, new):
    """The shipped constraints with one line of one file changed."""
    for file in (rulebook.rules_folder() / "constraints").glob("*.yaml"):
        (folder / file.name).write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    return rulebook.read_constraints(folder)
