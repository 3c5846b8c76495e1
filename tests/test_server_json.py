"""The JSON API beside the tools: batch, catalog and schemas by GET, state, metrics, ids, log, OpenAPI."""

import json
import logging
import re

import jsonschema
import pytest
from starlette.testclient import TestClient

import advisor
from advisor.errors import AdvisorError
from tests.doors import by_python
from tools import TOOLS, find_tool
from tools.http_door import build_app
from tools.log import JsonLines
from tools.web import batch
from tools.web.gate import Policy
from tools.web.problem import problem
from tools.web.rate import RateLimit

DEVICES = {"kind": "devices", "query": "h100"}


@pytest.fixture(scope="module")
def http() -> TestClient:
    return TestClient(build_app(), raise_server_exceptions=False)


def send(http, *lines, kind=batch.MEDIA_TYPE):
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return http.post("/v1/batch", content=text.encode(), headers={"content-type": kind})


def replies(response):
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/jsonl"
    return [json.loads(line) for line in response.text.splitlines()]


def test_a_batch_answers_each_line_in_its_place(http):
    calls = [{"id": number, "tool": "list-catalog", "arguments": DEVICES} for number in range(20)]
    expected = by_python("list_catalog", DEVICES)[1]
    assert replies(send(http, *calls)) == [{"id": number, "status": 200, "answer": expected} for number in range(20)]


def test_a_line_that_is_wrong_has_its_own_problem(http):
    good = {"tool": "describe_model", "arguments": {"model": "70B"}}
    lines = [
        good,
        "not json",
        {"tool": "list_catalog", "arguments": {"kind": "device"}, "id": "a"},
        {"tool": "list_catlog"},
        {"tool": "list_catalog", "args": {}},
        [],
        {"tool": "list_catalog", "id": {}},
        {"tool": "list_catalog", "arguments": [1]},
        good,
    ]
    said = replies(send(http, *lines))
    assert [reply["status"] for reply in said] == [200, 400, 422, 422, 422, 422, 422, 422, 200]
    codes = [reply["error"]["code"] for reply in said[1:-1]]
    assert codes == [
        "malformed_json",
        "unknown_kind",
        "unknown_tool",
        "unknown_argument",
        "invalid_value",
        "invalid_value",
        "invalid_value",
    ]
    assert said[2]["id"] == "a"
    assert said[2]["error"]["suggestions"] == ["devices"]


def test_a_batch_has_a_largest_number_of_lines(http):
    response = send(http, *["{}"] * (batch.MOST_LINES + 1))
    assert (response.status_code, response.json()["code"]) == (422, "batch_too_long")
    assert "1,001 lines" in response.json()["detail"]


def test_a_batch_of_another_type_or_encoding_is_refused(http):
    assert send(http, "{}", kind="application/json").json()["code"] == "unsupported_media_type"
    broken = http.post("/v1/batch", content=b"\xff", headers={"content-type": batch.MEDIA_TYPE})
    assert (broken.status_code, broken.json()["code"]) == (400, "malformed_json")


def test_each_line_of_a_batch_counts_against_the_rate():
    rate = RateLimit(3, now=lambda: 0.0)
    limited = TestClient(build_app(policy=Policy(rate=rate)))
    said = replies(send(limited, *[{"tool": "list_catalog", "arguments": DEVICES}] * 4))
    assert sorted(reply["status"] for reply in said) == [200, 200, 429, 429]


def test_a_batch_beyond_its_time_is_refused_line_by_line(http, monkeypatch):
    monkeypatch.setattr(batch, "TIMES_THE_LIMIT", -1)
    (reply,) = replies(send(http, {"tool": "list_catalog", "arguments": DEVICES}))
    assert (reply["status"], reply["error"]["code"]) == (503, "time_limit")


def test_the_catalog_is_read_with_get(http):
    expected = by_python("list_catalog", DEVICES)[1]
    assert http.get("/v1/catalog/devices", params={"query": "h100"}).json() == expected
    assert http.get("/v1/catalog").json() == by_python("list_catalog", {})[1]
    assert http.get("/v1/catalog", params={"query": "x" * 201}).json()["pointer"] == "/query"


def test_schemas_are_read_with_get(http):
    every = http.get("/v1/schemas").json()
    assert list(every) == [tool.name for tool in TOOLS]
    one = http.get("/v1/schemas/explore").json()
    assert one == every["explore"]
    assert one["input"] == find_tool("explore").input_schema


@pytest.mark.parametrize(
    ("path", "code", "nearest"),
    [
        ("/v1/catalog/device", "unknown_kind", "devices"),
        ("/v1/catalog/device?query=h100", "unknown_kind", "devices"),
        ("/v1/schemas/explor", "unknown_tool", "explore"),
    ],
)
def test_a_name_in_the_path_that_does_not_exist_is_not_found(path, code, nearest, http):
    refused = http.get(path)
    assert (refused.status_code, refused.headers["content-type"]) == (404, "application/problem+json")
    problem = refused.json()
    assert (problem["status"], problem["code"], problem["suggestions"][0]) == (404, code, nearest)


def test_a_kind_that_no_path_could_name_is_not_found(http):
    assert http.get(f"/v1/catalog/{'k' * 41}").status_code == 404
    assert http.post("/v1/list-catalog", json={"kind": "device"}).status_code == 422, "an argument is no path"


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("/v1/catalog?qury=h100", "unknown_argument", "did you mean 'query'"),
        ("/v1/catalog/devices?limit=3", "unknown_argument", "accepted: query"),
        ("/v1/catalog/device?limit=3", "unknown_argument", "accepted: query"),
        ("/v1/catalog/devices?query=a&query=b", "invalid_value", "query: given twice"),
        ("/v1/schemas?tool=explore", "unknown_argument", "none is accepted here"),
        ("/v1/schemas/explore?x", "unknown_argument", "none is accepted here"),
    ],
)
def test_a_parameter_that_is_not_read_is_refused(path, code, said, http):
    refused = http.get(path)
    assert (refused.status_code, refused.json()["code"]) == (422, code)
    assert said in refused.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/estimate-memory?micro_batch=4", "/v1/list_catalog?x=1", "/v1/batch?x"])
def test_a_tool_reads_its_arguments_from_the_body_alone(path, http):
    refused = http.post(path, json={})
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_argument")
    assert "none is accepted here" in refused.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/catalog/devices", "/v1/schemas", "/v1/schemas/explore"])
def test_what_a_caller_holds_already_is_not_sent_again(path, http):
    tag = http.get(path).headers["etag"]
    again = http.get(path, headers={"if-none-match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert http.get(path, headers={"if-none-match": '"other"'}).status_code == 200


def test_equal_arguments_have_equal_hashes_whatever_their_order(http):
    def hash_of(arguments):
        return http.post("/v1/list-catalog", json=arguments).headers["inputs-hash"]

    assert hash_of(DEVICES) == hash_of(dict(reversed(DEVICES.items())))
    assert hash_of(DEVICES) != hash_of({"kind": "devices"})


def test_the_server_says_how_it_is(http):
    assert http.get("/healthz").json() == {"status": "ok"}
    assert http.get("/readyz").json() == {"status": "ready"}
    assert http.get("/version").json() == {"trainfit": advisor.__version__, "api": "v1"}


def test_a_server_whose_workers_have_not_started_is_not_ready():
    response = TestClient(build_app(workers=1)).get("/readyz")  # outside its lifespan no worker is started
    assert (response.status_code, response.json()["code"]) == (503, "not_ready")


def test_paths_with_a_name_in_them_are_counted_by_their_form():
    http = TestClient(build_app())
    for path in ("catalog/devices", "catalog/models", "catalog/made-up", "schemas/explore", "catalog/devices/made-up"):
        http.get(f"/v1/{path}")
    counted = re.findall(r'path="(.*?)",status="(\d+)"} (\d+)', http.get("/metrics").text)
    assert sorted(counted) == [
        ("/v1/catalog/{kind}", "200", "2"),
        ("/v1/catalog/{kind}", "404", "1"),
        ("/v1/schemas/{tool}", "200", "1"),
        ("other", "404", "1"),
    ]


def test_metrics_count_requests_and_calls_and_know_no_made_up_paths():
    http = TestClient(build_app())
    for _ in range(3):
        http.post("/v1/list-catalog", json=DEVICES)
    http.post("/v1/list-catalog", json={"kind": "device"})
    http.get("/v1/made-up")
    http.request("BREW", "/v1/made-up")
    text = http.get("/metrics").text
    assert 'trainfit_requests_total{method="POST",path="/v1/list-catalog",status="200"} 3' in text
    assert 'trainfit_requests_total{method="POST",path="/v1/list-catalog",status="422"} 1' in text
    assert 'trainfit_requests_total{method="GET",path="other",status="404"} 1' in text
    assert 'method="other"' in text
    assert 'trainfit_calls_total{tool="list_catalog",outcome="answer"} 1' in text
    assert 'trainfit_calls_total{tool="list_catalog",outcome="kept"} 2' in text
    assert 'trainfit_calls_total{tool="list_catalog",outcome="unknown_kind"} 1' in text
    assert 'trainfit_call_seconds_bucket{tool="list_catalog",le="+Inf"} 2' in text
    assert 'trainfit_call_seconds_count{tool="list_catalog"} 2' in text
    assert "trainfit_kept_answers 1" in text
    assert "made-up" not in text
    line = re.compile(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+-]+')
    assert all(line.fullmatch(each) for each in text.splitlines())


def test_a_request_keeps_its_id_and_a_strange_one_is_replaced(http):
    assert http.get("/version", headers={"x-request-id": "job-17.a"}).headers["x-request-id"] == "job-17.a"
    for strange in ("a b", "x" * 65, '"}'):
        assert re.fullmatch(
            "[0-9a-f]{12}", http.get("/version", headers={"x-request-id": strange}).headers["x-request-id"]
        )


def test_the_log_has_a_line_a_request_and_nothing_of_what_was_asked(http, caplog):
    with caplog.at_level(logging.INFO, logger="trainfit.requests"):
        http.post("/v1/list-catalog", json={"query": "payload-word"}, headers={"x-request-id": "seen"})
    (record,) = caplog.records
    line = json.loads(JsonLines().format(record))
    assert {"request_id": "seen", "method": "POST", "path": "/v1/list-catalog", "status": 200}.items() <= line.items()
    assert line["seconds"] >= 0
    assert "payload-word" not in json.dumps(line)


def test_a_traceback_stays_one_line_of_the_log(caplog):
    try:
        json.loads("{")
    except ValueError:
        logging.getLogger("trainfit").exception("failed")
    text = JsonLines().format(caplog.records[0])
    assert "\n" not in text
    assert "JSONDecodeError: Expecting" in json.loads(text)["traceback"]


def operations():
    for path, item in build_app().openapi()["paths"].items():
        yield from ((path, method, operation) for method, operation in item.items())


def test_every_operation_has_an_id_a_tag_a_summary_and_known_refusals():
    document = build_app().openapi()
    assert document["openapi"].startswith("3.1")
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids)) == len(TOOLS) + 9
    tags = {tag["name"] for tag in document["tags"]}
    for path, _, operation in operations():
        assert operation["summary"], path
        assert set(operation["tags"]) <= tags


def test_the_examples_of_the_document_obey_its_schemas():
    for path, method, operation in operations():
        if method == "post" and path != "/v1/batch":
            content = operation["requestBody"]["content"]["application/json"]
            for example in content["examples"].values():
                as_numbers = {key: 8192 if value == "8k" else value for key, value in example["value"].items()}
                jsonschema.validate(as_numbers, content["schema"])


def test_the_example_of_a_batch_is_answered(http):
    said = replies(send(http, batch.EXAMPLE))
    assert [(reply["id"], reply["status"]) for reply in said] == [("a", 200), ("b", 200)]


def test_a_caller_that_finds_the_server_busy_is_told_when_to_ask_again():
    for code in ("busy", "not_ready"):
        refused = problem(AdvisorError(code, "every worker is at work"))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert "retry-after" not in problem(AdvisorError("invalid_value", "no")).headers
