"""A tool: an operation of the advisor with the face it shows to hosts, and the way every door runs it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from advisor import budget
from advisor.api import OPERATIONS, Operation
from advisor.errors import AdvisorError
from advisor.request import read_request
from tools import schema
from tools.request_id import current_request_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from advisor.types import Value

logger = logging.getLogger("trainfit")


@dataclass(frozen=True)
class Reply:
    """An answer in its two forms.

    Attributes:
        answer: the value itself.
        text: what a person or a model reads; it stands on its own.
        whole: False when a budget stopped the work, so that more work might say more.
    """

    answer: Value
    text: str
    whole: bool = True

    def as_data(self) -> dict[str, Any]:
        """The answer as plain JSON data."""
        return self.answer.model_dump(mode="json", by_alias=True)

    def as_json(self, *, indent: int | None = None) -> str:
        """The answer as JSON text."""
        return self.answer.model_dump_json(by_alias=True, indent=indent)


@dataclass(frozen=True)
class Tool:
    """One tool, the same on every door.

    Attributes:
        name: an operation of ``advisor.api``.
        title: its name for people.
        description: one line, when to use it, an example: what a host's model reads.
        words: the answer's text; the second argument says whether ``detail=full`` was asked for.
        examples: complete arguments.
        long: whether it searches, so that a call may take seconds.
        most_elsewhere: the largest value of an argument for a caller on another machine.
        headers: arguments that stand in the header ``Mcp-Param-<name>`` as well, by that name: ``tools.mcp_headers``.
    """

    name: str
    title: str
    description: str
    words: Callable[[Any, bool], str]
    examples: tuple[Mapping[str, Any], ...]
    long: bool = False
    most_elsewhere: Mapping[str, float] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Where the HTTP door answers it."""
        return f"/v1/{self.name.replace('_', '-')}"

    @property
    def operation(self) -> Operation:
        """The operation behind the tool."""
        return OPERATIONS[self.name]

    @cached_property
    def input_schema(self) -> schema.Schema:
        """JSON Schema of the arguments, readable by every host."""
        return schema.input_schema(self.operation.request)

    @cached_property
    def output_schema(self) -> schema.Schema:
        """JSON Schema of the answer."""
        return schema.output_schema(self.operation.answer)

    def reply(self, arguments: Any, *, allow_paths: bool, budget_s: float | None = None) -> Reply:
        """Answer plain arguments.

        Args:
            arguments: a mapping of argument names to JSON values.
            allow_paths: whether the caller is on this machine: files named in the arguments may be read, and
                arguments that bound the work may be as large as they can.
            budget_s: seconds of processor time after which a search answers with what it has; no bound when None.

        Raises:
            AdvisorError: what is wrong with the arguments; ``internal_error`` with a request id, whose traceback is
                in the log, for a fault of our own.
        """
        try:
            request = self.read(arguments, allow_paths=allow_paths)
            with budget.within(budget_s):
                answer = self.operation.run(request, allow_paths)
                whole = getattr(answer, "complete", True) and not budget.left_out()
            return Reply(answer, self.words(answer, getattr(request, "detail", None) == "full"), whole)
        except AdvisorError:
            raise
        except Exception as error:
            raise internal_error(self.name, error) from error

    def read(self, arguments: Any, *, allow_paths: bool) -> Value:
        """The validated request.

        Raises:
            AdvisorError: what is wrong with the arguments.
        """
        request = read_request(self.operation.request, arguments)
        if not allow_paths:
            self._refuse_beyond_bounds(request)
        return request

    def _refuse_beyond_bounds(self, request: Value) -> None:
        for name, most in self.most_elsewhere.items():
            given = getattr(request, name)
            if given is not None and given > most:
                detail = f"{name}: got {given:g}; accepted over the network: at most {most:g}"
                raise AdvisorError("invalid_value", detail, pointer=f"/{name}", suggestions=[f"{most:g}"])


def internal_error(name: str, fault: Exception) -> AdvisorError:
    """The error for a fault of our own: an id for the report, nothing of the inside."""
    request_id = current_request_id()
    logger.error("%s failed, request id %s", name, request_id, exc_info=fault)
    detail = f"{name} failed by a fault of its own, not of the arguments; please report it with request id {request_id}"
    return AdvisorError("internal_error", detail)


def error_text(error: AdvisorError) -> str:
    """An error as every door prints it: the sentence, then what is close."""
    close = [name for name in error.suggestions if name not in error.detail]
    return error.detail + (f"\nSuggestions: {', '.join(close)}" if close else "")
