"""Worker processes: a call out of time or given up is stopped, a dead worker replaced, small calls not starved."""

import os
import signal
import time

import anyio
import pytest

from advisor.errors import AdvisorError
from tests.doors import by_python
from tools import find_tool
from tools.work import worker
from tools.work.pool import Pool

SMALL = ("list_catalog", {"kind": "devices", "query": "h100"})
CASE = {"model": "llama-3-70b", "hardware": "64x8 H100-80GB"}
LONG = (
    "explore",
    {
        "case": CASE,
        "vary": {"micro_batch": "1..64 1", "sequence_length": "1024..65536 1024", "tensor_parallel": [1, 2, 4, 8]},
    },
)

alone = pytest.mark.skipif(not hasattr(os, "kill"), reason="needs signals")


def within(pool, work):
    """Run ``work(pool)`` inside an open pool."""

    async def run():
        async with pool:
            return await work(pool)

    return anyio.run(run)


async def ask(pool, call, *, allow_paths=True):
    name, arguments = call
    return await pool.reply(find_tool(name), arguments, allow_paths=allow_paths)


async def settled(pool, count, *, other_than=()):
    """Wait until so many workers are ready, none of them among those before."""
    for _ in range(1200):
        if len(pool.pids) == count and not set(pool.pids) & set(other_than):
            return pool.pids
        await anyio.sleep(0.05)
    pytest.fail("the workers did not start")


def test_a_worker_gives_the_answer_and_the_error_of_every_door():
    async def work(pool):
        sent = await ask(pool, SMALL)
        with pytest.raises(AdvisorError) as refused:
            await ask(pool, ("list_catalog", {"kind": "device"}))
        return sent, refused.value

    sent, error = within(Pool(1), work)
    assert ("answer", sent.as_data()) == by_python(*SMALL)
    assert sent.text
    assert ("error", error.as_dict()) == by_python("list_catalog", {"kind": "device"})


def test_a_call_out_of_time_is_stopped_and_its_worker_replaced():
    async def work(pool):
        (before,) = await settled(pool, 1)
        with pytest.raises(AdvisorError, match="longer than the time limit") as refused:
            await ask(pool, LONG)
        pool.time_limit_s = 30
        await ask(pool, SMALL)
        return before, refused.value.code, pool.pids

    before, code, after = within(Pool(1, time_limit_s=0.3), work)
    assert code == "time_limit"
    assert before not in after
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_a_call_given_up_is_stopped():
    async def work(pool):
        (before,) = await settled(pool, 1)
        with anyio.move_on_after(0.3):
            await ask(pool, LONG)
        return await settled(pool, 1, other_than=[before])

    assert within(Pool(1), work)


def test_small_calls_are_answered_while_long_ones_run():
    async def work(pool):
        await settled(pool, 2)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask, pool, LONG)
            await anyio.sleep(0.2)
            start = time.perf_counter()
            for _ in range(5):
                await ask(pool, SMALL)
            spent = time.perf_counter() - start
            tasks.cancel_scope.cancel()
        return spent

    assert within(Pool(2), work) < 5


@alone
def test_a_killed_worker_is_replaced_and_its_call_answered_by_another():
    async def work(pool):
        before = await settled(pool, 2)
        outcomes = []

        async def one():
            outcomes.append(await ask(pool, SMALL))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(one)
            await anyio.sleep(0.01)
            os.kill(before[0], signal.SIGKILL)
        return before, outcomes, await settled(pool, 2)

    before, outcomes, after = within(Pool(2), work)
    assert len(outcomes) == 20
    assert before[0] not in after
    assert before[1] in after


@alone
def test_a_call_that_ends_two_workers_is_given_up():
    async def work(pool):
        await settled(pool, 2)

        async def kill_all():
            while True:
                for pid in pool.pids:
                    os.kill(pid, signal.SIGKILL)
                await anyio.sleep(0.05)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill_all)
            with pytest.raises(AdvisorError, match="two worker processes ended") as refused:
                await ask(pool, LONG)
            tasks.cancel_scope.cancel()
        return refused.value.code

    assert within(Pool(2), work) == "worker_lost"


def test_a_call_that_finds_no_free_worker_is_told_so():
    async def work(pool):
        await settled(pool, 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(quiet, pool)
            await anyio.sleep(0.1)
            pool.time_limit_s = 0.3
            with pytest.raises(AdvisorError, match="every worker was busy") as refused:
                await ask(pool, SMALL)
            tasks.cancel_scope.cancel()
        return refused.value.code

    async def quiet(pool):
        await ask(pool, LONG)

    assert within(Pool(1), work) == "busy"


def test_workers_end_with_their_pool():
    async def work(pool):
        return await settled(pool, 2)

    for pid in within(Pool(2), work):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_sweep_may_take_more_time_on_the_callers_own_machine_only():
    call = {"request_id": "x", "tool": "explore", "arguments": {**LONG[1], "budget_s": 100}, "allow_paths": False}
    assert worker.answer(call) == {
        "error": {
            "code": "invalid_value",
            "detail": "budget_s: got 100; accepted over the network: at most 20",
            "pointer": "/budget_s",
            "suggestions": ["20"],
        }
    }
