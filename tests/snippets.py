"""What the snippets for hosts in docs/deploy/hosts.md say, decoded."""

import base64
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = Path(__file__).parent.parent / "docs" / "deploy" / "hosts.md"
FENCE = re.compile(r"```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)


def servers() -> list[tuple[str, dict[str, Any]]]:
    """Every server that the page names, by the kind of its snippet."""
    return [(kind, server) for kind, text in fences() for server in decoded(kind, text)]


def stdio_commands() -> list[tuple[str, list[str]]]:
    """The commands that hosts start."""
    return [(kind, [server["command"], *server["args"]]) for kind, server in servers() if "command" in server]


def fences() -> Iterator[tuple[str, str]]:
    for fence in FENCE.finditer(PAGE.read_text(encoding="utf-8")):
        yield fence["kind"], fence["text"].strip()


def decoded(kind: str, text: str) -> list[dict[str, Any]]:
    """The servers in one snippet."""
    if kind == "sh":
        return [of_command(text)]
    if kind == "text":
        return [of_link(text)]
    data = json.loads(text) if kind == "json" else tomllib.loads(text)
    return [group["trainfit"] for group in data.values()]


def of_command(line: str) -> dict[str, Any]:
    """What ``claude mcp add`` is told."""
    words = shlex.split(line)
    assert words[:3] == ["claude", "mcp", "add"]
    if "--" in words:
        command, *arguments = words[words.index("--") + 1 :]
        return {"command": command, "args": arguments}
    url = next(word for word in words if word.startswith("https://"))
    name, _, value = words[words.index("--header") + 1].partition(": ")
    return {"url": url, "headers": {name: value}}


def of_link(link: str) -> dict[str, Any]:
    """What a one-click link holds: base64 of JSON for Cursor, quoted JSON for VS Code."""
    parts = urlsplit(link)
    if parts.scheme == "cursor":
        return json.loads(base64.b64decode(parse_qs(parts.query)["config"][0]))
    assert parts.scheme == "vscode"
    return json.loads(unquote(parts.query))
