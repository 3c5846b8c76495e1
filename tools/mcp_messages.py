"""What a caller is told beside an answer, as log messages of the protocol, from the level on that it asked for.

Nobody is told anything unasked. In the newer era each request says its level; on stdio ``logging/setLevel`` holds until
the host hangs up; in the older era over HTTP no connection lasts for which a level could hold, so nothing is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from advisor.request import FORMER_ARGUMENTS, FORMER_TOOLS, tool_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: From the least to the most severe.
LEVELS: Final[tuple[types.LoggingLevel, ...]] = get_args(types.LoggingLevel)
LOGGER: Final = "trainfit"


class Messages:
    """The level of the one caller on stdio, and what each caller is told."""

    def __init__(self) -> None:
        self._level: types.LoggingLevel | None = None

    async def set_level(self, context: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Keep the level for as long as the connection lasts; over HTTP none does."""
        if context.request is None:
            self._level = params.level
        return types.EmptyResult()

    async def tell(self, context: Any, level: types.LoggingLevel, text: str) -> None:
        """Send a message with the answer that is being computed, when its caller listens to that level."""
        heard = self._heard(context)
        if heard is None or LEVELS.index(level) < LEVELS.index(heard):
            return
        params = types.LoggingMessageNotificationParams(level=level, logger=LOGGER, data=text)
        message = types.LoggingMessageNotification(params=params)
        await context.session.send_notification(message, related_request_id=context.request_id)

    def _heard(self, context: Any) -> types.LoggingLevel | None:
        """The least severe level that the caller wants to hear."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            level: types.LoggingLevel | None = (context.meta or {}).get(types.LOG_LEVEL_META_KEY)
            return level
        return self._level if context.request is None else None


def former_names(tool: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names of earlier releases in a call and in its case, each with the name of today."""
    if tool.replace("-", "_") in FORMER_TOOLS:
        yield tool, tool_name(tool)
    case = arguments.get("case")
    for name in (*arguments, *(case if isinstance(case, dict) else ())):
        if name.replace("-", "_") in FORMER_ARGUMENTS:
            yield name, FORMER_ARGUMENTS[name.replace("-", "_")]
