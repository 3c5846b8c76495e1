"""OAuth access tokens: this server as a resource server, beside an authorization server that it never calls.

A token is a JWT signed by the issuer for this resource. The issuer's public keys stand in a file (a JSON Web Key Set),
which is read again when it has changed: keys are rotated by writing it. RFC 9728 says how a client learns where to ask
for a token, RFC 6750 how a refusal looks.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import jwt

from advisor.errors import AdvisorError

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
#: Signatures that only the issuer can make; with a shared secret, whoever can check could also sign.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
CLOCKS_APART_S: Final = 30
PRIVATE_MEMBERS: Final = ("d", "k")

logger = logging.getLogger("trainfit")


@dataclass
class KeyFile:
    """The public keys of an issuer, from a file that may be replaced while the server runs.

    Attributes:
        path: a JSON Web Key Set.
    """

    path: Path
    _keys: dict[str | None, jwt.PyJWK] = field(default_factory=dict)
    _written: int = 0

    def find(self, identity: str | None) -> jwt.PyJWK | None:
        """The key of that identity; the only one there is, for a token that names none."""
        self._refresh()
        return (
            next(iter(self._keys.values())) if identity is None and len(self._keys) == 1 else self._keys.get(identity)
        )

    def read(self) -> None:
        """Read the file.

        Raises:
            AdvisorError: it cannot be read, holds no public signing key, or holds a private or a shared one.
        """
        try:
            self._written = self.path.stat().st_mtime_ns
            listed = [key for key in json.loads(self.path.read_text(encoding="utf-8"))["keys"] if _signs(key)]
            keys = {key.get("kid"): jwt.PyJWK(key) for key in listed}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, jwt.PyJWTError) as error:
            detail = f"{self.path}: no JSON Web Key Set can be read there ({type(error).__name__})"
            raise AdvisorError("unreadable_file", detail) from None
        if not keys or any(name in key for key in listed for name in PRIVATE_MEMBERS):
            detail = f"{self.path}: expected public keys for signatures, and no private or shared ones"
            raise AdvisorError("unreadable_file", detail)
        self._keys = keys

    def _refresh(self) -> None:
        """What was read last stays when the file is gone or broken; the log says so."""
        try:
            if self.path.stat().st_mtime_ns != self._written:
                self.read()
        except (OSError, AdvisorError) as error:
            logger.warning("the issuer's keys were not read again: %s", error)


def _signs(key: Any) -> bool:
    return bool(key.get("use", "sig") == "sig")


@dataclass(frozen=True)
class Tokens:
    """Which access tokens are accepted.

    Attributes:
        issuer: the authorization server, as tokens name it under ``iss``.
        resource: this server's address as its callers know it, which tokens name under ``aud``.
        keys: the issuer's.
        scopes: what a token must grant, all of them.
    """

    issuer: str
    resource: str
    keys: KeyFile
    scopes: tuple[str, ...] = ()

    @property
    def metadata_path(self) -> str:
        """Where this server says which authorization server it trusts; RFC 9728 section 3.1."""
        return WELL_KNOWN + urlsplit(self.resource).path.rstrip("/")

    @property
    def metadata(self) -> dict[str, Any]:
        """What stands there."""
        return {
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "scopes_supported": list(self.scopes),
            "bearer_methods_supported": ["header"],
            "resource_name": "TrainFit",
        }

    def holder(self, authorization: str) -> str:
        """Whom an ``Authorization`` header's token was issued to.

        Raises:
            AdvisorError: ``unauthorized`` without a token that is good now and here, ``insufficient_scope`` when it
                does not grant enough.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise AdvisorError("unauthorized", "no access token was given; send a header 'Authorization: Bearer TOKEN'")
        claims = self._claims(token.strip())
        missing = [scope for scope in self.scopes if scope not in _granted(claims)]
        if missing:
            raise AdvisorError("insufficient_scope", f"the access token does not grant {', '.join(missing)}")
        return str(claims.get("sub") or claims.get("client_id") or "token")[:64]

    def challenge(self, error: AdvisorError, *, given: bool) -> str:
        """The ``WWW-Authenticate`` header of a refusal; ``given`` says whether there was a token at all."""
        origin = urlsplit(self.resource)
        said = {"resource_metadata": f"{origin.scheme}://{origin.netloc}{self.metadata_path}"}
        if self.scopes:
            said["scope"] = " ".join(self.scopes)
        if given:
            said["error"] = "invalid_token" if error.code == "unauthorized" else error.code
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in said.items())

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            key = self.keys.find(jwt.get_unverified_header(token).get("kid"))
            if key is None:
                raise AdvisorError("unauthorized", "the access token is signed by a key that is not the issuer's")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self.resource,
                issuer=self.issuer,
                leeway=CLOCKS_APART_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, RecursionError) as error:
            raise AdvisorError("unauthorized", f"the access token is refused: {_reason(error)}") from None
        return claims


def _granted(claims: dict[str, Any]) -> list[str]:
    """Scopes as RFC 9068 writes them, or as a list under ``scp``, as some issuers do."""
    given = claims.get("scope") or claims.get("scp")
    if isinstance(given, list):
        return [str(scope) for scope in given]
    return given.split() if isinstance(given, str) else []


_REASONS: Final = (
    (jwt.ExpiredSignatureError, "it has expired"),
    (jwt.ImmatureSignatureError, "it is not valid yet"),
    (jwt.InvalidAudienceError, "it was issued for another resource"),
    (jwt.InvalidIssuerError, "it is of another issuer"),
    (jwt.InvalidAlgorithmError, "its algorithm is not the key's"),
    (jwt.InvalidSignatureError, "its signature is not the issuer's"),
    (jwt.MissingRequiredClaimError, "it lacks exp, iss or aud"),
)


def _reason(error: Exception) -> str:
    """Why, in our words: the library's would repeat what the token says."""
    return next((said for kind, said in _REASONS if isinstance(error, kind)), "it is no JWT that can be read")


def read_tokens(issuer: str | None, resource: str | None, keys: str | None, scopes: tuple[str, ...]) -> Tokens | None:
    """The tokens that the options of the serve command describe; None when there are none.

    Raises:
        AdvisorError: some of the options are missing, an address is no URL, or the keys cannot be read.
    """
    if not (issuer or resource or keys or scopes):
        return None
    if not (issuer and resource and keys):
        detail = "access tokens need --oauth-issuer, --oauth-resource and --oauth-keys, all three"
        raise AdvisorError("missing_argument", detail)
    for option, url in (("--oauth-issuer", issuer), ("--oauth-resource", resource)):
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.netloc or parts.query or parts.fragment:
            detail = f"{option}: got {url[:80]!r}; accepted: https://name, with or without a path"
            raise AdvisorError("invalid_value", detail)
    file = KeyFile(Path(keys))
    file.read()
    return Tokens(issuer, resource, file, scopes)
