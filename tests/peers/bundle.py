"""`python -m tests.peers.bundle`: the MCP bundle, which desktop hosts install with one click.

A bundle is a zip of the manifest and of what a checkout needs to run; the host's uv installs what pyproject.toml names.
Where npm is installed, the format's own tool validates the manifest first.
"""

import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "docs" / "deploy" / "manifest.json"
HELD = ("pyproject.toml", "README.md", "LICENSE", "server.py", "advisor", "tools", "rules")
VALIDATOR = "@anthropic-ai/mcpb@2.1.2"


def files() -> Iterator[Path]:
    """What the bundle holds beside its manifest."""
    for name in HELD:
        path = ROOT / name
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (each for each in found if each.is_file() and "__pycache__" not in each.parts)


def bundle(folder: Path) -> Path:
    """Write the bundle into a folder."""
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f"{manifest['name']}-{manifest['version']}.mcpb"
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(MANIFEST, "manifest.json")
        for file in files():
            archive.write(file, file.relative_to(ROOT).as_posix())
    return written


def main() -> None:
    """Validate, write, say where."""
    npx = shutil.which("npx")
    if npx:
        subprocess.run([npx, "--yes", VALIDATOR, "validate", MANIFEST], check=True)
    written = bundle(ROOT / "dist")
    validated = "validated" if npx else "not validated, for npm is not installed"
    print(f"{written.relative_to(ROOT)}: {written.stat().st_size:,} bytes; its manifest was {validated}")


if __name__ == "__main__":
    main()
