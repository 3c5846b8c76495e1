"""The serve command: stdio for a host on this machine, or HTTP for many callers."""

from __future__ import annotations

import ipaddress
import sys
from typing import TYPE_CHECKING, Final

import anyio
import click

from advisor.errors import AdvisorError
from advisor.units import MIB
from tools import allowed_tools
from tools.log import log_json
from tools.workers.runner import BUDGET_S, TIME_LIMIT_S

if TYPE_CHECKING:
    from tools.web.gate import Policy

EXIT_BAD_CALL: Final = 64
SHUTDOWN_S: Final = 10
MOST_CONNECTIONS: Final = 200
KEEP_ALIVE_S: Final = 5
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "TRAINFIT", "show_default": True}
)
@click.option("--tools", default="", help="Offer these only, separated by commas; all when empty. Or TRAINFIT_TOOLS.")
@click.option("--time-limit", default=TIME_LIMIT_S, type=click.FloatRange(0.01, 3600), help="Seconds a call may take.")
@click.option(
    "--budget",
    default=BUDGET_S,
    type=click.FloatRange(0.01, 3600),
    help="Seconds of processor time after which a search answers with what it has, with --http.",
)
@click.option("--http", is_flag=True, help="Serve /mcp and /v1 over HTTP instead of MCP over stdio.")
@click.option("--host", default="127.0.0.1", help="Address to bind with --http.")
@click.option("--port", default=8321, type=click.IntRange(1, 65_535), help="Port with --http.")
@click.option("--workers", default=2, type=click.IntRange(1, 64), help="Processes that compute, with --http.")
@click.option(
    "--kept-mib", default=64, type=click.IntRange(0, 65_536), help="MiB of answers kept, with --http; 0: none."
)
@click.option("--keys-file", help="File of bearer keys, name=key a line; without it, the variable TRAINFIT_KEYS.")
@click.option("--oauth-issuer", help="Authorization server whose access tokens are accepted, as they name it (iss).")
@click.option("--oauth-resource", help="This server's address as its callers know it, which tokens name (aud).")
@click.option("--oauth-keys", help="File of the issuer's public keys, a JSON Web Key Set; nothing is fetched.")
@click.option("--oauth-scope", multiple=True, help="What a token must grant; repeat it.")
@click.option("--allow-public", is_flag=True, help="Bind an address that other machines can reach, and ask for no key.")
@click.option("--allowed-host", multiple=True, help="Name that the Host header may carry; repeat it.")
@click.option("--origin", multiple=True, help="Web page that may ask (https://portal.example); repeat it.")
@click.option("--rate", type=click.IntRange(1), help="Requests a minute for each key, or each address without keys.")
@click.option("--log-level", default="info", type=click.Choice(LOG_LEVELS), help="Log lines are JSON, on stderr.")
def serve(
    tools: str,
    time_limit: float,
    budget: float,
    http: bool,
    host: str,
    port: int,
    workers: int,
    kept_mib: int,
    keys_file: str | None,
    oauth_issuer: str | None,
    oauth_resource: str | None,
    oauth_keys: str | None,
    oauth_scope: tuple[str, ...],
    allow_public: bool,
    allowed_host: tuple[str, ...],
    origin: tuple[str, ...],
    rate: int | None,
    log_level: str,
) -> None:
    """Serve the tools to MCP hosts (stdio), or over HTTP."""
    try:
        offered = allowed_tools(tools)
        if not http:
            from tools.mcp_door import serve_stdio  # noqa: PLC0415 - each door loads its own libraries only

            anyio.run(serve_stdio, offered, time_limit)
            return
        oauth = (oauth_issuer, oauth_resource, oauth_keys, oauth_scope)
        policy = _policy(host, keys_file, oauth, allow_public, allowed_host, origin, rate)
    except AdvisorError as error:
        click.echo(error.detail, err=True)
        sys.exit(EXIT_BAD_CALL)
    import uvicorn  # noqa: PLC0415

    from tools.http_door import build_app  # noqa: PLC0415

    log_json(log_level)
    click.echo(f"TrainFit at http://{host}:{port} (MCP at /mcp, JSON at /v1, /openapi.json)", err=True)
    uvicorn.run(
        build_app(
            tools=offered,
            policy=policy,
            time_limit_s=time_limit,
            budget_s=budget,
            kept_bytes=kept_mib * MIB,
            workers=workers,
        ),
        host=host,
        port=port,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _policy(
    host: str,
    keys_file: str | None,
    oauth: tuple[str | None, str | None, str | None, tuple[str, ...]],
    allow_public: bool,
    allowed_hosts: tuple[str, ...],
    origins: tuple[str, ...],
    rate: int | None,
) -> Policy:
    """Who may ask.

    Raises:
        AdvisorError: other machines could ask, nobody is asked for a key or a token, and that was not said to be
            meant; or what is needed to ask cannot be read.
    """
    from tools.web.gate import LOOPBACK, Policy  # noqa: PLC0415
    from tools.web.keys import read_keys  # noqa: PLC0415
    from tools.web.rate import RateLimit  # noqa: PLC0415
    from tools.web.tokens import read_tokens  # noqa: PLC0415

    keys, tokens = read_keys(keys_file), read_tokens(*oauth)
    if not (is_loopback(host) or keys or tokens or allow_public):
        detail = (
            f"{host} can be reached from other machines, and this server has no keys to ask for; bind 127.0.0.1, give "
            "--keys-file, TRAINFIT_KEYS or the --oauth options, or say --allow-public behind a gateway that asks"
        )
        raise AdvisorError("public_bind", detail)
    own = LOOPBACK if is_loopback(host) else ()
    hosts = (*own, *allowed_hosts) if own or allowed_hosts else ()
    return Policy(tuple(name.lower() for name in hosts), origins, keys, tokens, RateLimit(rate))
