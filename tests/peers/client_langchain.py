"""A scripted model in a LangChain agent (SDK 1.x): `python client_langchain.py URL SERVER-COMMAND ...`.

Runs in an environment of its own; prints a line of JSON a transport: the tools the model saw, the calls it made.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from pydantic import Field

TOO_LONG = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "sequence_length": "32k"}


class Script(BaseChatModel):
    """Misspells an argument, mends the call as the refusal says, and does what the answer offers next."""

    tools: list = Field(default_factory=list)
    called: list = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "script"

    def bind_tools(self, tools, **_):
        self.tools[:] = sorted(tool.name for tool in tools)
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):  # noqa: ARG002 - LangChain's signature
        answers = [message for message in messages if isinstance(message, ToolMessage)]
        if len(answers) == 3:
            return said(AIMessage(answers[-1].artifact["structured_content"]["verdict"]))
        name, arguments = self.next_call(answers)
        self.called.append(name)
        call = {"name": name, "args": arguments, "id": str(len(answers))}
        return said(AIMessage("", tool_calls=[call]))

    def next_call(self, answers):
        if not answers:
            return "estimate_memory", {**TOO_LONG, "zero_stag": 3}
        if len(answers) == 1:
            assert answers[0].status == "error", answers[0]
            assert "did you mean 'zero_stage'" in str(answers[0].content), answers[0].content
            return "estimate_memory", {**TOO_LONG, "zero_stage": 3}
        offered = answers[-1].artifact["structured_content"]["next_calls"][0]
        return offered["tool"], offered["arguments"]


def said(message):
    return ChatResult(generations=[ChatGeneration(message=message)])


async def talk(name, connection):
    client, script = MultiServerMCPClient({name: connection}), Script()
    tools = await client.get_tools()
    for tool in tools:
        tool.handle_tool_error = True
    done = await create_agent(script, tools).ainvoke({"messages": [("user", "Does it fit, and if not, what does?")]})
    read = await client.get_resources(name, uris="trainfit://topic/formula-sheet")
    prompt = await client.get_prompt(name, "explain_memory", arguments={"question": "What is ZeRO?"})
    assert "What is ZeRO?" in prompt[0].content, prompt
    verdict = done["messages"][-1].content
    return {"tools": script.tools, "called": script.called, "verdict": verdict, "read": len(read[0].as_string())}


async def main(url, *command):
    connections = {
        "http": {"transport": "streamable_http", "url": url},
        "stdio": {"transport": "stdio", "command": command[0], "args": list(command[1:])},
    }
    for name, connection in connections.items():
        about = {"client": f"LangChain {version('langchain')}", "sdk": version("mcp"), "transport": name}
        print(json.dumps(about | await talk(name, connection)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
