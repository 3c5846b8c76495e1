"""What is written for those who install and run the server says what the server does."""

import json
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

import advisor
from advisor.catalog.reader import parse_yaml
from tests.peers.bundle import bundle
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


def test_the_cluster_example_uses_options_and_paths_that_exist_and_no_root():
    deployment, service = yaml.safe_load_all(text("docs/deploy/kubernetes.yaml"))
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


def test_the_bundle_starts_the_server_it_holds(tmp_path):
    manifest = json.loads(text("docs/deploy/manifest.json"))
    assert (manifest["name"], manifest["version"]) == ("trainfit", advisor.__version__)
    with zipfile.ZipFile(bundle(tmp_path)) as archive:
        assert json.loads(archive.read("manifest.json")) == manifest
        archive.extractall(tmp_path / "held")
    *_, program = manifest["server"]["mcp_config"]["args"]
    assert program == manifest["server"]["entry_point"]
    asked = [sys.executable, program, "--help"]
    said = subprocess.run(asked, cwd=tmp_path / "held", capture_output=True, text=True, check=True).stdout
    assert "--tools" in said
    computed = "import advisor; print(advisor.recommend_setup(model='7B', hardware='8 H100').rung)"
    answered = [sys.executable, "-c", computed]
    found = subprocess.run(answered, cwd=tmp_path / "held", capture_output=True, text=True, check=True).stdout
    assert found.startswith("rung-0")


def test_every_job_of_the_workflow_calls_targets_that_exist():
    workflow = parse_yaml(text(".github/workflows/ci.yml"), name="ci.yml")
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    targets = {step.removeprefix("make ") for step in steps if step.startswith("make ")}
    assert targets == {"test", "test-wheel", "bundle", "audit", "test-peers"}
    assert targets <= set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    assert workflow["permissions"] == {"contents": "read"}


def test_the_image_copies_what_it_needs_and_nothing_is_ignored_that_it_copies():
    kept = {line.removeprefix("!") for line in text(".dockerignore").splitlines() if line.startswith("!")}
    copied = {
        name
        for line in text("Dockerfile").splitlines()
        if line.startswith("COPY") and "--from" not in line
        for name in line.split()[1:-1]
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)
