"""TrainFit's server: MCP over stdio, or with ``--http`` MCP and JSON on one port. ``python server.py --help``."""

from __future__ import annotations

import gc
import sys

# Importing the SDK builds hundreds of classes that live for ever: collecting in between is time lost at start-up.
gc.disable()

import tools  # noqa: E402

if getattr(tools, "PRODUCT", "") != "trainfit":
    sys.exit(
        f"the package 'tools' at {tools.__file__} is not TrainFit's; install TrainFit in an environment of its own"
    )

import tools.mcp_door  # noqa: E402 - loaded here, while nothing is collected
from tools.serving import serve  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    serve(prog_name="server.py")
