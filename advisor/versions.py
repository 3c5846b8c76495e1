"""Which edition of the code, the catalog and the rules an answer was made with."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

import advisor


def versions() -> dict[str, str]:
    """The editions behind an answer: ``trainfit`` (release), ``catalog`` and ``rules`` (hashes of their files)."""
    from advisor.catalog.entries import catalog_version  # noqa: PLC0415 - the catalog is loaded when first needed

    return {"trainfit": advisor.__version__, "catalog": catalog_version(), "rules": rules_version()}


@cache
def rules_version() -> str:
    """A short hash over the names and bytes of all rule files."""
    from advisor.constraints.rulebook import rules_folder  # noqa: PLC0415 - as above

    folder = rules_folder()
    digest = sha256()
    for path in sorted(folder.rglob("*.yaml")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
