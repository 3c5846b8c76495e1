"""The doors as plain functions: each takes a tool's name and arguments, and gives ("answer" | "error", JSON)."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from advisor import api
from advisor.errors import AdvisorError
from tools.cli import main
from tools.mcp_door import ERROR_KEY, build_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Outcome = tuple[str, Any]


def by_python(name: str, arguments: dict[str, Any]) -> Outcome:
    try:
        answer = api.call(name, arguments, allow_paths=True)
    except AdvisorError as error:
        return "error", error.as_dict()
    return "answer", answer.model_dump(mode="json", by_alias=True)


def by_command_line(name: str, arguments: dict[str, Any], capsys: Any) -> Outcome:
    """The command with one option an argument."""
    options = [part for key, value in arguments.items() for part in (f"--{key.replace('_', '-')}", option(value))]
    _, out, err = command_line([name.replace("_", "-"), *options, "--json"], capsys)
    said = json.loads(out)
    if not err:
        return "answer", said
    assert err.splitlines()[0] == f"trainfit: {said['detail']}"
    return "error", said


def command_line(arguments: list[str], capsys: Any) -> tuple[int, str, str]:
    capsys.readouterr()
    code = 0
    try:
        main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def option(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)


def by_mcp(name: str, arguments: dict[str, Any], *, target: Any = None, mode: str = "auto") -> Outcome:
    """Through the SDK's own client: in memory unless a target (process or address) is given."""
    return anyio.run(_call, name, arguments, target or build_server(allow_paths=True), mode)


async def _call(name: str, arguments: dict[str, Any], target: Any, mode: str) -> Outcome:
    async with Client(target, mode=mode) as client:
        await client.list_tools()  # the client checks answers against the output schemas it has listed
        result = await client.call_tool(name, arguments)
    assert result.content[0].text
    if result.is_error:
        assert result.structured_content is None, "strict clients hold it to the schema of the answer"
        return "error", result.meta[ERROR_KEY]
    return "answer", result.structured_content


@asynccontextmanager
async def mcp_over_http(app: Any, seen: list[Any], **options: Any) -> AsyncIterator[Client]:
    """The SDK's own client at ``/mcp`` of an application in this process; ``seen`` gathers its requests."""

    async def remember(request: httpx2.Request) -> None:
        seen.append(request)

    hooks = {"request": [remember]}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), event_hooks=hooks) as http,
        Client(streamable_http_client("http://here/mcp", http_client=http), **options) as client,
    ):
        yield client


def by_http(name: str, arguments: Any, client: Any) -> Outcome:
    response = client.post(f"/v1/{name.replace('_', '-')}", json=arguments)
    body = response.json()
    if response.status_code == 200:
        return "answer", body
    assert response.headers["content-type"] == "application/problem+json"
    return "error", {key: body[key] for key in ("code", "detail", "pointer", "suggestions")}
