"""Worker processes: a call out of time or given up is stopped, a dead worker replaced, small calls not starved."""

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from advisor.api import OPERATIONS
from advisor.errors import AdvisorError
from tests.doors import by_python
from tools import find_tool
from tools.workers import worker
from tools.workers.pool import Pool

SMALL = ("list_catalog", {"kind": "devices", "query": "h100"})
LONG = (
    "explore",
    {
        "case": {"model": "llama-3-70b", "hardware": "64x8 H100-80GB"},
        "vary": {"micro_batch": "1..64 1", "sequence_length": "1024..65536 1024", "tensor_parallel": [1, 2, 4, 8]},
    },
)


@pytest.fixture(scope="module")
def portal():
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def shared(portal):
    with portal.wrap_async_context_manager(Pool(2)) as pool:
        yield pool


@pytest.fixture
def pool(shared, portal, monkeypatch):
    """Two workers that are ready."""
    portal.call(settled, shared)
    yield shared
    monkeypatch.undo()


async def ask(pool, call, *, allow_paths=True):
    name, arguments = call
    return await pool.reply(find_tool(name), arguments, allow_paths=allow_paths)


async def settled(pool, other_than=()):
    """Wait until every worker is ready, none of them among those before."""
    for _ in range(600):
        await anyio.sleep(0.1)  # first of all: a worker that was just killed is noticed
        if len(pool.pids) == pool.workers and not set(pool.pids) & set(other_than):
            return pool.pids
    pytest.fail("the workers did not start")


def ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def refusal(portal, *arguments):
    with pytest.raises(AdvisorError) as refused:
        portal.call(*arguments)
    return refused.value


def test_a_worker_gives_the_answer_and_the_error_of_every_door(pool, portal):
    sent = portal.call(ask, pool, SMALL)
    assert ("answer", sent.as_data()) == by_python(*SMALL)
    assert sent.text
    unknown = ("list_catalog", {"kind": "device"})
    assert ("error", refusal(portal, ask, pool, unknown).as_dict()) == by_python(*unknown)


def test_small_calls_are_answered_while_long_ones_run(pool, portal):
    async def work():
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

    assert portal.call(work) < 5


def test_a_call_out_of_time_is_stopped_and_its_worker_replaced(pool, portal, monkeypatch):
    before = pool.pids
    monkeypatch.setattr(pool, "time_limit_s", 0.3)
    error = refusal(portal, ask, pool, LONG)
    assert error.code == "time_limit"
    assert "time limit of 0.3 s" in error.detail
    after = portal.call(settled, pool)
    assert [ended(pid) for pid in before].count(True) == len(set(before) - set(after)) == 1


def test_a_call_given_up_is_stopped(pool, portal):
    before = pool.pids

    async def give_up():
        with anyio.move_on_after(0.3):
            await ask(pool, LONG)

    portal.call(give_up)
    assert len(set(before) - set(portal.call(settled, pool))) == 1


def test_a_killed_worker_is_replaced_and_its_call_answered_by_another(pool, portal):
    first, second = pool.pids

    async def work():
        outcomes = []

        async def one():
            outcomes.append(await ask(pool, SMALL))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(one)
            await anyio.sleep(0.01)
            os.kill(first, signal.SIGKILL)
        return outcomes

    assert len(portal.call(work)) == 20
    after = portal.call(settled, pool, [first])
    assert second in after


def test_a_long_call_that_finds_no_free_worker_is_told_so(pool, portal):
    async def work():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, pool, LONG)
            await anyio.sleep(0.1)
            pool.time_limit_s, usual = 0.3, pool.time_limit_s
            with pytest.raises(AdvisorError, match="every worker was busy") as refused:
                await ask(pool, LONG)
            pool.time_limit_s = usual
            tasks.cancel_scope.cancel()
        return refused.value.code

    assert portal.call(work) == "busy"


def test_a_search_beyond_those_that_wait_already_is_told_at_once(pool, portal, monkeypatch):
    monkeypatch.setattr("tools.workers.pool.MOST_WAITING", 2)

    async def work():
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask, pool, LONG)
            await anyio.sleep(0.1)
            with pytest.raises(AdvisorError, match="2 searches are waiting") as refused:
                await ask(pool, LONG)
            tasks.cancel_scope.cancel()
        return refused.value.code

    assert portal.call(work) == "busy"


def test_a_search_that_is_refused_does_not_wait(pool, portal):
    async def work():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, pool, LONG)
            await anyio.sleep(0.1)
            with anyio.fail_after(0.5), pytest.raises(AdvisorError) as refused:
                await ask(pool, ("explore", {**LONG[1], "limit": -1}))
            tasks.cancel_scope.cancel()
        return refused.value.pointer

    assert portal.call(work) == "/limit"


def test_a_call_that_ends_two_workers_is_given_up_and_the_next_is_answered(pool, portal):
    async def kill_all():
        while True:
            for pid in pool.pids:
                with suppress(ProcessLookupError):  # it may have ended meanwhile
                    os.kill(pid, signal.SIGKILL)
            await anyio.sleep(0.05)

    async def work():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill_all)
            with pytest.raises(AdvisorError, match="two worker processes ended") as refused:
                await ask(pool, LONG)
            tasks.cancel_scope.cancel()
        await ask(pool, SMALL)
        return refused.value.code

    assert portal.call(work) == "worker_lost"


def test_workers_end_with_their_pool(portal):
    with portal.wrap_async_context_manager(Pool(1)) as pool:
        (pid,) = portal.call(settled, pool)
        assert not ended(pid)
    assert ended(pid)


@pytest.mark.parametrize("command", [(sys.executable, "-c", "raise SystemExit(1)"), ("no-such-program",)])
def test_a_worker_that_cannot_start_is_logged_and_nobody_waits_for_ever(command, portal, monkeypatch, caplog):
    monkeypatch.setattr("tools.workers.pool.COMMAND", command)
    with portal.wrap_async_context_manager(Pool(1, time_limit_s=0.5)) as pool:
        assert refusal(portal, ask, pool, SMALL).code == "busy"
    assert "a worker did not start" in caplog.text


def test_a_fault_in_a_worker_is_logged_there_under_the_request_s_id(monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("inside")

    monkeypatch.setattr("tools.tool.OPERATIONS", {"list_catalog": replace(OPERATIONS["list_catalog"], run=fail)})
    call = {"request_id": "job-17", "tool": "list_catalog", "arguments": {}, "allow_paths": False, "budget_s": None}
    assert worker.answer(call)["error"]["detail"].endswith("request id job-17")
    assert "request id job-17" in caplog.text


@pytest.mark.parametrize(("waiting", "loaded"), [([], ["list_catalog", "explain"]), (["a call"], [])])
def test_what_is_seldom_asked_is_loaded_while_no_call_waits(waiting, loaded, monkeypatch):
    asked = []
    monkeypatch.setattr("tools.workers.worker.select.select", lambda *_: (waiting, [], []))
    monkeypatch.setattr("tools.tool.Tool.reply", lambda tool, *_, **__: asked.append(tool.name))
    worker._warm_while_idle()
    assert asked == loaded


def test_a_sweep_may_take_more_time_on_the_callers_own_machine_only():
    arguments = {**LONG[1], "budget_s": 100}
    call = {"request_id": "x", "tool": "explore", "arguments": arguments, "allow_paths": False, "budget_s": None}
    assert worker.answer(call) == {
        "error": {
            "code": "invalid_value",
            "detail": "budget_s: got 100; accepted over the network: at most 20",
            "pointer": "/budget_s",
            "suggestions": ["20"],
        }
    }
