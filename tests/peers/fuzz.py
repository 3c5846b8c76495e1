"""Thousands of hostile calls over JSON and MCP: no traceback, no fault, no hang."""

import copy
import http.client
import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.peers.running import MCP_HEADERS, Running, post
from tools import TOOLS, find_tool

HANG_S = 2.0
THREADS = 4
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 8, 64, 4096, 2**31, 2**53, 2**63, 10**30, 1e-9, 1e308, -0.0, 0.5),
    *("", " ", "8k", "1M", "-8k", "none", "full", "h100", "4x8 H100-80GB", "0x0 H100", "999999x999999 B200", "70B"),
    *("1e400B", "../../etc/passwd", "C:\\x", "file:///etc/passwd", "\0", "é\u202e", "🦜" * 50, "x" * 5000, "{{7*7}}"),
    *("'; DROP TABLE", "__import__('os')", "%s%n", "1..10 1", "1..1000000 1", "9" * 400, "true", "fits and"),
    *([], [None], [[[[]]]], ["none", "full"], [1, 2, 4], list(range(300)), {}, {"a": {"b": {}}}, {"model": "7B"}),
    *({"layers": 10**9, "hidden": 10**9, "heads": 1}, {"model_type": "llama"}, {"micro_batch": [1, 2]}),
)
STRANGE_NAMES = ("modl", "", "__class__", "case", "x" * 300)
HOSTILE_BODIES = (b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"a":' * 3000, b"null", b"NaN", b'"text"', b"{}" * 10)


CASE_SCHEMAS: dict[str, Any] = find_tool("estimate_memory").input_schema["properties"]
PLAUSIBLE: dict[str, tuple[Any, ...]] = {
    "integer": (1, 2, 3, 4, 8, 16, 4096),
    "number": (0.1, 0.5, 1, 80),
    "boolean": (True, False),
}


def arguments(chance: random.Random) -> tuple[str, Any]:
    """A tool and its example with a few arguments changed, added or renamed."""
    tool = chance.choice(TOOLS)
    given = copy.deepcopy(dict(chance.choice(tool.examples)))
    for _ in range(chance.randint(0, 3)):
        inner = given.get("case")
        inside = isinstance(inner, dict) and chance.random() < 0.5
        target, schemas = (inner, CASE_SCHEMAS) if inside else (given, tool.input_schema["properties"])
        name = chance.choice(list(schemas)) if chance.random() < 0.9 else chance.choice(STRANGE_NAMES)
        target[name] = value(schemas.get(name, {}), chance)
    return tool.name, given


def value(schema: dict[str, Any], chance: random.Random) -> Any:
    """A value that an argument may well have, or one that it never should."""
    likely = (*schema.get("enum", ()), *PLAUSIBLE.get(schema.get("type", ""), ()))
    return copy.deepcopy(chance.choice(likely if likely and chance.random() < 0.7 else VALUES))


@dataclass(frozen=True)
class Ended:
    """How one call ended.

    Attributes:
        tool: its name.
        call: what was sent, shortened.
        outcome: the door, the status, and over MCP whether it was refused.
        seconds: how long it took.
        fault: the beginning of the answer, when something is wrong with it.
    """

    tool: str
    call: str
    outcome: str
    seconds: float
    fault: str


def one(connection: http.client.HTTPConnection, chance: random.Random) -> Ended:
    """One call, over JSON or MCP."""
    name, given = arguments(chance)
    start = time.perf_counter()
    if chance.random() < 0.5:
        body = chance.choice(HOSTILE_BODIES) if chance.random() < 0.05 else json.dumps(given).encode()
        status, said = post(connection, f"/v1/{name.replace('_', '-')}", body, {})
        outcome = f"JSON {status}"
    else:
        params = {"name": name, "arguments": given}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        status, said = post(connection, "/mcp", call, MCP_HEADERS)
        ending = "refused" if b'"isError":true' in said else "answered"
        outcome = f"MCP {status} {ending}"
    spent = time.perf_counter() - start
    wrong = status >= 500 or b"Traceback" in said or b"internal_error" in said
    fault = said.decode(errors="replace")[:200] if wrong else ""
    return Ended(name, json.dumps(given)[:400], outcome, spent, fault)


def share(running: Running, seed: int, calls: int) -> list[Ended]:
    connection, chance = running.connection(), random.Random(seed)
    return [one(connection, chance) for _ in range(calls)]


def fuzz(running: Running, calls: int) -> dict[str, str]:
    """Figures of so many calls.

    Raises:
        AssertionError: a call ended in a fault, or the log has a traceback; with the calls that did.
    """
    with ThreadPoolExecutor(THREADS) as threads:
        parts = threads.map(lambda seed: share(running, seed, calls // THREADS), range(THREADS))
        ended = [each for part in parts for each in part]
    slow = [each for each in ended if each.seconds > HANG_S]
    print(*(f"{each.seconds:.1f} s: {each.tool} {each.call}" for each in slow), sep="\n", flush=True)
    wrong = [f"{each.tool} {each.call}: {each.fault}" for each in ended if each.fault]
    assert not wrong, "\n".join([f"{len(wrong)} faults", *wrong[:20]])
    assert "Traceback" not in running.log.read_text(encoding="utf-8")
    longest = max(ended, key=lambda each: each.seconds)
    return {
        f"fuzz, {len(ended):,} calls": f"no fault, no traceback; the longest took {longest.seconds:.1f} s",
        f"fuzz, calls over {HANG_S:g} s": counted(Counter(each.tool for each in slow)) or "none",
        "fuzz, how they ended": counted(Counter(each.outcome for each in ended)),
    }


def counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items()))
