"""`python -m tests.evals FILE`: an assistant's calls are scored; `python -m tests.evals --prompts`: what to ask it.

FILE holds JSON Lines, a call each: {"id": "fits-zero-3", "tool": "estimate_memory", "arguments": {...}}. A question
without a line counts as no call. Exit code 0 when all is as expected, 1 when not, 64 when FILE cannot be read.
"""

import json
import sys
from pathlib import Path

from advisor.errors import AdvisorError
from tests.evals.score import Score, questions, read_calls, score

BAD_CALL = 64


def main(arguments: list[str]) -> int:
    """Print the questions, or the score of a file."""
    if arguments == ["--prompts"]:
        for question in questions().values():
            print(json.dumps({"id": question.id, "prompt": question.prompt}, ensure_ascii=False))
        return 0
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return BAD_CALL
    try:
        scores = score(read_calls(Path(arguments[0]).read_text(encoding="utf-8")))
    except (AdvisorError, OSError, UnicodeDecodeError) as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return BAD_CALL
    print("\n".join(report(scores)))
    return int(any(each.differences for each in scores))


def report(scores: list[Score]) -> list[str]:
    """What differed, and how many were right."""
    differing = [f"{each.question.id}: {difference}" for each in scores for difference in each.differences]
    tools = sum(each.tool for each in scores)
    right = sum(not each.differences for each in scores)
    return [*differing, f"tool: {tools} of {len(scores)} right; tool and arguments: {right} of {len(scores)} right"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
