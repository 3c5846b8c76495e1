"""`python -m tests.generate`: rewrites what is generated: outputs in pages, schemas, OpenAPI, tool snapshots.

An example in README.md is a fence of ``sh`` or ``python`` that is followed by its output between two markers. It is
run as it stands there, so what a reader sees is what the product says.
"""

import contextlib
import io
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from advisor.constraints.rules import json_schema
from tests import article_pages, reference_pages
from tests.experts import page_of_jobs
from tests.planner import page_of_planner
from tests.published import page_of_published
from tools import TOOLS
from tools.cli import main as trainfit
from tools.http_door import build_app
from tools.tool import Tool

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RECOMMENDATIONS = ROOT / "docs" / "recommendations.md"
PLANNER = ROOT / "docs" / "planner.md"
EXAMPLE = re.compile(
    r"```(?P<language>sh|python)\n(?P<code>[^`]*)```\n\n<!-- output -->\n.*?<!-- /output -->", re.DOTALL
)
JOBS = re.compile(r"(?<=<!-- jobs -->\n).*(?=<!-- /jobs -->)", re.DOTALL)
LAYOUTS = re.compile(r"(?<=<!-- published -->\n).*(?=<!-- /published -->)", re.DOTALL)


def generated() -> Mapping[Path, str]:
    """Every generated file with the text that it must hold."""
    return {
        README: EXAMPLE.sub(with_output, README.read_text(encoding="utf-8")),
        RECOMMENDATIONS: JOBS.sub(lambda _: page_of_jobs() + "\n", RECOMMENDATIONS.read_text(encoding="utf-8")),
        PLANNER: with_planner(PLANNER.read_text(encoding="utf-8")),
        **article_pages.pages(),
        **reference_pages.pages(),
        ROOT / "rules" / "schema.json": json.dumps(json_schema(), indent=1, sort_keys=True) + "\n",
        ROOT / "docs" / "openapi.json": json.dumps(build_app().openapi(), indent=1, ensure_ascii=False) + "\n",
        **{ROOT / "tests" / "snapshots" / f"{tool.name}.json": face(tool) for tool in TOOLS},
    }


def with_planner(page: str) -> str:
    """The page of the planner with both of its generated parts."""
    page = LAYOUTS.sub(lambda _: page_of_published() + "\n", page)
    return JOBS.sub(lambda _: page_of_planner() + "\n", page)


def face(tool: Tool) -> str:
    """What hosts see of a tool."""
    shown = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input": tool.input_schema,
        "output": tool.output_schema,
    }
    return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


def with_output(example: re.Match[str]) -> str:
    """An example of the README, followed by what it prints."""
    language, code = example["language"], example["code"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        (run_python if language == "python" else run_command)(code)
    output = "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
    return f"```{language}\n{code}```\n\n<!-- output -->\n```text\n{output}\n```\n<!-- /output -->"


def run_python(code: str) -> None:
    """Run a Python example; what it prints goes to standard output."""
    exec(compile(code, "README.md", "exec"), {})


def run_command(code: str) -> None:
    """Run one ``trainfit`` command, or the one behind ``make demo``."""
    line = demo_command() if code.strip() == "make demo" else code
    program, *arguments = shlex.split(line.replace("\\\n", " "))
    assert program == "trainfit", f"only trainfit is run here, not {program}"
    with contextlib.suppress(SystemExit):  # the exit code is the verdict
        trainfit(arguments)


def demo_command() -> str:
    """The trainfit command in the Makefile's demo target."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return next(line.removeprefix("\t$(BIN)/") for line in makefile.splitlines() if "/trainfit recommend-setup" in line)


def main() -> None:
    """Write the files that are not up to date, remove pages of what is gone, and name them."""
    for path, text in generated().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    for path in reference_pages.leftover():
        path.unlink()
        print(f"{path.relative_to(ROOT)} removed")


if __name__ == "__main__":
    main()
