"""What is written for those who install and run the server says what the server does."""

import json
import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import advisor
from tests.snippets import servers, stdio_commands
from tools.serving import serve
from tools.web.problem import STATUS

ROOT = Path(__file__).parent.parent


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def accepted(arguments):
    """Whether the serve command takes these arguments."""
    serve.make_context("trainfit", list(arguments))
    return True


def test_every_snippet_starts_the_installed_server_or_names_its_address():
    assert len(servers()) == 9
    assert {tuple(command) for _, command in stdio_commands()} == {("trainfit", "serve")}
    shared = [server for _, server in servers() if "url" in server]
    assert {server["url"] for server in shared} == {"https://trainfit.example/mcp"}
    assert {tuple(server["headers"].items()) for server in shared} == {(("Authorization", "Bearer KEY"),)}


def test_the_registry_entry_is_of_this_release_and_starts_the_server():
    entry = json.loads(text("docs/deploy/server.json"))
    assert entry["version"] == advisor.__version__
    (package,) = entry["packages"]
    assert (package["identifier"], package["version"]) == ("trainfit", advisor.__version__)
    assert [argument["value"] for argument in package["packageArguments"]] == ["serve"]
    assert len(entry["description"]) <= 100
    assert f'io.modelcontextprotocol.server.name="{entry["name"]}"' in text("Dockerfile")
    assert f"<!-- mcp-name: {entry['name']} -->" in text("README.md")


def test_the_image_is_not_root_and_starts_with_options_that_exist():
    lines = text("Dockerfile").splitlines()
    assert any(re.fullmatch(r"USER [1-9]\d*:[1-9]\d*", line) for line in lines)
    command = next(line for line in lines if line.startswith("CMD "))
    assert accepted(json.loads(command.removeprefix("CMD ")))
    copied = [line.split()[1] for line in lines if line.startswith("COPY") and "--from" not in line]
    assert all((ROOT / name).exists() for name in copied)


def test_the_cluster_example_uses_options_and_paths_that_exist_and_no_root():
    deployment, service = YAML(typ="safe").load_all(text("docs/deploy/kubernetes.yaml"))
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert accepted(container["args"])
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["image"].endswith(advisor.__version__)
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize(
    "line", [line for line in text("docs/server.md").splitlines() if line.startswith("python serv")]
)
def test_the_commands_of_the_page_use_options_that_exist(line):
    assert accepted(shlex.split(line, comments=True)[2:])


def test_every_refusal_on_the_page_has_the_status_it_is_sent_with():
    said = re.findall(r"(\d{3}) `([a-z_]+)`", text("docs/server.md"))
    assert len(said) > 8
    assert {code: STATUS.get(code, 422) for _, code in said} == {code: int(status) for status, code in said}


def test_the_page_lists_every_option():
    page = text("docs/server.md")
    named = set(re.findall(r"`(--[a-z-]+)`", page[: page.index("## Who may ask")]))
    assert named == {option for parameter in serve.params for option in parameter.opts}
