"""Host memory: what leaves the GPU, counted on its node."""

import pytest

from advisor import phases
from advisor.estimate import estimate
from tests.cases import case
from tests.validation import host
from tests.validation.facts import OWN_FOLDER

JOB = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "deepspeed", "zero_stage": 3}


def host_bytes(**arguments):
    return estimate(case(**JOB | arguments)).node_bytes(phases.HOST)


def test_what_public_pages_state_of_host_memory_is_met_or_says_which_fact_is_missing():
    figures = host.run(OWN_FOLDER / "host.yaml")
    assert figures["host_within_20_percent"] == 1
    assert figures["compared"] + figures["missing_fact_named"] == figures["n"]


def test_an_offloaded_optimizer_keeps_sixteen_bytes_a_parameter_on_the_host_and_two_more_with_the_weights():
    parameters = case(**JOB).parameters.total
    assert host_bytes(offload_optimizer="cpu") == pytest.approx(16 * parameters, rel=1e-6)
    both = host_bytes(offload_optimizer="cpu", offload_parameters="cpu")
    assert both == pytest.approx(18 * parameters, rel=1e-6)


def test_a_quarter_of_the_optimizer_takes_a_quarter_of_the_host_memory():
    megatron = {"framework": "megatron", "zero_stage": 1, "offload_optimizer": "cpu"}
    whole = host_bytes(**megatron)
    for quarters in (1, 2, 3):
        assert host_bytes(**megatron, offload_fraction=quarters / 4) == pytest.approx(whole * quarters / 4, rel=1e-6)


def test_nothing_is_on_the_host_where_nothing_is_offloaded():
    assert host_bytes() == 0
