"""Clients of others against a real server: agents with scripted models, one on the 1.x SDK, and the Inspector."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.peers.running import ROOT, Running
from tests.peers.suites import environment, node
from tools import TOOLS

HERE = Path(__file__).parent
AGENTS = {
    "pydantic_ai": ("pydantic-ai-slim[mcp]>=2.68",),
    "langchain": ("langchain-mcp-adapters>=0.3.2", "langchain>=1.5"),
}
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
SERVER = (sys.executable, str(ROOT / "server.py"))
CALL = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}
KIND = {"kind": "devices", "query": "h100"}  # the newer era repeats the kind in a header over HTTP
REFUSED = 5  # the Inspector's exit code for a result that is an error


def clients(running: Running, folder: Path) -> dict[str, str]:
    """What each client did, over HTTP and over stdio."""
    found: dict[str, str] = {}
    for name, packages in AGENTS.items():
        found |= agent(running, folder, name, packages)
    return found | inspector(running, folder)


def agent(running: Running, folder: Path, name: str, packages: tuple[str, ...]) -> dict[str, str]:
    """A scripted agent: it must see every tool, and end with a configuration that fits."""
    python = environment(folder / name, *packages) / "python"
    command = [python, HERE / f"client_{name}.py", f"{running.base}/mcp", *SERVER]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["transport"] for line in lines] == ["http", "stdio"], done.stdout
    for line in lines:
        assert line["tools"] == sorted(tool.name for tool in TOOLS), line
        assert line["verdict"] in ("comfortable", "fits", "tight"), line
        assert line["read"] > 100, line
    calls = ", ".join(lines[0]["called"])
    return {
        f"{lines[0]['client']}, SDK {lines[0]['sdk']}": f"called {calls} over HTTP and stdio: {lines[0]['verdict']}"
    }


def inspector(running: Running, folder: Path) -> dict[str, str]:
    """The Inspector: a list, two calls, a refusal, a resource, a prompt; over HTTP in both eras, and over stdio."""
    npm = shutil.which("npm")
    if npm is None:
        return {"Inspector": "not run: it is fetched with npm, which is not installed"}
    subprocess.run([npm, "install", "--no-save", "--silent", INSPECTOR], cwd=folder, check=True)
    launcher = folder / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher"
    program = [node(folder), launcher / "build" / "index.js", "--cli"]
    address = [f"{running.base}/mcp", "--transport", "http"]
    targets = [[*address, "--protocol-era", "modern"], [*address, "--protocol-era", "legacy"], list(SERVER)]
    asked = [
        (["tools/list", "--strict"], 0, "estimate_memory"),
        (["tools/call", "--tool-name", "estimate_memory", "--tool-args-json", json.dumps(CALL)], 0, "verdict"),
        (["tools/call", "--tool-name", "list_catalog", "--tool-args-json", json.dumps(KIND)], 0, "h100-80gb"),
        (["tools/call", "--tool-name", "explain", "--tool-args-json", "{}"], REFUSED, "question"),
        (["resources/read", "--uri", "trainfit://topic/formula-sheet"], 0, "16·N"),
        (["prompts/get", "--prompt-name", "explain_memory", "--prompt-args", "question=zero"], 0, "Explain"),
    ]
    for target in targets:
        for method, code, said in asked:
            done = subprocess.run(
                [*program, *target, "--method", *method], capture_output=True, text=True, check=False, timeout=120
            )
            assert done.returncode == code, (target, method, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
            assert said in done.stdout + done.stderr, (target, method, done.stdout[-2000:])
    return {f"Inspector {INSPECTOR.rpartition('@')[2]}": f"{len(asked)} requests each over HTTP (both eras) and stdio"}
