"""An argument that stands in a header as well: both must say the same, in the newer era over HTTP and nowhere else."""

import json

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.shared.inbound import find_invalid_x_mcp_header
from starlette.testclient import TestClient

from tests.doors import by_python, mcp_over_http
from tools import TOOLS
from tools.http_door import build_app
from tools.mcp_door import build_server, definition
from tools.mcp_headers import listed_schema

NEWER, OLDER = "2026-07-28", "2025-11-25"
DEVICES = {"kind": "devices", "query": "h100"}
HELLO = "=?base64?SGVsbG8=?="


@pytest.fixture(scope="module")
def http():
    with TestClient(build_app()) as client:
        yield client


def called(http, arguments, headers=(), name="list_catalog", version=NEWER) -> httpx2.Response:
    """A call as it stands on the wire."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    envelope = {"_meta": meta} if version == NEWER else {}
    params = {"name": name, "arguments": arguments, **envelope}
    newer = [("mcp-method", "tools/call"), ("mcp-name", name)] if version == NEWER else []
    standing = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", version), *newer]
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return http.post("/mcp", json=request, headers=[*standing, *headers])


def kind(value):
    return ("Mcp-Param-Kind", value)


def test_the_kind_of_a_catalog_stands_in_a_header_and_nothing_else_does():
    annotated = {
        (tool.name, name): field["x-mcp-header"]
        for tool in TOOLS
        for name, field in listed_schema(tool, NEWER)["properties"].items()
        if "x-mcp-header" in field
    }
    assert annotated == {("list_catalog", "kind"): "Kind"}


def test_what_is_listed_is_what_the_protocol_allows():
    assert [find_invalid_x_mcp_header(listed_schema(tool, NEWER)) for tool in TOOLS] == [None] * len(TOOLS)
    assert all(set(tool.headers) <= set(tool.input_schema["properties"]) for tool in TOOLS)


def test_the_older_era_is_shown_nothing_of_it():
    shown = "".join(definition(tool, OLDER).model_dump_json() for tool in TOOLS)
    assert "x-mcp-header" not in shown


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        (DEVICES, [kind("devices")]),
        (DEVICES, [("mcp-param-kind", "devices")]),
        (DEVICES, [kind("=?base64?ZGV2aWNlcw==?=")]),
        ({}, []),
        ({"kind": None, "query": "h100"}, []),
    ],
)
def test_a_header_that_says_what_the_body_says_is_answered(arguments, headers, http):
    response = called(http, arguments, headers)
    assert response.status_code == 200
    assert response.json()["result"]["structuredContent"] == by_python("list_catalog", arguments)[1]


@pytest.mark.parametrize(
    ("arguments", "headers", "said"),
    [
        (DEVICES, [], "is missing"),
        (DEVICES, [kind("models")], "does not match"),
        (DEVICES, [kind("Devices")], "does not match"),
        (DEVICES, [kind("devices"), kind("devices")], "more than once"),
        ({"kind": "Hello"}, [kind("=?base64?SGVsbG8?=")], "malformed base64"),
        ({"kind": "Hello"}, [kind("=?base64?SGVs!!!bG8=?=")], "malformed base64"),
        ({}, [kind("devices")], "is absent"),
        ({"kind": {"not": "text"}}, [kind("devices")], "does not match"),
    ],
)
def test_a_header_that_says_other_than_the_body_is_refused(arguments, headers, said, http):
    response = called(http, arguments, headers)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["data"]["code"]) == (400, -32020, "header_mismatch")
    assert said in error["message"]


def test_a_refusal_says_the_header_to_send(http):
    missing = called(http, DEVICES).json()["error"]
    assert "such a call carries 'Mcp-Param-Kind: devices'" in missing["message"]
    assert missing["data"]["suggestions"] == ["Mcp-Param-Kind: devices"]
    assert "'Mcp-Param-Kind: =?base64?" in called(http, {"kind": "设备"}).json()["error"]["message"]
    assert "such a call carries no such header" in called(http, {}, [kind("devices")]).json()["error"]["message"]


def test_a_refusal_stays_short_whatever_was_sent(http):
    assert len(called(http, {"kind": "k" * 100_000}).text) < 2000


@pytest.mark.parametrize("value", [HELLO, "SGVsbG8=", "=?base64?SGVsbG8="])
def test_only_a_whole_wrapper_is_decoded(value, http):
    said = "Hello" if value == HELLO else value
    response = called(http, {"kind": said}, [kind(value)])
    assert response.status_code == 200
    assert said in response.json()["result"]["content"][0]["text"]  # refused by the tool, which has no such kind


def test_a_caller_of_the_older_era_is_never_refused_for_it(http):
    for headers in ([], [kind("models")], [kind("=?base64?!?=")]):
        response = called(http, DEVICES, headers, version=OLDER)
        assert response.status_code == 200
        assert "H100" in response.text


def test_tools_without_such_an_argument_need_no_header(http):
    response = called(http, {"id": "zero"}, [kind("devices")], name="explain")
    assert response.status_code == 200


def test_a_client_that_has_listed_the_tools_sends_the_header():
    seen = []

    async def ask():
        async with mcp_over_http(build_app(), seen) as client:
            await client.list_tools()
            return await client.call_tool("list_catalog", DEVICES)

    assert anyio.run(ask).structured_content == by_python("list_catalog", DEVICES)[1]
    assert seen[-1].headers["mcp-param-kind"] == "devices"


def test_a_client_that_has_not_listed_them_lists_them_and_asks_again():
    seen = []

    async def ask():
        async with mcp_over_http(build_app(), seen) as client:
            return await client.call_tool("list_catalog", DEVICES)

    assert anyio.run(ask).structured_content == by_python("list_catalog", DEVICES)[1]
    methods = [json.loads(request.content)["method"] for request in seen]
    assert methods == ["server/discover", "tools/call", "tools/list", "tools/call"]


def test_without_http_there_is_no_header_to_send():
    async def ask():
        async with Client(build_server(allow_paths=True), mode=NEWER) as client:
            return await client.call_tool("list_catalog", DEVICES)

    assert not anyio.run(ask).is_error
