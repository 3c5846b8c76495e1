"""One answer and one error behind every door: Python, command line, MCP (both eras, both transports), HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from mcp import StdioServerParameters
from starlette.testclient import TestClient

import advisor
from advisor.api import OPERATIONS, Operation
from advisor.errors import AdvisorError
from tests.answers import memory_answer
from tests.doors import by_command_line, by_http, by_mcp, by_python, command_line
from tools import TOOLS, cli, find_tool, tool
from tools.http_door import build_app
from tools.schema import with_null
from tools.serving import is_loopback

ROOT = Path(__file__).parent.parent
ERAS = ("auto", "legacy", "2026-07-28")

SHAPES = {"layers": 4, "hidden": 512, "heads": 8, "kv_heads": 2, "ffn": 1024, "vocab": 32000}
FINE_TUNE = {"architecture": SHAPES, "hardware": "1x8 H100-80GB", "framework": "fsdp2", "zero_stage": 3}
ANSWERED = [
    ("describe_model", {"architecture": SHAPES}),
    ("list_catalog", {"kind": "devices", "query": "h100"}),
    ("estimate_memory", {**FINE_TUNE, "sequence_length": 2048, "lora_targets": ["attention"], "method": "lora"}),
    ("recommend_setup", {"architecture": SHAPES, "hardware": "1x2 H100-80GB", "framework": "fsdp2"}),
]
REFUSED = [
    ("describe_model", {"modl": "llama-3-8b"}),
    ("list_catalog", {"kind": "device"}),
    ("estimate_memory", {**FINE_TUNE, "micro_batch": -3}),
    ("estimate_memory", {**FINE_TUNE, "method": "ful"}),
    ("estimate_memory", {**FINE_TUNE, "tensor_parallel": 5}),
    ("recommend_setup", {**FINE_TUNE, "headroom": float("inf")}),
]


@pytest.fixture(scope="module")
def http() -> TestClient:
    return TestClient(build_app(), raise_server_exceptions=False)


@pytest.fixture(scope="module")
def address():
    """A real server on loopback."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "server.py", "--http", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        base = f"http://127.0.0.1:{port}"
        try:
            wait_until_alive(f"{base}/healthz")
            yield base
        finally:
            process.terminate()


def wait_until_alive(url: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"{url} did not answer")


def broken(monkeypatch, name: str, run) -> None:
    """Let an operation do something else."""
    old = OPERATIONS[name]
    monkeypatch.setattr(tool, "OPERATIONS", {**OPERATIONS, name: Operation(name, old.request, old.answer, run)})


@pytest.mark.parametrize(("name", "arguments"), ANSWERED, ids=lambda value: value if isinstance(value, str) else "")
def test_every_door_gives_the_same_answer(name, arguments, http, capsys):
    expected = by_python(name, arguments)
    assert expected[0] == "answer"
    assert by_command_line(name, arguments, capsys) == expected
    assert by_http(name, arguments, http) == expected
    assert [by_mcp(name, arguments, mode=era) for era in ERAS] == [expected] * len(ERAS)


@pytest.mark.parametrize(("name", "arguments"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_every_door_refuses_in_the_same_words(name, arguments, http, capsys):
    kind, error = by_python(name, arguments)
    assert kind == "error"
    assert by_command_line(name, arguments, capsys) == (kind, error)
    if "headroom" not in arguments:  # JSON has no infinity
        assert by_http(name, arguments, http) == (kind, error)
        assert by_mcp(name, arguments) == (kind, error)


@pytest.mark.parametrize("era", ERAS)
def test_a_real_process_answers_over_stdio(era):
    process = StdioServerParameters(command=sys.executable, args=["server.py"], cwd=ROOT)
    name, arguments = ANSWERED[0]
    assert by_mcp(name, arguments, target=process, mode=era) == by_python(name, arguments)


@pytest.mark.parametrize("era", ERAS)
def test_a_real_server_answers_mcp_over_http(era, address):
    for name, arguments in (ANSWERED[0], REFUSED[0]):
        assert by_mcp(name, arguments, target=f"{address}/mcp", mode=era) == by_python(name, arguments)


def test_a_real_server_answers_json_over_http(address):
    name, arguments = ANSWERED[0]
    body = json.dumps(arguments).encode()
    for path in ("/v1/describe-model", "/v1/describe_model"):
        request = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            assert ("answer", json.load(response)) == by_python(name, arguments)


def test_a_foreign_origin_is_refused_on_loopback(address):
    request = urllib.request.Request(
        f"{address}/mcp", b"{}", {"Content-Type": "application/json", "Origin": "https://elsewhere.example"}
    )
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=30)
    with refusal.value as error:
        assert error.code == 403


def test_answers_obey_their_published_schemas():
    for name, arguments in ANSWERED:
        jsonschema.validate(by_python(name, arguments)[1], find_tool(name).output_schema)


def test_an_error_result_carries_sentence_and_suggestions_as_text():
    kind, error = by_mcp("list_catalog", {"kind": "device"})
    assert kind == "error"
    assert error["suggestions"] == ["devices"]
    assert tool.error_text(AdvisorError("x", "no", suggestions=["yes"])) == "no\nSuggestions: yes"


def test_an_unknown_tool_is_refused_with_the_nearest_name(http, capsys):
    kind, error = by_mcp("estimate_memry", {})
    assert (kind, error["code"], error["suggestions"][0]) == ("error", "unknown_tool", "estimate_memory")
    assert command_line(["estimate-memry"], capsys)[0] == 64
    assert http.post("/v1/estimate-memry", json={}).json()["suggestions"][0] == "/v1/estimate-memory"


def test_a_path_is_read_on_the_callers_own_machine_only(tmp_path, http):
    config = tmp_path / "config.json"
    shapes = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "num_hidden_layers": 2}
    config.write_text(json.dumps({"model_type": "llama", "vocab_size": 100, **shapes}), encoding="utf-8")
    arguments = {"model": str(config)}
    assert by_python("describe_model", arguments)[0] == "answer"
    assert by_mcp("describe_model", arguments)[0] == "answer"
    assert by_http("describe_model", arguments, http)[0] == "error"


@pytest.mark.parametrize("name", ["estimate_memory", "recommend_setup"])
def test_a_sites_rules_are_never_read_for_a_caller_elsewhere(name, tmp_path, http):
    secret = tmp_path / "site.yaml"
    secret.write_text("secret: of the inside", encoding="utf-8")
    refusals = [
        by_http(name, {**FINE_TUNE, "rules": str(path)}, http) for path in (secret, tmp_path / "not-there.yaml")
    ]
    assert [(kind, error["pointer"]) for kind, error in refusals] == [("error", "/rules")] * 2
    assert "secret" not in json.dumps(refusals)
    assert refusals[0][1]["code"] == refusals[1][1]["code"], "whether a file exists must not show"


@pytest.mark.parametrize(
    ("name", "more"),
    [("estimate_memory", {"zero_stage": 3, "method": "lora", "lora_targets": ["attention"]}), ("recommend_setup", {})],
)
def test_the_next_calls_of_an_answer_are_complete(name, more):
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "sequence_length": "8k"}
    _, answer = by_python(name, job | more)
    assert answer["next_calls"]
    for following in answer["next_calls"]:
        kind, reply = by_python(following["tool"], following["arguments"])
        assert kind == "answer", reply


def test_a_recommended_layout_sent_back_gives_the_same_figures():
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "sequence_length": 8192}
    _, setup = by_python("recommend_setup", job)
    _, memory = by_python("estimate_memory", {**job, "framework": setup["framework"], **setup["layout"]})
    assert memory["peak_bytes"] == setup["estimate"]["peak_bytes"]
    assert memory["framework"] == setup["estimate"]["framework"] == setup["framework"]


@pytest.mark.parametrize("more", [{}, {"tensor_parallel": 2}, {"framework": "deepspeed", "zero_stage": 2}])
def test_an_estimate_says_the_framework_that_gives_its_figures_again(more):
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}
    _, first = by_python("estimate_memory", job | more)
    _, again = by_python("estimate_memory", {**job, "framework": first["framework"], **first["layout"]})
    assert (again["framework"], again["terms"]) == (first["framework"], first["terms"])


def test_a_fault_of_our_own_shows_an_id_and_nothing_of_the_inside(monkeypatch, http, caplog, capsys):
    def fail(*_):
        raise RuntimeError("secret of the inside")

    broken(monkeypatch, "list_catalog", fail)
    for kind, error in (by_mcp("list_catalog", {}), by_http("list_catalog", {}, http)):
        assert (kind, error["code"]) == ("error", "internal_error")
        assert "secret" not in json.dumps(error)
        assert error["detail"].split()[-1] in caplog.text
    assert command_line(["list-catalog"], capsys)[0] == 70


def test_a_fault_of_the_http_door_is_a_problem_too(monkeypatch, http, caplog):
    def fail(*_, **__):
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr("tools.http_door.parse_json", fail)
    response = http.post("/v1/list-catalog", json={})
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert "secret" not in response.text
    assert "secret" in caplog.text


def test_a_request_ends_at_its_time_limit(monkeypatch):
    entries = advisor.list_catalog(kind="frameworks")
    broken(monkeypatch, "list_catalog", lambda *_: time.sleep(0.5) or entries)
    slow = TestClient(build_app(time_limit_s=0.05))
    response = slow.post("/v1/list-catalog", json={})
    assert response.status_code == 503
    assert "time limit of 0.05 s" in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b" " * (1024 * 1024 + 1), "application/json", 413, "body_too_large"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b"{", "application/json", 400, "malformed_json"),
        (b"[" * 100_000, "application/json", 400, "malformed_json"),
        (b'{"kind": "devices", "kind": "models"}', "application/json", 400, "malformed_json"),
        (b'{"query": "\xff"}', "application/json", 400, "malformed_json"),
        (b"[1]", "application/json", 422, "invalid_value"),
        (b'{"query": NaN}', "application/json", 422, "invalid_value"),
    ],
)
def test_a_bad_body_is_a_problem(body, kind, status, code, http):
    response = http.post("/v1/list-catalog", content=body, headers={"content-type": kind})
    problem = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert set(problem) == {"type", "title", "status", "detail", "code", "pointer", "suggestions"}


def test_a_wrong_method_says_which_is_right(http):
    response = http.get("/v1/list-catalog")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert http.get("/mcp").status_code == 405


def test_the_openapi_document_shows_every_tool_as_hosts_see_it(http):
    document = http.get("/openapi.json").json()
    for each in TOOLS:
        post = document["paths"][f"/v1/{each.name.replace('_', '-')}"]["post"]
        assert post["operationId"] == each.name
        assert post["requestBody"]["content"]["application/json"]["schema"] == with_null(each.input_schema)
        assert post["responses"]["200"]["content"]["application/json"]["schema"] == each.output_schema
        assert "application/problem+json" in post["responses"]["422"]["content"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org"])
def test_an_address_that_others_can_reach_needs_permission(host, capsys):
    code, _, err = command_line(["serve", "--http", "--host", host], capsys)
    assert code == 64
    assert "--allow-public" in err
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_no_permission(host):
    assert is_loopback(host)


def test_json_lines_are_answered_line_by_line(capsys, tmp_path):
    batch = tmp_path / "batch.jsonl"
    batch.write_text('{"kind": "devices"}\n{"kind": "device"}\n\nnot json\n', encoding="utf-8")
    code, out, err = command_line(["call", "list_catalog", str(batch)], capsys)
    first, second, third = map(json.loads, out.splitlines())
    assert first["entries"]
    assert (second["code"], third["code"]) == ("unknown_kind", "malformed_json")
    assert code == 64
    assert second["detail"] in err


def test_call_reads_one_object_from_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(read=lambda: '{\n "kind": "devices"\n}\n'))
    code, out, _ = command_line(["call", "list-catalog"], capsys)
    assert code == 0
    assert json.loads(out) == by_python("list_catalog", {"kind": "devices"})[1]


def test_an_object_argument_may_stand_in_a_file(capsys, tmp_path):
    shapes = tmp_path / "shapes.json"
    shapes.write_text(json.dumps(SHAPES), encoding="utf-8")
    code, out, _ = command_line(["describe-model", "--architecture", f"@{shapes}", "--json"], capsys)
    assert code == 0
    assert json.loads(out) == by_python("describe_model", {"architecture": SHAPES})[1]
    assert command_line(["describe-model", "--architecture", "@/none"], capsys)[0] == 64


@pytest.mark.parametrize(
    ("gpu", "node", "code"),
    [
        ("comfortable", "comfortable", 0),
        ("fits", "comfortable", 0),
        ("tight", "fits", 1),
        ("comfortable", "tight", 1),
        ("needs_info", "comfortable", 1),
        ("fits", "needs_info", 1),
        ("does_not_fit", "needs_info", 2),
        ("comfortable", "does_not_fit", 2),
        ("invalid", "does_not_fit", 3),
    ],
)
def test_the_exit_code_follows_the_worse_of_the_gpus_verdict_and_the_nodes(gpu, node, code, monkeypatch, capsys):
    host = {"cpu_bytes_per_node": 0, "nvme_bytes_per_node": 0, "verdict": node}
    broken(monkeypatch, "estimate_memory", lambda *_: memory_answer(verdict=gpu, host=host))
    assert command_line(["estimate-memory"], capsys)[0] == code


def test_an_illegal_layout_exits_with_three(monkeypatch, capsys):
    def refuse(*_):
        raise AdvisorError("illegal_layout", "tensor_parallel: got 5; accepted: 1, 2, 4, 8", suggestions=["4", "8"])

    broken(monkeypatch, "estimate_memory", refuse)
    assert command_line(["estimate-memory"], capsys) == (
        3,
        "",
        "trainfit: tensor_parallel: got 5; accepted: 1, 2, 4, 8\n",
    )


def test_a_switch_alone_means_true(monkeypatch, capsys):
    seen = []

    def remember(request, _allow_paths):
        seen.append(request)
        raise AdvisorError("stop", "seen")

    broken(monkeypatch, "estimate_memory", remember)
    command_line(["estimate-memory", "--sequence-parallel", "--compile", "false", "--sequence-length", "8k"], capsys)
    assert (seen[0].sequence_parallel, seen[0].compile, seen[0].sequence_length) == (True, False, 8192)


def test_every_argument_of_every_tool_is_an_option():
    for each in TOOLS:
        command = cli.cli.commands[each.name.replace("_", "-")]
        assert {option.name for option in command.params} == {*each.input_schema["properties"], "as_json"}


def test_an_unknown_option_is_refused_with_the_nearest_name(capsys):
    code, out, err = command_line(["estimate-memory", "--micro-batc", "2"], capsys)
    assert (code, out) == (64, "")
    assert "did you mean 'micro_batch'" in err


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (["estimate-memory", "--micro-batc", "2", "--json"], "unknown_argument"),
        (["estimate-memory", "--json", "--model"], "invalid_value"),
        (["estimate-memry", "--json"], "unknown_tool"),
        (["describe-model", "--model", "lama-3-8b", "--json"], "unknown_model"),
        (["call", "estimate-memry"], "unknown_tool"),
        (["call", "explain", "/not/there"], "unreadable_file"),
    ],
)
def test_who_asks_for_json_is_refused_in_json(given, code, capsys):
    exit_code, out, err = command_line(given, capsys)
    error = json.loads(out)
    assert (exit_code, error["code"]) == (64, code)
    assert set(error) == {"code", "detail", "pointer", "suggestions"}
    assert error["detail"] in err


def test_the_version_is_the_one_of_the_project(capsys):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{advisor.__version__}"' in project
    assert advisor.__version__ in command_line(["--version"], capsys)[1]


def test_a_foreign_package_called_tools_stops_the_server(tmp_path):
    (tmp_path / "tools.py").write_text("", encoding="utf-8")
    (tmp_path / "server.py").write_text((ROOT / "server.py").read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run([sys.executable, "server.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is not TrainFit's" in done.stderr


def test_the_stdio_server_starts_without_what_it_does_not_need():
    probe = "import server, sys; print([n for n in ('fastapi','jsonschema','numpy','yaml') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_advisor_loads_nothing_else():
    seen = "'pydantic' in sys.modules, callable(advisor.list_catalog), 'recommend_setup' in dir(advisor)"
    probe = f"import advisor, sys; print({seen})"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


def test_the_public_functions_are_those_of_the_doors():
    for name in OPERATIONS:
        assert callable(getattr(advisor, name))
    with pytest.raises(AttributeError, match="no attribute 'estimate_memry'"):
        advisor.estimate_memry  # noqa: B018
    assert advisor.list_catalog(kind="devices").entries
