"""What the product says of one public report: its verdict, what decides it, what fills the memory, what failed."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from advisor.answer import answer
from advisor.diagnose import decode_allocation
from advisor.errors import AdvisorError
from advisor.request import read_request
from advisor.resolve import resolve
from advisor.types import CaseArguments, MemoryAnswer
from advisor.units import gib
from tests.validation.facts import NotGivenError
from tests.validation.reports_classes import DEPENDS, NO_VERDICT, NOT_COUNTED, STRADDLES, VERDICTS, speaks_of
from tests.validation.reports_rows import Arguments, Job, job, numbers, text

Report = Mapping[str, Any]

#: A decoded token count this close to the report's is the same.
SAME_TOKENS = 0.02
#: Classes that a missing fact about size or GPU does not excuse: a layout is illegal on any GPU.
DECIDED_WITHOUT = ("invalid_config",)


@dataclass(frozen=True)
class Judged:
    """A report and what the product says of it.

    Attributes:
        report: the report.
        ours: our verdict: a verdict, ``depends``, ``needs_info``, ``invalid`` or ``host <verdict>``.
        spanned: every verdict that what is tried or left open leads to, and ``straddles`` where a band does.
        answer: the answer at the first of the open values where the job ends as it did; None without a case.
        why: what is missing, or why it is illegal.
        out_of_reach: why no verdict of an estimate can be right or wrong here; empty where it can.
    """

    report: Report
    ours: str
    spanned: frozenset[str] = frozenset()
    answer: MemoryAnswer | None = None
    why: str = ""
    out_of_reach: str = ""

    @property
    def label(self) -> str:
        """The report's verdict class."""
        return str(self.report["expected"]["verdict_class"])

    @property
    def verdict_right(self) -> bool:
        """Whether our verdict says what the report's class says, or asks for what the report leaves open."""
        accepted = VERDICTS.get(self.label, frozenset())
        if self.ours == "needs_info":
            return self.label not in DECIDED_WITHOUT
        if self.ours == DEPENDS or self.label in ("borderline", "oom_host"):
            return self.ours in accepted or bool(self.spanned & accepted)
        return self.ours in accepted

    @property
    def dominating_right(self) -> bool | None:
        """Whether the report's dominating class is what our answer puts first; None where either says nothing."""
        label = str(self.report["expected"]["dominating_class"])
        if self.answer is None or label in ("not_applicable", "other"):
            return None
        if label == "host_states":
            return any(verdict.startswith("host") for verdict in self.spanned)
        return speaks_of(label, self.answer, quantised="qlora" in text(self.report["config"], "method"))


def judge(report: Report) -> Judged:
    """Our verdict on one report."""
    expected = report["expected"]
    beyond = NO_VERDICT.get(expected["verdict_class"]) or NOT_COUNTED.get(expected["dominating_class"], "")
    try:
        asked = job(report["config"])
    except NotGivenError as missing:
        illegal = _illegal_anywhere(report)
        if illegal:
            return illegal
        missing = _missing_shape(report) or missing
        return Judged(report, "needs_info", why=str(missing), out_of_reach=beyond or _beyond(str(missing)))
    if beyond:
        return Judged(report, "", out_of_reach=beyond)
    found = _judge_job(report, _as_it_ran(report, asked))
    short = asked.least and not {found.ours} <= {"does_not_fit", "invalid"}
    return Judged(report, found.ours, out_of_reach=asked.least) if short else found


def _illegal_anywhere(report: Report) -> Judged | None:
    """The verdict on a layout that no GPUs would make legal, although the report does not name its own."""
    try:
        found = _judge_job(report, job(_on_fewest_gpus(report["config"])))
    except NotGivenError:
        return None
    return found if found.ours == "invalid" else None


def _missing_shape(report: Report) -> NotGivenError | None:
    """What would be missing still if the GPUs were named."""
    try:
        job(_on_fewest_gpus(report["config"]))
    except NotGivenError as missing:
        return missing
    return None


def _on_fewest_gpus(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration on as many GPUs as its degrees need; "more than two" is four."""
    degrees = [(text(config, name).startswith(">"), numbers(text(config, name))) for name in ("tp", "pp", "cp")]
    world = math.prod(found[0] * (2 if above else 1) for above, found in degrees if found)
    return {**config, "gpus": {"type": "H100-80GB", "count": world}} if world > 1 else config


def _as_it_ran(report: Report, asked: Job) -> Job:
    """The job with the tokens that its failed allocation speaks of, where those are more than the report states."""
    size = report.get("observed", {}).get("tried_alloc_gib")
    if not size or "sequence_length" not in asked.given:
        return asked
    try:
        case = resolve(read_request(CaseArguments, next(_variants(asked))), allow_paths=False)
    except AdvisorError:
        return asked
    likeliest = next(iter(decode_allocation(case, gib(float(size)))), None)
    if likeliest is None or likeliest.exact or not likeliest.tensor.follows_tokens:
        return asked
    longer = round(case.training.sequence_length * likeliest.share)
    return replace(asked, given={**asked.given, "sequence_length": longer})


def _beyond(missing: str) -> str:
    """What is missing is a shape or a mechanism of ours, not a fact that the report should have stated."""
    return missing if missing.startswith(("not modelled", "the shape")) else ""


def _judge_job(report: Report, asked: Job) -> Judged:
    answers: list[MemoryAnswer] = []
    for arguments in _variants(asked):
        try:
            answers.append(answer(resolve(read_request(CaseArguments, arguments), allow_paths=False)))
        except AdvisorError as error:
            beyond = error.detail if error.code == "not_modelled" else ""
            return Judged(report, "invalid", frozenset({"invalid"}), why=error.detail, out_of_reach=beyond)
    verdicts = [_verdict(found) for found in answers]
    decided = len({_goes(verdict) for verdict in verdicts}) == 1
    spanned = {*verdicts, *(_host(found) for found in answers), *(STRADDLES for found in answers if _straddles(found))}
    failed = "oom" in str(report.get("observed", {}).get("outcome"))
    agreeing = (found for found, verdict in zip(answers, verdicts, strict=True) if _goes(verdict) != failed)
    return Judged(report, verdicts[0] if decided else DEPENDS, frozenset(spanned - {""}), next(agreeing, answers[0]))


def _variants(asked: Job) -> Iterator[Arguments]:
    """The job as given, with what it tried, and with each plausible value of what it leaves open."""
    names = tuple(asked.unstated)
    for values in itertools.product(*asked.unstated.values()):
        open_values = dict(zip(names, values, strict=True))
        yield open_values | asked.given
        for change in asked.tried:
            yield open_values | asked.given | change


def _verdict(found: MemoryAnswer) -> str:
    """The GPU's verdict; the host's where the GPU is a go and the host is none."""
    return found.verdict if not _goes(found.verdict) else _host(found) or found.verdict


def _host(found: MemoryAnswer) -> str:
    """The host's verdict where it is no go; empty where it is one."""
    return f"host {found.host.verdict}" if found.host.verdict in ("does_not_fit", "tight", "needs_info") else ""


def _straddles(found: MemoryAnswer) -> bool:
    """Whether the band has one end on each side of what is usable."""
    allocator = found.reserved_bytes / found.peak_bytes
    return found.peak_bytes_low * allocator <= found.usable_bytes < found.peak_bytes_high * allocator


def _goes(verdict: str) -> bool:
    """Whether a verdict is a go: verdicts that differ only in degree do not leave a job undecided."""
    return verdict in ("comfortable", "fits", "host needs_info")


# --- a failed allocation --------------------------------------------------------------------------------------------

#: Words of a report → our name of the tensor.
TENSORS = (
    ("expert", "weights.experts"),
    ("logits", "loss.logits"),
    ("tokens", "loss.logits"),
    ("score", "attention.scores"),
    ("layer", "gather.layer"),
    ("gradient", "gradients.flat"),
    ("optimizer", "optimizer.shard"),
)


def decoded(report: Report) -> bool:
    """Whether the likeliest tensor of the failed size is the one that the report names, for as many tokens."""
    words = str(report["failed_request_decodes_to"]).lower()
    named = next((tensor for part, tensor in TENSORS if part in words), "")
    try:
        case = resolve(read_request(CaseArguments, next(_variants(job(report["config"])))), allow_paths=False)
    except (NotGivenError, AdvisorError):
        return False
    found = decode_allocation(case, gib(float(report["observed"]["tried_alloc_gib"])))
    if not found or found[0].tensor.name != named:
        return False
    tokens = re.search(r"= ([\d.]+)k tokens", words)
    return not tokens or abs(found[0].tokens / (float(tokens[1]) * 1000) - 1) <= SAME_TOKENS
