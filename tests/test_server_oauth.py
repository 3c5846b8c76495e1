"""Access tokens of an authorization server: which are let in, which are refused, where a client learns to ask."""

import json
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.testclient import TestClient

from advisor.errors import AdvisorError
from tests.doors import command_line
from tools.http_door import build_app
from tools.web.gate import Policy
from tools.web.keys import read_keys
from tools.web.tokens import WELL_KNOWN, Tokens, read_tokens

ISSUER, RESOURCE = "https://login.example/realm", "https://trainfit.example"
#: Seconds; tokens are signed when the tests are collected, and must not expire before the last one runs.
HOUR = 3600
METADATA = RESOURCE + WELL_KNOWN
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MCP = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
SURFACES = (("/v1/list-catalog", {"kind": "frameworks"}), ("/mcp", LIST))

OURS = rsa.generate_private_key(public_exponent=65537, key_size=2048)
THEIRS = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_set(*keys: tuple[str, dict], file: Path) -> Path:
    file.write_text(json.dumps({"keys": [{"kid": name, "use": "sig", **key} for name, key in keys]}), encoding="utf-8")
    return file


def public(key) -> dict:
    return json.loads(RSAAlgorithm.to_jwk(key.public_key()))


@pytest.fixture
def tokens(tmp_path) -> Tokens:
    file = key_set(("first", public(OURS)), file=tmp_path / "keys.json")
    return read_tokens(ISSUER, RESOURCE, str(file), ("trainfit.read",))


def signed(key=OURS, algorithm="RS256", kid="first", **claims) -> str:
    good = {
        "iss": ISSUER,
        "aud": RESOURCE,
        "exp": time.time() + 2 * HOUR,
        "sub": "anna",
        "scope": "openid trainfit.read",
    }
    named = {name: value for name, value in {**good, **claims}.items() if value is not None}
    return jwt.encode(named, key, algorithm=algorithm, headers={"kid": kid} if kid else None)


def unsigned() -> str:
    return signed(key=None, algorithm="none")


def forged() -> str:
    """What another person's token says, under a signature of the issuer's."""
    said, _, _ = signed(sub="eve").rpartition(".")
    _, _, signature = signed().rpartition(".")
    return f"{said}.{signature}"


def posted(tokens, token, surface=SURFACES[0], **policy):
    path, body = surface
    headers = MCP | ({"authorization": f"Bearer {token}"} if token else {})
    with TestClient(build_app(policy=Policy(tokens=tokens, **policy)), base_url="http://127.0.0.1:8321") as asked:
        return asked.post(path, json=body, headers=headers)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_good_token_opens_both_surfaces(surface, tokens):
    assert posted(tokens, signed(), surface).status_code == 200


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("token", "words"),
    [
        (None, "no access token was given"),
        (signed(aud="https://other.example"), "issued for another resource"),
        (signed(aud=None), "lacks exp, iss or aud"),
        (signed(exp=time.time() - 120), "has expired"),
        (signed(exp=None), "lacks exp, iss or aud"),
        (signed(nbf=time.time() + HOUR), "not valid yet"),
        (signed(iss="https://evil.example"), "of another issuer"),
        (signed(key=THEIRS), "signature is not the issuer's"),
        (signed(key=THEIRS, kid="theirs"), "signed by a key that is not the issuer's"),
        (unsigned(), "algorithm is not the key's"),
        (signed(key="x" * 64, algorithm="HS256"), "algorithm is not the key's"),
        (signed(algorithm="PS256"), "algorithm is not the key's"),
        (forged(), "signature is not the issuer's"),
        ("not.a.token", "no JWT that can be read"),
        ("W" * 9000, "no JWT that can be read"),
    ],
)
def test_any_other_token_is_refused(token, words, surface, tokens):
    response = posted(tokens, token, surface)
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
    assert words in response.json()["detail"]
    challenge = response.headers["www-authenticate"]
    assert challenge.startswith(f'Bearer resource_metadata="{METADATA}", scope="trainfit.read"')
    assert ('error="invalid_token"' in challenge) == bool(token)


def test_a_token_header_nested_ten_thousand_deep_is_refused(tokens):
    deep = jwt.utils.base64url_encode(b"[" * 10_000).decode()
    assert posted(tokens, f"{deep}.e30.x").status_code == 401


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("claims", [{"scope": "openid"}, {"scope": None}, {"scope": 5}, {"scope": ["trainfit"]}])
def test_a_token_that_grants_too_little_is_told_what_is_needed(claims, surface, tokens):
    response = posted(tokens, signed(**claims), surface)
    assert (response.status_code, response.json()["code"]) == (403, "insufficient_scope")
    assert 'error="insufficient_scope"' in response.headers["www-authenticate"]
    assert 'scope="trainfit.read"' in response.headers["www-authenticate"]


def test_scopes_may_be_a_list_and_the_audience_one_of_several(tokens):
    token = signed(scope=None, scp=["trainfit.read"], aud=["https://other.example", RESOURCE])
    assert posted(tokens, token).status_code == 200


def test_the_only_key_serves_tokens_that_name_none(tokens):
    assert posted(tokens, signed(kid=None)).status_code == 200


def test_where_to_ask_for_a_token_is_open_to_everybody(tokens):
    asked = TestClient(build_app(policy=Policy(tokens=tokens)))
    assert asked.get(WELL_KNOWN).json() == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["trainfit.read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "TrainFit",
    }
    assert TestClient(build_app()).get(WELL_KNOWN).status_code == 404


def test_a_resource_with_a_path_is_described_below_the_well_known_one(tokens):
    under = Tokens(ISSUER, f"{RESOURCE}/mcp", tokens.keys)
    assert (
        TestClient(build_app(policy=Policy(tokens=under))).get(f"{WELL_KNOWN}/mcp").json()["resource"].endswith("/mcp")
    )
    assert f'resource_metadata="{METADATA}/mcp"' in posted(under, None).headers["www-authenticate"]


def test_keys_and_tokens_may_be_accepted_together(tokens, monkeypatch):
    monkeypatch.setenv("TRAINFIT_KEYS", "portal=correct-horse-battery")
    assert posted(tokens, "correct-horse-battery", keys=read_keys()).status_code == 200
    assert posted(tokens, signed(), keys=read_keys()).status_code == 200
    assert posted(tokens, "wrong-horse-battery", keys=read_keys()).status_code == 401


def test_the_log_names_whom_a_token_was_issued_to(tokens):
    assert tokens.holder(f"Bearer {signed()}") == "anna"
    assert tokens.holder(f"bearer {signed(sub=None, client_id='portal')}") == "portal"


def test_a_key_set_that_is_replaced_is_read_again_and_a_broken_one_is_not(tokens, caplog):
    file = tokens.keys.path
    key_set(("second", public(THEIRS)), file=file)
    assert tokens.holder(f"Bearer {signed(key=THEIRS, kid='second')}") == "anna"
    with pytest.raises(AdvisorError, match="not the issuer's"):
        tokens.holder(f"Bearer {signed()}")
    file.write_text("{", encoding="utf-8")
    assert tokens.holder(f"Bearer {signed(key=THEIRS, kid='second')}") == "anna"
    assert "not read again" in caplog.text


def test_keys_of_elliptic_curves_serve_too(tmp_path):
    curve = ec.generate_private_key(ec.SECP256R1())
    file = key_set(("curve", json.loads(ECAlgorithm.to_jwk(curve.public_key()))), file=tmp_path / "keys.json")
    accepted = read_tokens(ISSUER, RESOURCE, str(file), ())
    assert posted(accepted, signed(key=curve, algorithm="ES256", kid="curve")).status_code == 200


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [{"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"}],
        [json.loads(RSAAlgorithm.to_jwk(OURS))],
        [{**public(OURS), "use": "enc"}],
        [{"kty": "RSA"}],
        ["text"],
        None,
    ],
)
def test_a_key_set_without_public_signing_keys_is_refused_without_repeating_it(keys, tmp_path):
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": keys}), encoding="utf-8")
    with pytest.raises(AdvisorError) as refused:
        read_tokens(ISSUER, RESOURCE, str(file), ())
    assert refused.value.code == "unreadable_file"
    assert "c2VjcmV0" not in refused.value.detail


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((ISSUER, None, "keys.json", ()), "missing_argument"),
        ((None, None, None, ("read",)), "missing_argument"),
        (("login", RESOURCE, "keys.json", ()), "invalid_value"),
        ((ISSUER, "trainfit.example", "keys.json", ()), "invalid_value"),
        ((ISSUER, RESOURCE, "/nowhere/keys.json", ()), "unreadable_file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, code):
    with pytest.raises(AdvisorError) as refused:
        read_tokens(*options)
    assert refused.value.code == code


def test_a_public_address_may_ask_for_tokens_in_place_of_keys(tokens, capsys, monkeypatch):
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: None)
    monkeypatch.setattr("tools.serving.log_json", lambda _: None)
    options = ["--oauth-issuer", ISSUER, "--oauth-resource", RESOURCE, "--oauth-keys", str(tokens.keys.path)]
    assert command_line(["serve", "--http", "--host", "0.0.0.0", *options], capsys)[0] == 0
    assert command_line(["serve", "--http", "--host", "0.0.0.0", *options[:4]], capsys)[0] == 64
