"""A scripted model in a pydantic-ai agent (SDK 2.x): `python client_pydantic_ai.py URL SERVER-COMMAND ...`.

Runs in an environment of its own; prints a line of JSON a transport: the tools the model saw, the calls it made.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

TOO_LONG = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "sequence_length": "32k"}


class Script:
    """Asks whether a job fits, does what the answer offers next, and estimates the layout that this recommends."""

    def __init__(self):
        self.tools, self.called = [], []

    def turn(self, messages, info):
        self.tools = sorted(tool.name for tool in info.function_tools)
        answers = [part.content for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if len(answers) == 3:
            return ModelResponse(parts=[TextPart(answers[-1]["verdict"])])
        name, arguments = self.next_call(answers)
        self.called.append(name)
        return ModelResponse(parts=[ToolCallPart(name, arguments)])

    def next_call(self, answers):
        if not answers:
            return "estimate_memory", TOO_LONG
        offered = answers[-1]["next_calls"][0]
        if len(answers) == 1:
            assert answers[0]["verdict"] == "does_not_fit", answers[0]["verdict"]
            assert offered["tool"] == "recommend_setup", offered
        return offered["tool"], offered["arguments"]


async def talk(transport):
    script, toolset = Script(), MCPToolset(transport, init_timeout=60)
    async with toolset:
        resources = [str(resource.uri) for resource in await toolset.list_resources()]
        text = await toolset.read_resource(resources[0])
        result = await Agent(FunctionModel(script.turn), toolsets=[toolset]).run("Does it fit, and if not, what does?")
    return {"tools": script.tools, "called": script.called, "verdict": result.output, "read": len(str(text))}


async def main(url, *command):
    transports = {"http": StreamableHttpTransport(url), "stdio": StdioTransport(command[0], list(command[1:]))}
    for name, transport in transports.items():
        said = {"client": f"pydantic-ai {version('pydantic-ai-slim')}", "sdk": version("mcp"), "transport": name}
        print(json.dumps(said | await talk(transport)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
