"""Published production layouts are legal and fit, and what the product recommends instead is as fast."""

import pytest

from tests.published import PUBLISHED

every_layout = pytest.mark.parametrize("one", PUBLISHED, ids=lambda one: one.title)
#: What the law may cost beside a layout that was chosen for speed alone.
PRICE_OF_THE_LAW = 0.15


@every_layout
def test_a_published_layout_is_legal_and_fits(one):
    reserved, usable = one.theirs.reserved_bytes, one.theirs.usable_bytes
    assert one.theirs.verdict in ("fits", "comfortable"), f"{reserved:,} of {usable:,}"


@every_layout
def test_for_speed_alone_ours_is_no_slower_than_the_published_layout(one):
    assert one.slower(one.fastest) <= 0


@every_layout
def test_what_is_recommended_for_a_published_job_fits(one):
    assert one.ours.estimate.verdict in ("fits", "comfortable")


@every_layout
def test_by_the_law_ours_is_hardly_slower_than_the_published_layout(one):
    assert one.slower(one.ours) <= PRICE_OF_THE_LAW


@every_layout
def test_every_difference_has_its_reason(one):
    for difference in one.differences:
        assert difference.rpartition(": ")[2].strip(), difference


def test_the_six_families_are_there():
    names = " ".join(one.title for one in PUBLISHED)
    families = ("Llama-3.1-405B", "DeepSeek-V3", "Kimi-K2", "Mixtral", "Qwen3", "Nemotron")
    assert all(family in names for family in families)
