"""What a person picks from a host's menu: the text that sets an assistant to work, with the calls it should make."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.errors import AdvisorError, unknown_name
from advisor.request import unknown_argument
from tools.estimate_memory import ESTIMATE_MEMORY
from tools.explain import EXPLAIN
from tools.find_limit import FIND_LIMIT
from tools.recommend_setup import RECOMMEND_SETUP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.tool import Tool

HONEST: Final = (
    "Every figure in your answer comes from these calls. Say the verdict first, then the assumptions that matter, and "
    "that figures are estimates for planning. When a call is refused, do what its message says and call again."
)


@dataclass(frozen=True)
class Argument:
    """One blank of a prompt.

    Attributes:
        name: an argument of a case keeps its name, so that it can be put into a call.
        description: what to write there.
        required: whether the prompt makes no sense without it.
        kind: of ``list_catalog``: its ids are offered while the person types.
    """

    name: str
    description: str
    required: bool = False
    kind: str = ""


@dataclass(frozen=True)
class Prompt:
    """One entry of the menu.

    Attributes:
        name: what hosts call it.
        title: what people read.
        description: what it is for.
        arguments: its blanks.
        tools: what its text calls.
        wording: its text; ``{name}`` is a blank, ``{call}`` the given arguments of a case as JSON. A paragraph with a
            blank that was left empty is left out.
    """

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    tools: tuple[Tool, ...]
    wording: str

    def text(self, given: Mapping[str, str]) -> str:
        """The text with its blanks filled in.

        Raises:
            AdvisorError: ``unknown_argument``, or ``missing_argument`` for a blank that must be filled in.
        """
        names = [argument.name for argument in self.arguments]
        for name in given:
            if name not in names:
                raise unknown_argument(name, names)
        filled = {name: value.strip() for name, value in given.items() if value.strip()}
        for argument in self.arguments:
            if argument.required and argument.name not in filled:
                detail = f"{argument.name} is missing; give {argument.description}"
                raise AdvisorError("missing_argument", detail, pointer=f"/{argument.name}")
        known = ESTIMATE_MEMORY.operation.request.model_fields
        case = {name: value for name, value in filled.items() if name in known}
        blanks = {**filled, "call": json.dumps(case, ensure_ascii=False)}
        empty = [f"{{{name}}}" for name in names if name not in filled]
        paragraphs = (" ".join(each.split()) for each in self.wording.split("\n\n"))
        kept = [each.format(**blanks) for each in paragraphs if not any(blank in each for blank in empty)]
        return "\n\n".join([*kept, HONEST])


def find_prompt(name: str, among: Sequence[Prompt]) -> Prompt:
    """The prompt of that name.

    Raises:
        AdvisorError: ``unknown_prompt`` with the nearest names.
    """
    by_name = {prompt.name: prompt for prompt in among}
    if name not in by_name:
        raise unknown_name("prompt", name[:80], by_name, pointer="/name")
    return by_name[name]


def offered_prompts(tools: Sequence[Tool]) -> tuple[Prompt, ...]:
    """Those whose tools are all offered."""
    return tuple(prompt for prompt in PROMPTS if all(tool in tools for tool in prompt.tools))


_MODEL: Final = Argument("model", "a model by preset ('llama-3-70b') or size ('70B')", kind="models")
_HARDWARE: Final = Argument("hardware", "nodes x GPUs per node and device: '4x8 H100-80GB'", kind="devices")
_METHOD: Final = Argument("method", "how it is trained: full, lora, qlora …; full when left out")
_SEQUENCE: Final = Argument("sequence_length", "tokens of a sample: '8k'")

PROMPTS: Final[tuple[Prompt, ...]] = (
    Prompt(
        name="size_training_job",
        title="Size a training job",
        description="Which configuration to run for a model on given GPUs, whether it fits, how fast it is, and why.",
        arguments=(
            replace(_MODEL, required=True),
            replace(_HARDWARE, required=True),
            _METHOD,
            _SEQUENCE,
            Argument("goal", "what matters most, in words: speed, few GPUs, low cost, a longer context"),
        ),
        tools=(RECOMMEND_SETUP, ESTIMATE_MEMORY, FIND_LIMIT),
        wording="""
            Size a training job with TrainFit.

            What matters most to me: {goal}

            1. Call recommend_setup with {call}. If I asked for throughput, the fewest GPUs or the lowest cost, add the
            argument objective.

            2. If it fits, tell me the layout, the peak against what is usable, the speed, and the steps that led there
            with their reasons.

            3. If it does not fit, call the first of its next_calls as it stands; and call find_limit with
            {{"case": {call}, "of": "gpus"}} to tell me how many GPUs would do.

            4. If an assumption of the answer would flip the verdict, ask me about it before you conclude; with my
            answer, send the layout and the changed argument to estimate_memory.
        """,
    ),
    Prompt(
        name="review_configuration",
        title="Review a training configuration",
        description="Whether a configuration is legal and fits, what it wastes, and what to change first.",
        arguments=(
            Argument("configuration", "launch arguments, a config file or a description", required=True),
            _MODEL,
            _HARDWARE,
        ),
        tools=(ESTIMATE_MEMORY, RECOMMEND_SETUP),
        wording="""
            Review a training configuration with TrainFit.

            The model is {model}.

            The hardware is {hardware}.

            The configuration: {configuration}

            1. Read it into the arguments of estimate_memory, whose descriptions say what each one means. Name what you
            could not map; ask me for the model or the hardware if I have not said them.

            2. Call estimate_memory with these arguments and "detail": "full". An illegal layout is refused with the
            legal values: tell me the rule that it breaks.

            3. Call recommend_setup with the model, the hardware and what belongs to the training itself (method,
            precision, sequence_length, global_batch), without any argument of the layout.

            4. Compare the two in a table: peak, margin, speed, and each lever that differs. Say what to change first
            and what it gains; say so as well if the configuration is as good as the recommended one.
        """,
    ),
    Prompt(
        name="explain_memory",
        title="Explain what fills the memory",
        description="One question about training memory, answered with formulas, live figures and sources.",
        arguments=(
            Argument("question", "what to explain: 'why does ZeRO-3 not shrink activations?'", required=True),
            _MODEL,
            _HARDWARE,
            _METHOD,
            _SEQUENCE,
        ),
        tools=(EXPLAIN, ESTIMATE_MEMORY),
        wording="""
            Explain with TrainFit: {question}

            1. Call explain with {{"question": …}}, the question above in its own words. If it answers covered=false,
            say so, and offer the entries that it names under see.

            2. My job is {model} on {hardware}: give explain {{"case": {call}}} as well, so that its figures are those
            of my job. Then call estimate_memory with {call} and "detail": "full", and show the largest terms, each with
            its formula, its numbers and its source. Show what one change would do: take the lever that the explanation
            speaks of, and call estimate_memory again with it.
        """,
    ),
)
