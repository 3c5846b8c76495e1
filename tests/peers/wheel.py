"""`python -m tests.peers.wheel`: build the wheel, install it into an empty environment, ask what hosts would ask.

Each stdio snippet of docs/deploy/hosts.md is started as a host would start it, and must list every tool.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from tests.snippets import stdio_commands
from tools import TOOLS

ROOT = Path(__file__).parents[2]


def installed(folder: Path) -> Path:
    """The folder of commands of a new environment that holds the wheel and what it needs."""
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
    (wheel,) = folder.glob("trainfit-*.whl")
    venv.create(folder / "env", with_pip=True)
    commands = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    subprocess.run([commands / "python", "-m", "pip", "install", "-q", wheel], check=True)
    return commands


async def listed(command: list[str], folder: Path) -> list[str]:
    """The tools that a server process lists, started outside of any checkout; one of them is called too."""
    process = StdioServerParameters(command=command[0], args=command[1:], cwd=folder)
    async with Client(process) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("estimate_memory", {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"})
    assert not answer.is_error, answer
    return tools


def main() -> None:
    """Install, start each documented command, compare."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = installed(folder)
        for host, (program, *arguments) in stdio_commands():
            tools = anyio.run(listed, [str(commands / program), *arguments], folder)
            assert tools == [tool.name for tool in TOOLS], tools
            print(f"{host}: {len(tools)} tools")


if __name__ == "__main__":
    main()
