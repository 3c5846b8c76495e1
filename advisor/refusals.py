"""What an operation cannot answer, though the arguments are right by themselves: one refusal a function."""

from __future__ import annotations

from advisor.errors import AdvisorError
from advisor.types.arguments import CaseArguments


def refuse_profile(arguments: CaseArguments, *, pointer: str = "/profile") -> None:
    """An article's arithmetic answers for a layout; which layout should run is no question to ask it."""
    if arguments.profile not in (None, "exact"):
        detail = (
            f"profile={arguments.profile} computes a layout that is given, and no article searches for one; leave it "
            "out, or give the layout to estimate_memory, explore, or find_limit of micro_batch or sequence_length"
        )
        raise AdvisorError("not_modelled", detail, pointer=pointer)


def refuse_measured(arguments: CaseArguments, *, pointer: str = "/measured_peak_gib") -> None:
    """A peak was seen on one layout, and says nothing of the others that are compared with it."""
    if arguments.measured_peak_gib is not None:
        detail = "measured_peak_gib is the peak of one layout; give both to estimate_memory, and leave it out here"
        raise AdvisorError("conflicting_arguments", detail, pointer=pointer)


def refuse_rules_from_elsewhere(arguments: CaseArguments, allow_paths: bool, *, pointer: str = "/rules") -> None:
    """An overlay is a file of the caller's machine; whether one exists on ours is nobody's business."""
    if arguments.rules is not None and not allow_paths:
        detail = "rules names a file, and files are read on the caller's own machine only; leave rules out"
        raise AdvisorError("path_not_allowed", detail, pointer=pointer)
