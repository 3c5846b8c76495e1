"""What leaves the GPU under adapters and quantised weights, and what stays; nothing ever counts less than nothing."""

import pytest

from advisor import phases
from advisor.api import estimate_memory
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from tests.cases import KINDS, case

QLORA = {
    "model": "llama-3-70b", "hardware": "1x2 RTX-4090", "method": "qlora", "framework": "fsdp1", "sequence_length": 256,
}  # fmt: skip
AWAY = {"offload_parameters": "cpu", "offload_optimizer": "cpu"}


def held(slot, phase, **arguments):
    stage = estimate(case(**arguments)).binding
    return sum(line.at(phase) for line in stage.lines if line.term.slot == slot)


@pytest.mark.parametrize("name", KINDS)
def test_no_line_of_memory_is_negative(name):
    stages = estimate(case(**KINDS[name])).stages
    instants = (*phases.PHASES, phases.HOST, phases.NVME)
    assert all(line.at(phase) >= 0 for stage in stages for line in stage.lines for phase in instants)


def test_quantised_weights_rest_on_the_host_as_they_are_and_their_block_scales_stay():
    """nf4: half a byte an element of a layer's matrix on two ranks; an fp32 scale for 64 elements on each."""
    model = estimate(case(**QLORA)).case.parameters
    matrices = model.attention + model.ffn
    outside = model.embedding + model.head + model.norms
    assert held("host.parameters", phases.HOST, **QLORA, **AWAY) == (matrices * 0.5 + outside * 2) / 2
    assert held("weights.dense", phases.LOSS, **QLORA, **AWAY) == 0
    assert held("weights.scales", phases.LOSS, **QLORA, **AWAY) == matrices * 4 / 64


def test_adapters_states_leave_with_the_optimizer():
    job = QLORA | {"framework": "deepspeed", "zero_stage": 2, "hardware": "1x2 H100-80GB"}
    shares = [held("adapters.optimizer", phases.LOSS, **job, offload_optimizer="cpu", offload_fraction=share)
              for share in (0.25, 0.5, 1)]  # fmt: skip
    whole = held("adapters.optimizer", phases.LOSS, **job)
    assert shares == [whole * 0.75, whole * 0.5, 0]


def test_deepspeed_is_not_asked_to_move_what_it_leaves_where_it_is():
    with pytest.raises(AdvisorError, match="deepspeed-keeps-quantized-weights"):
        estimate_memory(**QLORA | {"framework": "deepspeed", "zero_stage": 3}, offload_parameters="cpu")
