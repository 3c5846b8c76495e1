"""`python -m tests.peers [PART ...]`: others' suites, a fuzz and a load against a real server; writes docs/peers.md.

Parts: conformance, clients, schemathesis, fuzz, load, soak; all when none is named, and then the page is rewritten.
"""

import os
import platform
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from advisor import __version__
from tests.peers.clients import clients
from tests.peers.fuzz import fuzz
from tests.peers.load import load, soak
from tests.peers.running import ROOT, Running, server
from tests.peers.suites import conformance, schemathesis

PAGE = ROOT / "docs" / "peers.md"
FIGURES = re.compile(r"(?<=<!-- figures -->\n).*(?=<!-- /figures -->)", re.DOTALL)
FOLDER = ROOT / "build" / "peers"
PARTS: dict[str, Callable[[Running, Path], dict[str, str]]] = {
    "conformance": conformance,
    "clients": clients,
    "schemathesis": lambda running, folder: schemathesis(running, folder, 200),
    "fuzz": lambda running, _: fuzz(running, 10_000),
    "load": lambda running, folder: load(running, folder, 20.0),
    "soak": lambda running, _: soak(running),
}


def main(names: list[str]) -> None:
    """Run the parts, print what they found, and write the page after a full run."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = {}
    for name in names or PARTS:
        with server(FOLDER) as running:
            found = PARTS[name](running, FOLDER)
        rows |= found
        for what, result in found.items():
            print(f"{what}: {result}", flush=True)
    if not names:
        PAGE.write_text(FIGURES.sub(lambda _: table(rows), PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def table(rows: dict[str, str]) -> str:
    """The figures, and where they were found."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    lines = [f"| {what} | {result} |" for what, result in rows.items()]
    head = f"TrainFit {__version__}, {time.strftime('%Y-%m-%d')}, {machine}; clients on the same machine.\n"
    return "\n".join([head, "| what | result |", "|---|---|", *lines, ""])


if __name__ == "__main__":
    main(sys.argv[1:])
