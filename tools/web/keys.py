"""Bearer keys: who a caller is, by a secret that is compared in constant time and never logged."""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.errors import AdvisorError

VARIABLE: Final = "TRAINFIT_KEYS"
SHORTEST: Final = 16


@dataclass(frozen=True)
class Keys:
    """The keys that are accepted, as digests.

    Attributes:
        digests: SHA-256 of each key, by the name of whom it was given to.
    """

    digests: tuple[tuple[str, bytes], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.digests)

    def holder(self, authorization: str) -> str | None:
        """Whose key an ``Authorization`` header carries; None when it carries none that is known.

        Every key is compared, whichever fits, so that the time taken tells nothing.
        """
        scheme, _, given = authorization.partition(" ")
        digest = _digest(given.strip())
        found = [name for name, known in self.digests if hmac.compare_digest(digest, known)]
        return found[0] if found and scheme.lower() == "bearer" else None


def read_keys(file: str | None = None) -> Keys:
    """The keys of a file, else those in the environment variable ``TRAINFIT_KEYS``; none when neither is there.

    Both hold ``name=key`` items, one a line or separated by commas; a line that begins with # says nothing.

    Raises:
        AdvisorError: the file cannot be read, or an item is not ``name=key`` with a key of 16 characters or more.
            The error never repeats a key.
    """
    if file is None:
        return _parsed(os.environ.get(VARIABLE, ""), VARIABLE)
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise AdvisorError("unreadable_file", f"{file}: keys cannot be read ({type(error).__name__})") from None
    keys = _parsed(text, file)
    if not keys:
        raise AdvisorError("unreadable_file", f"{file}: holds no key; write name=key, one a line")
    return keys


def _parsed(text: str, origin: str) -> Keys:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    items = [item.strip() for line in lines for item in line.split(",") if item.strip()]
    return Keys(tuple(_item(item, number, origin) for number, item in enumerate(items, start=1)))


def _item(item: str, number: int, origin: str) -> tuple[str, bytes]:
    name, equals, key = (part.strip() for part in item.partition("="))
    if not (equals and name.replace("-", "").replace("_", "").isalnum() and key.isascii() and len(key) >= SHORTEST):
        detail = f"{origin}: item {number} is not name=key with a key of {SHORTEST} ASCII characters or more"
        raise AdvisorError("invalid_value", detail)
    return name, _digest(key)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8")).digest()
