"""The serve command: stdio for a host on this machine, or HTTP for many callers."""

from __future__ import annotations

import ipaddress
import sys
from typing import Final

import anyio
import click

from tools.worker import TIME_LIMIT_S

EXIT_BAD_CALL: Final = 64


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--http", is_flag=True, help="Serve /mcp and /v1 over HTTP instead of MCP over stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind with --http.")
@click.option("--port", default=8321, show_default=True, type=click.IntRange(1, 65_535), help="Port with --http.")
@click.option(
    "--time-limit", default=TIME_LIMIT_S, show_default=True, type=click.FloatRange(0.01, 3600), help="Seconds."
)
@click.option("--allow-public", is_flag=True, help="Bind an address that other machines can reach. There is no login.")
def serve(http: bool, host: str, port: int, time_limit: float, allow_public: bool) -> None:
    """Serve the tools to MCP hosts (stdio), or over HTTP."""
    if not http:
        from tools.mcp_door import serve_stdio  # noqa: PLC0415 - each door loads its own libraries only

        anyio.run(serve_stdio, time_limit)
        return
    if not (allow_public or is_loopback(host)):
        click.echo(
            f"{host} can be reached from other machines, and this server asks nobody who they are; "
            "bind 127.0.0.1, or say --allow-public behind a gateway that does",
            err=True,
        )
        sys.exit(EXIT_BAD_CALL)
    import uvicorn  # noqa: PLC0415

    from tools.http_door import build_app  # noqa: PLC0415

    click.echo(f"TrainFit at http://{host}:{port} (MCP at /mcp, JSON at /v1, /openapi.json)", err=True)
    uvicorn.run(
        build_app(host=host, time_limit_s=time_limit),
        host=host,
        port=port,
        log_level="warning",
        limit_concurrency=200,
        timeout_graceful_shutdown=10,
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
