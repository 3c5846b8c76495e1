"""What one call's work may cost: a search over the network ends when it is spent, and says what it left out."""

from itertools import count

import pytest

from advisor import api, budget
from advisor.errors import AdvisorError

NOTHING_FITS = {"model": "llama-3-70b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "cpu_memory_gib": 1}
FITS = {"model": "llama-3-8b", "hardware": "2x8 H100-80GB", "sequence_length": 2048}


@pytest.fixture
def bounded(monkeypatch):
    """Calls an operation on a clock that goes on by one each time the work asks for it."""

    def call(name, arguments, seconds):
        ticks = count()
        monkeypatch.setattr("advisor.budget.time.thread_time", lambda: float(next(ticks)))
        with budget.within(seconds):
            return api.call(name, arguments, allow_paths=False)

    return call


def test_a_search_that_has_found_nothing_says_what_to_narrow(bounded):
    for name, arguments in (("recommend_setup", FITS), ("find_limit", {"case": FITS, "of": "gpus"})):
        with pytest.raises(AdvisorError, match=r"stopped after 0.5 s of work, before .*name a framework") as refused:
            bounded(name, arguments, 0.5)
        assert refused.value.code == "beyond_budget"


def test_nothing_is_called_too_large_before_every_framework_and_rung_was_searched(bounded):
    outcomes = []
    for seconds in range(1, 15):
        try:
            outcomes.append(bounded("recommend_setup", NOTHING_FITS, seconds).verdict)
        except AdvisorError as error:
            outcomes.append(error.code)
    rungs = 6
    assert outcomes[: rungs - 1] == ["beyond_budget"] * (rungs - 1)
    assert outcomes[rungs:] == ["does_not_fit"] * len(outcomes[rungs:])


def test_what_fits_is_answered_with_what_was_not_searched(bounded):
    whole = api.recommend_setup(**FITS)
    assert not [said for said in whole.warnings if "left out" in said]
    stopped = bounded("recommend_setup", FITS, 2)
    assert stopped.warnings[-1].startswith("stopped after 2 s of work; left out: ")
    assert "rung-0-sharding in fsdp2" in stopped.warnings[-1]
    assert stopped.estimate.verdict in {"fits", "comfortable"}


def test_ways_out_are_left_out_when_the_work_is_spent(bounded):
    stopped = bounded("recommend_setup", NOTHING_FITS, 8)
    assert "further ways out" in stopped.warnings[-1]
    assert len(stopped.suggestions) < len(api.recommend_setup(**NOTHING_FITS).suggestions)


def test_a_limit_that_could_not_be_halved_further_is_the_best_so_far(bounded):
    asked = {"case": FITS | {"framework": "fsdp2"}, "of": "micro_batch"}
    whole = api.find_limit(**asked)
    stopped = bounded("find_limit", asked, whole.at.value.bit_length() + 2)
    assert stopped.value <= whole.value
    assert stopped.beyond.value >= whole.beyond.value
    assert "left out" in stopped.notes[-1]


def test_a_sweep_without_a_budget_of_its_own_takes_the_calls():
    vary = {"sequence_length": [1024, 2048, 4096]}
    assert api.explore(case=FITS, vary=vary).complete
    with budget.within(1e-9):
        assert not api.call("explore", {"case": FITS, "vary": vary}, allow_paths=False).complete


def test_a_budget_ends_with_its_call():
    with budget.within(0.0):
        assert budget.is_spent_before("more")
        assert budget.left_out() == ("stopped after 0 s of work; left out: more",)
    assert not budget.is_spent_before("more")
    assert budget.left_out() == ()
