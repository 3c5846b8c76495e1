"""A broken rule file is refused with a sentence that names the file, the line and the nearest name."""

from pathlib import Path

import pytest

from advisor.constraints import rulebook
from advisor.errors import AdvisorError

BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))


def _read(file, tmp_path):
    text = file.read_text()
    expected, kind = (line.split(": ", 1)[1] for line in text.splitlines()[:2])
    copy = tmp_path / file.name
    copy.write_text(text)
    return (
        expected,
        lambda: rulebook.read_constraints(tmp_path) if kind == "constraints" else rulebook.overlay(str(copy)),
    )


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_a_broken_rule_file_is_refused_with_these_words(file, tmp_path):
    expected, read = _read(file, tmp_path)
    with pytest.raises(AdvisorError) as caught:
        read()
    assert caught.value.code in ("broken_rules", "broken_file")
    assert expected in caught.value.detail


def test_a_site_file_that_is_not_there_is_refused():
    with pytest.raises(AdvisorError, match=r"nowhere\.yaml: cannot be read"):
        rulebook.overlay("/nowhere.yaml")


def test_a_step_may_not_name_a_part_of_the_time_that_does_not_exist(tmp_path):
    shipped = rulebook.rules_folder()
    (tmp_path / "tree").mkdir()
    (tmp_path / "rungs.yaml").write_text((shipped / "rungs.yaml").read_text())
    step = (shipped / "tree" / "30-tensor-parallel.yaml").read_text()
    (tmp_path / "tree" / "30.yaml").write_text(step.replace("exchange.tensor", "exchange.tensors"))
    with pytest.raises(AdvisorError, match=r"no part of a step's time is called 'exchange\.tensors'; did you mean"):
        rulebook.read_law(tmp_path)
