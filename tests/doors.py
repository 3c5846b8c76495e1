"""The doors as plain functions: each takes a tool's name and arguments, and gives ("answer" | "error", JSON)."""

from __future__ import annotations

import json
from typing import Any

import anyio
from mcp import Client

from advisor import api
from advisor.errors import AdvisorError
from tools.cli import main
from tools.mcp_door import ERROR_KEY, build_server

Outcome = tuple[str, Any]


def by_python(name: str, arguments: dict[str, Any]) -> Outcome:
    try:
        answer = api.call(name, arguments, allow_paths=True)
    except AdvisorError as error:
        return "error", error.as_dict()
    return "answer", answer.model_dump(mode="json", by_alias=True)


def by_command_line(name: str, arguments: dict[str, Any], capsys: Any) -> Outcome:
    """The command with one option an argument; an error is known by its sentence, so only its detail is given."""
    options = [part for key, value in arguments.items() for part in (f"--{key.replace('_', '-')}", option(value))]
    _, out, err = command_line([name.replace("_", "-"), *options, "--json"], capsys)
    if not err:
        return "answer", json.loads(out)
    return "error", err.removeprefix("trainfit: ").splitlines()[0]


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


def by_http(name: str, arguments: Any, client: Any) -> Outcome:
    response = client.post(f"/v1/{name.replace('_', '-')}", json=arguments)
    body = response.json()
    if response.status_code == 200:
        return "answer", body
    assert response.headers["content-type"] == "application/problem+json"
    return "error", {key: body[key] for key in ("code", "detail", "pointer", "suggestions")}
