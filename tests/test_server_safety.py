"""Each guard of the server, shown refusing; and what it lets through."""

import json
from pathlib import Path

import anyio
import pytest
from starlette.testclient import TestClient

from advisor.errors import AdvisorError
from tests.doors import command_line
from tools.http_door import build_app
from tools.web.gate import BODY_LIMIT, LOOPBACK, Gate, Policy
from tools.web.keys import VARIABLE, Keys, read_keys
from tools.web.rate import RateLimit

KEY = "correct-horse-battery"
BEARER = {"authorization": f"Bearer {KEY}"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MCP = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Keys:
    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    file.write_text(f"# who may ask\nportal={KEY}\nteam-2={KEY}-too, team_3={KEY}-three\n", encoding="utf-8")
    return read_keys(str(file))


def client(**policy) -> TestClient:
    """A client of a server with that policy, inside its lifespan when used with ``with``."""
    return TestClient(build_app(policy=Policy(**policy)), base_url="http://127.0.0.1:8321")


def by_mcp(asked, tool, arguments) -> dict:
    """The error that a call over MCP ends in."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    with asked:
        said = asked.post("/mcp", json=call, headers=MCP).text
    result = json.loads(said.partition("data: ")[2])["result"]
    assert result["isError"]
    return result["_meta"]["trainfit/error"]


def code(response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


@pytest.mark.parametrize("path", ["/v1/list-catalog", "/mcp"])
def test_a_foreign_host_is_refused(path):
    asked = client(hosts=LOOPBACK)
    assert code(asked.post(path, json={}, headers={"host": "rebound.example:8321"})) == (421, "foreign_host")
    assert code(asked.post(path, json={}, headers={"host": "127.0.0.1.evil.example"})) == (421, "foreign_host")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8321", "[::1]:8321", "[::1]", "LOCALHOST"])
def test_the_names_of_this_machine_are_let_in(host):
    assert client(hosts=LOOPBACK).get("/version", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", "http://127.0.0.1:9999", "http://["])
@pytest.mark.parametrize("path", ["/v1/list-catalog", "/mcp"])
def test_a_foreign_origin_is_refused(path, origin):
    assert code(client().post(path, json={}, headers={"origin": origin})) == (403, "foreign_origin")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8321", "https://portal.example"])
def test_pages_of_the_server_and_accepted_ones_may_ask(origin):
    asked = client(origins=("https://portal.example",))
    assert asked.post("/v1/list-catalog", json={}, headers={"origin": origin}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/list-catalog", "/mcp", "/v1/batch"])
@pytest.mark.parametrize("given", ["", "Bearer wrong-key-wrong-key", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer é"])
def test_a_missing_or_wrong_key_is_refused(path, given, keys):
    headers = {"authorization": given.encode("utf-8")} if given else {}
    response = client(keys=keys).post(path, json={}, headers=headers)
    assert code(response) == (401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/metrics", "/version", "/openapi.json", "/v1/catalog"])
def test_what_is_read_needs_the_key_too(path, keys):
    asked = client(keys=keys)
    assert code(asked.get(path)) == (401, "unauthorized")
    assert asked.get(path, headers=BEARER).status_code == 200


def test_orchestrators_need_no_key(keys):
    asked = client(keys=keys)
    assert [asked.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]


def test_a_known_key_opens_both_surfaces(keys):
    with client(keys=keys) as asked:
        assert asked.post("/v1/list-catalog", json={"kind": "frameworks"}, headers=BEARER).status_code == 200
        assert asked.post("/mcp", json=LIST, headers={**BEARER, **MCP}).status_code == 200


def test_keys_are_told_apart_and_kept_as_digests(keys):
    assert [keys.holder(f"Bearer {KEY}{more}") for more in ("", "-too", "-three", "-four")] == [
        "portal",
        "team-2",
        "team_3",
        None,
    ]
    assert KEY not in repr(keys)


def test_every_key_is_compared_whichever_fits(keys, monkeypatch):
    compared = []
    monkeypatch.setattr("tools.web.keys.hmac.compare_digest", lambda _, known: compared.append(known) or True)
    keys.holder(f"Bearer {KEY}")
    assert len(compared) == 3


def test_keys_may_stand_in_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, f"portal={KEY}")
    assert read_keys().holder(f"bearer {KEY}") == "portal"
    monkeypatch.delenv(VARIABLE)
    assert not read_keys()


@pytest.mark.parametrize("text", ["portal", "portal=short", "=long-enough-for-a-key", "a b=long-enough-for-a-key", ""])
def test_a_file_that_holds_no_proper_keys_is_refused_without_repeating_it(text, tmp_path):
    file = tmp_path / "keys.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(AdvisorError) as refused:
        read_keys(str(file))
    assert "long-enough" not in refused.value.detail
    assert "short" not in refused.value.detail


def test_a_keys_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(AdvisorError, match="keys cannot be read"):
        read_keys(str(tmp_path / "none.txt"))


def test_a_caller_beyond_its_rate_waits_and_others_do_not(keys):
    asked = client(keys=keys, rate=RateLimit(2, now=lambda: 0.0))
    answers = [asked.get("/version", headers=BEARER) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert code(answers[2]) == (429, "rate_limited")
    assert answers[2].headers["retry-after"] == "30"
    other = {"authorization": f"Bearer {KEY}-too"}
    assert asked.get("/version", headers=other).status_code == 200


def test_a_rate_fills_again_and_forgets_old_callers(monkeypatch):
    clock = iter(range(1000))
    rate = RateLimit(60, now=lambda: float(next(clock)))
    for _ in range(200):
        rate.take("same")
    monkeypatch.setattr("tools.web.rate.MOST_CALLERS", 3)
    for number in range(10):
        rate.take(f"caller {number}")
    assert len(rate._left) == 3


def test_a_large_body_is_refused_on_both_surfaces():
    body = b" " * (10 * BODY_LIMIT)
    for path in ("/v1/list-catalog", "/mcp", "/v1/batch"):
        response = client().post(path, content=body, headers={"content-type": "application/json"})
        assert code(response) == (413, "body_too_large")


def test_a_body_that_does_not_arrive_is_given_up():
    async def never():
        await anyio.sleep_forever()

    said = []

    async def send(message):
        said.append(message)

    gate = Gate(app=None, policy=Policy(body_time_s=0.01))
    anyio.run(gate, {"type": "http", "path": "/v1/list-catalog", "headers": [], "method": "POST"}, never, send)
    assert said[0]["status"] == 408
    assert json.loads(said[1]["body"])["code"] == "request_timeout"


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_ten_thousand_deep_is_refused_on_both_surfaces(opening):
    closing = {"[": "]", '{"a":': "}"}[opening]
    deep = opening * 10_000 + "1" + closing * 10_000
    with client() as asked:
        plain = asked.post("/v1/list-catalog", content=deep, headers={"content-type": "application/json"})
        wrapped = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_catalog","arguments":'
        by_mcp = asked.post(
            "/mcp", content=f'{wrapped}{{"kind":{deep}}}}}}}', headers={"content-type": "application/json", **MCP}
        )
    assert code(plain) in {(400, "malformed_json"), (422, "invalid_value")}
    assert 400 <= by_mcp.status_code < 500
    assert "Traceback" not in by_mcp.text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": "x" * 300}, "query"),
        ({"query": [0] * 10_001}, "10,000"),
        ({"query": "x" * 1_000_001}, "1,000,000"),
    ],
)
def test_lists_and_texts_have_a_largest_size(arguments, words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tools.web.gate.BODY_LIMIT", 4 * BODY_LIMIT)
        response = client().post("/v1/list-catalog", json=arguments)
    assert code(response) == (422, "invalid_value")
    assert words in response.json()["detail"]


@pytest.mark.parametrize("arguments", [{"model": "/etc/passwd"}, {"model": "./config.json"}, {"model": "../x.json"}])
def test_a_path_in_an_argument_is_refused_over_http(arguments):
    response = client().post("/v1/describe-model", json=arguments)
    assert response.status_code == 422
    assert "root:" not in response.text


@pytest.mark.parametrize("tool", ["estimate_memory", "recommend_setup"])
def test_a_rules_file_is_refused_on_both_surfaces_whether_it_exists_or_not(tool):
    refused = set()
    for file in ("/etc/passwd", "/no/such/file.yaml"):
        arguments = {"model": "7B", "hardware": "8 H100", "rules": file}
        refused.add(code(client().post(f"/v1/{tool.replace('_', '-')}", json=arguments)))
        refused.add(by_mcp(client(), tool, arguments)["code"])
    assert refused == {(422, "path_not_allowed"), "path_not_allowed"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("recommend_setup", {"model": "llama-3-8b", "hardware": "8 H100"}),
        ("find_limit", {"case": {"model": "llama-3-8b", "hardware": "8 H100"}, "of": "gpus"}),
    ],
)
def test_a_search_beyond_its_budget_is_refused_on_both_surfaces(tool, arguments):
    asked = TestClient(build_app(budget_s=1e-9), base_url="http://127.0.0.1:8321")
    assert code(asked.post(f"/v1/{tool.replace('_', '-')}", json=arguments)) == (422, "beyond_budget")
    assert by_mcp(asked, tool, arguments)["code"] == "beyond_budget"


def test_a_sweep_beyond_its_budget_is_refused_over_http():
    sweep = {"case": {"model": "7B", "hardware": "8 H100"}, "vary": {"micro_batch": [1, 2]}, "budget_s": 60}
    response = client().post("/v1/explore", json=sweep)
    assert code(response) == (422, "invalid_value")
    assert response.json()["pointer"] == "/budget_s"


def test_a_public_address_needs_keys_or_a_word(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: None)
    monkeypatch.setattr("tools.serving.log_json", lambda _: None)
    public = ["serve", "--http", "--host", "0.0.0.0"]
    assert command_line(public, capsys)[0] == 64
    assert command_line([*public, "--allow-public"], capsys)[0] == 0
    file = tmp_path / "keys.txt"
    file.write_text(f"portal={KEY}", encoding="utf-8")
    assert command_line([*public, "--keys-file", str(file)], capsys)[0] == 0
    monkeypatch.setenv(VARIABLE, f"portal={KEY}")
    assert command_line(public, capsys)[0] == 0


def test_no_text_of_a_caller_is_evaluated_or_unpickled():
    sources = [path.read_text(encoding="utf-8") for path in Path("tools").rglob("*.py")]
    assert len(sources) > 20
    for word in ("pickle", "marshal", "eval(", "exec(", "import requests", "urllib.request"):
        assert not [source for source in sources if word in source]
