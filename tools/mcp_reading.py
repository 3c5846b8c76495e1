"""What the MCP door offers beside tools: resources, prompts and completion, as handlers for the SDK's server."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from advisor.errors import AdvisorError
from tools.completion import Names, complete_address, complete_blank
from tools.prompts import find_prompt, offered_prompts
from tools.resources import find_resource, offered_resources
from tools.tool import error_text
from tools.views import MEDIA_TYPE, offered_views

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tools.prompts import Prompt
    from tools.resources import Resource
    from tools.tool import Tool
    from tools.views import View
    from tools.workers.runner import Runner

    Handler = Callable[[Any, Any], Awaitable[Any]]

MOST_VALUES: Final = 100  # of one completion, by the protocol


def reading_handlers(tools_of: Callable[[Any], Sequence[Tool]], run: Runner) -> dict[str, Any]:
    """The handlers by the names that the SDK's server takes them under.

    Args:
        tools_of: the tools that a request's caller is offered; resources and prompts follow them.
        run: computes what is read.
    """
    names = Names(run)

    async def list_resources(context: Any, _: Any) -> types.ListResourcesResult:
        tools = tools_of(context)
        single = [_resource(each) for each in offered_resources(tools) if not each.variables]
        return types.ListResourcesResult(resources=[*single, *map(_view, offered_views(tools))])

    async def list_templates(context: Any, _: Any) -> types.ListResourceTemplatesResult:
        forms = [each for each in offered_resources(tools_of(context)) if each.variables]
        return types.ListResourceTemplatesResult(resource_templates=[_template(each) for each in forms])

    async def read(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        tools = tools_of(context)
        for view in offered_views(tools):
            if view.uri == params.uri:
                return _contents(params.uri, MEDIA_TYPE, view.html)
        resource, parts = find_resource(params.uri, offered_resources(tools))
        sent = await run.reply(resource.tool, resource.call(parts), allow_paths=False)
        return _contents(params.uri, resource.media_type, resource.shown(sent, parts))

    async def list_prompts(context: Any, _: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[_prompt(each) for each in offered_prompts(tools_of(context))])

    async def get_prompt(context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt = find_prompt(params.name, offered_prompts(tools_of(context)))
        text = types.TextContent(type="text", text=prompt.text(params.arguments or {}))
        return types.GetPromptResult(
            description=prompt.description, messages=[types.PromptMessage(role="user", content=text)]
        )

    async def complete(context: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        tools, ref, blank = tools_of(context), params.ref, params.argument
        if isinstance(ref, types.PromptReference):
            found = await complete_blank(ref.name, blank.name, blank.value, offered_prompts(tools), names)
        else:
            chosen = (params.context and params.context.arguments) or {}
            among = offered_resources(tools)
            found = await complete_address(ref.uri, blank.name, blank.value, chosen, among, names)
        values = types.Completion(values=list(found[:MOST_VALUES]), total=len(found), has_more=len(found) > MOST_VALUES)
        return types.CompleteResult(completion=values)

    return {
        "on_list_resources": in_protocol_words(list_resources),
        "on_list_resource_templates": in_protocol_words(list_templates),
        "on_read_resource": in_protocol_words(read),
        "on_list_prompts": in_protocol_words(list_prompts),
        "on_get_prompt": in_protocol_words(get_prompt),
        "on_completion": in_protocol_words(complete),
    }


def in_protocol_words(handler: Handler) -> Handler:
    """The same handler, whose errors leave as the protocol's own: what was given, what is accepted, what is near."""

    @wraps(handler)
    async def answered(context: Any, params: Any) -> Any:
        try:
            return await handler(context, params)
        except AdvisorError as error:
            uri = getattr(params, "uri", None)
            data = error.as_dict() | ({"uri": uri} if uri else {})
            raise MCPError(types.INVALID_PARAMS, error_text(error), data) from None

    return answered


def _resource(resource: Resource) -> types.Resource:
    return types.Resource(uri=resource.uri, **_told(resource))


def _view(view: View) -> types.Resource:
    name = view.uri.partition("://")[2]
    return types.Resource(uri=view.uri, name=name, title=view.title, description=view.description, mime_type=MEDIA_TYPE)


def _contents(uri: str, media_type: str, text: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=media_type, text=text)])


def _template(resource: Resource) -> types.ResourceTemplate:
    return types.ResourceTemplate(uri_template=resource.uri, **_told(resource))


def _told(resource: Resource) -> dict[str, Any]:
    """What is said of a resource and of a template alike."""
    return {
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mime_type": resource.media_type,
    }


def _prompt(prompt: Prompt) -> types.Prompt:
    blanks = [
        types.PromptArgument(name=each.name, description=each.description, required=each.required)
        for each in prompt.arguments
    ]
    return types.Prompt(name=prompt.name, title=prompt.title, description=prompt.description, arguments=blanks)
