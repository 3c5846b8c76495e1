"""The command line: one command a tool, options from its arguments, the same words as every other door."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from advisor import __version__
from advisor.errors import AdvisorError, unknown_name
from advisor.request import FORMER_ARGUMENTS, tool_name, unknown_argument
from tools import PRODUCT, TOOLS, find_tool
from tools.json_text import parse_json
from tools.serving import EXIT_BAD_CALL, serve
from tools.tool import Reply, Tool, error_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

EXIT_INVALID: Final = 3
EXIT_FAULT: Final = 70
EXIT_BY_VERDICT: Final = {
    "comfortable": 0,
    "fits": 0,
    "tight": 1,
    "needs_info": 1,
    "does_not_fit": 2,
    "invalid": EXIT_INVALID,
}
_SWITCH: Final[Mapping[str, Any]] = {"is_flag": False, "flag_value": "true"}
EXIT_BY_CODE: Final = {"illegal_layout": EXIT_INVALID, "internal_error": EXIT_FAULT}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 fits, 1 tight or needs info, 2 does not fit, 3 invalid, 64 a bad call."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = cli.main(given, prog_name=PRODUCT, standalone_mode=False)
    except (AdvisorError, click.ClickException) as error:
        code = _report(_refusal(error), as_json="--json" in given or "call" in given[:1])
    except (click.Abort, BrokenPipeError):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


class _Commands(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """A command that does not exist is refused with the nearest names; underscores are read as hyphens."""
        name = tool_name(args[0]).replace("_", "-")
        if name not in self.commands and not name.startswith("-"):
            raise unknown_name("tool", name[:80], self.commands, pointer="")
        return super().resolve_command(ctx, [name, *args[1:]])


class _ToolCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """An option given twice is refused, as a name that stands twice in a JSON object is."""
        *_, seen = self.make_parser(ctx).parse_args(list(args))
        twice = next((_name_of(each) for each in seen if seen.count(each) > 1), None)
        if twice is not None:
            raise AdvisorError("invalid_value", f"{twice}: given twice", pointer=f"/{twice}")
        return super().parse_args(ctx, args)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="Exit codes: 0 comfortable or fits, 1 tight or needs info, 2 does not fit, 3 illegal layout, 64 bad call.",
)
@click.version_option(__version__, prog_name=PRODUCT)
@click.pass_context
def cli(context: click.Context) -> None:
    """Will a training job fit, what fills the memory, which configuration to run, and why."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command("call")
@click.argument("tool")
@click.argument("file", default="-")
def call_command(tool: str, file: str) -> int:
    """Answer JSON with JSON: FILE (or - for standard input) holds one object, or JSON Lines for a batch."""
    chosen = find_tool(tool)
    return max((_answer_line(chosen, text) for text in _requests(_read(file))), default=0)


def command_of(tool: Tool) -> click.Command:
    """The command of a tool: an option an argument, read by the same reader as JSON."""
    properties = tool.input_schema["properties"]

    def run(as_json: bool, **given: str | None) -> int:
        arguments = {name: _value(text, properties[name]) for name, text in given.items() if text is not None}
        reply = tool.reply(arguments, allow_paths=True)
        rows = "" if as_json else getattr(reply.answer, "csv", "")
        click.echo(rows or (reply.as_json(indent=2) if as_json else reply.text), nl=not rows)
        if rows:  # a file of rows holds nothing else
            click.echo(reply.text.replace(rows.rstrip(), "").strip(), err=True)
        return _exit_code(reply)

    options: list[click.Parameter] = [_option(name, schema) for name, schema in properties.items()]
    json_flag = click.Option(["--json", "as_json"], is_flag=True, help="print the whole answer as JSON")
    return _ToolCommand(
        tool.name.replace("_", "-"),
        callback=run,
        params=[*options, json_flag],
        help="\n\n".join(tool.description.splitlines()),
        short_help=tool.title,
    )


def _option(name: str, schema: Mapping[str, Any]) -> click.Option:
    """An option that takes text: what it may hold is said by the reader. A switch alone means true."""
    kinds = {"object": "JSON|@FILE", "array": "A,B,…", "boolean": "[true|false]"}
    kind = schema.get("type", "")
    spellings = [name, *(former for former, present in FORMER_ARGUMENTS.items() if present == name)]
    return click.Option(
        [*(f"--{each.replace('_', '-')}" for each in spellings), name],
        type=str,
        metavar="|".join(schema["enum"]) if "enum" in schema else kinds.get(kind, kind),
        help=schema.get("description", ""),
        **(_SWITCH if kind == "boolean" else {}),
    )


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    """What an option's text means as JSON; text that is not of the argument's type is left for the reader to refuse."""
    kind = schema.get("type")
    if kind == "object":
        content = _read(text[1:]) if text.startswith("@") else text
        return parse_json(content, what=text if text.startswith("@") else "the option's text")
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in {"integer", "number"}:
        return _number(text)
    return text


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise AdvisorError("unreadable_file", f"{file}: cannot be read ({reason})") from None


def _requests(text: str) -> Iterator[str]:
    """The whole text when it is one JSON value, else its lines."""
    try:
        parse_json(text, what="the input")
    except AdvisorError:
        yield from (line for line in text.splitlines() if line.strip())
    else:
        yield text


def _answer_line(tool: Tool, text: str) -> int:
    try:
        reply = tool.reply(parse_json(text, what="the request"), allow_paths=True)
    except AdvisorError as error:
        return _report(error, as_json=True)
    click.echo(reply.as_json())
    return _exit_code(reply)


def _exit_code(reply: Reply) -> int:
    if getattr(reply.answer, "value", "") is None:  # find_limit: nothing fits
        return EXIT_BY_VERDICT["does_not_fit"]
    verdict = getattr(reply.answer, "verdict", "fits")
    return EXIT_BY_VERDICT[getattr(reply.answer, "decisive_verdict", verdict)]


def _report(error: AdvisorError, *, as_json: bool) -> int:
    """Say what is wrong for people; and as an object, where one that reads JSON waits for an answer."""
    if as_json:
        click.echo(json.dumps(error.as_dict(), ensure_ascii=False))
    click.echo(f"{PRODUCT}: {error_text(error)}", err=True)
    return EXIT_BY_CODE.get(error.code, EXIT_BAD_CALL)


def _refusal(error: AdvisorError | click.ClickException) -> AdvisorError:
    """The error of the one shape, also for what click refuses."""
    if isinstance(error, AdvisorError):
        return error
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error)
    return AdvisorError("invalid_value", error.format_message())


def _unknown_option(error: click.NoSuchOption) -> AdvisorError:
    """An option that its command does not have; before the command, one that belongs after it."""
    name = error.option_name.lstrip("-")
    command = error.ctx.command if error.ctx else cli
    own = _options_of(command)
    behind = {each for tool in TOOLS for each in _options_of(cli.commands[tool.name.replace("_", "-")])}
    if command is cli and name.replace("-", "_") in behind:
        detail = f"--{name} stands before the command; write it after: {PRODUCT} estimate-memory --{name} …"
        return AdvisorError("unknown_argument", detail, pointer=f"/{name}")
    return unknown_argument(name, own, listed_by="--help")


def _options_of(command: click.Command) -> list[str]:
    return [*map(_name_of, command.params), "help"]


def _name_of(option: click.Parameter) -> str:
    """What an option is called today, as JSON has it."""
    return option.opts[0].lstrip("-").replace("-", "_")


for _tool in TOOLS:
    cli.add_command(command_of(_tool))
cli.add_command(serve)


if __name__ == "__main__":
    main()
