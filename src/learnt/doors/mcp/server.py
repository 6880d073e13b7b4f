"""The MCP server: registers our tools, resources and prompts with the SDK, and turns errors into helpful messages.

Errors say what went wrong and what to do, but never where in the code. Unknown arguments are not an error, because
clients add their own, but the answer lists them.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import wraps
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, ValidationError

from learnt import __version__
from learnt.clients.registry import conversation_of_call
from learnt.doors.mcp.tools import CALLER, STATED, Tools
from learnt.doors.mcp.words import format_error, prompt
from learnt.errors import LearntError
from learnt.text.clean import fold
from learnt.text.json_values import dig

_MARKDOWN = "text/markdown"
_MAX_NAME_CHARS = 60
_GREETINGS = ("initialize", "server/discover")
# Arguments that some clients add to every tool; they are ignored silently.
_CLIENT_ARGUMENTS = ("wait_for_previous",)
# What a parameter must be, in the words of JSON, by the kind of mistake.
_EXPECTED = {
    "tuple_type": "it must be a list of texts",
    "string_type": "it must be a text",
    "bool_type": "it must be true or false",
    "bool_parsing": "it must be true or false",
    "int_type": "it must be a whole number",
    "int_parsing": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "missing": "it is missing",
}
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)


def make_server(folder: str) -> Server:
    """Return the server for the project around a folder; a missing project is reported when a tool is called."""
    server = Server("learnt", instructions=prompt("instructions"), version=__version__, log_level="ERROR")
    tools = Tools(folder)
    for tool in (tools.brief, tools.recall, tools.learn, tools.discover, tools.debrief, tools.mark, tools.explain):
        hints = _READS if tool in (tools.recall, tools.explain) else _ADDS
        server.add_tool(tool, annotations=hints, structured_output=False)
    for address, name, read in (
        ("learnt://learnings.md", "learnings.md", tools.learnings_file),
        ("learnt://learnings/{goal}.md", "learnings of a goal", tools.learnings_of_goal),
        ("learnt://learning/{id}", "learning", tools.learning),
        ("learnt://standing/{agent}", "standing learnings of an agent", tools.standing),
    ):
        server.resource(address, name=name, description=read.__doc__, mime_type=_MARKDOWN)(_with_our_errors(read))
    for name, ask in (("brief", tools.brief_prompt), ("debrief", tools.debrief_prompt)):
        server.prompt(name, description=ask.__doc__)(ask)
    server.instruct_each_client(tools)
    return server


def serve_stdio(folder: str) -> None:
    """Serve the client that started this process, until it closes our stdin."""
    # A thread blocks on stdin and cannot be cancelled, so Ctrl-C must end the process directly.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        make_server(folder).run("stdio")
    except* OSError:
        pass  # the client has exited


class Server(MCPServer[Any]):
    """The SDK's server, with our error messages."""

    def instruct_each_client(self, tools: Tools) -> None:
        """Tell a client whose hooks brief its agents not to ask for briefs."""

        async def instruct(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
            result = await call_next(ctx)
            if ctx.method not in _GREETINGS or not tools.is_briefed_by_hooks(_greeting_name(ctx)):
                return result
            text = prompt("instructions_with_hooks")
            if isinstance(result, BaseModel):
                return result.model_copy(update={"instructions": text})
            return {**result, "instructions": text} if isinstance(result, dict) else result

        self._lowlevel_server.middleware.append(instruct)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; return an error as its result."""
        parameters = {tool.name: list(tool.input_schema.get("properties", {})) for tool in await self.list_tools()}
        before, stated = CALLER.set(_caller_name(context)), STATED.set(_stated_conversation(context))
        try:
            result = await super().call_tool(name, arguments, context)
        except ToolError as error:
            text = _describe_error(error, f"`{name}` takes {', '.join(parameters.get(name, []))}")
            if not text:
                raise
            result = CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
        finally:
            CALLER.reset(before)
            STATED.reset(stated)
        expected = (*parameters.get(name, arguments), *_CLIENT_ARGUMENTS)
        ignored = [fold(argument)[:_MAX_NAME_CHARS] for argument in arguments if argument not in expected]
        if ignored and isinstance(result, CallToolResult):
            result.content.append(TextContent(type="text", text=f"ignored, not a parameter: {', '.join(ignored)}"))
        return result

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt; raise an error that says what went wrong."""
        before = CALLER.set(_caller_name(context))
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(code=INVALID_PARAMS, message=_describe_error(error) or str(error)) from None
        finally:
            CALLER.reset(before)


def _with_our_errors(read: Callable[..., str]) -> Callable[..., str]:
    """Wrap a function so that the client gets our error messages."""

    @wraps(read)
    def reads(*arguments: str, **named: str) -> str:
        try:
            return read(*arguments, **named)
        except (LearntError, OSError) as error:
            raise MCPError(code=INVALID_PARAMS, message=_describe_error(error)) from None

    return reads


def _caller_name(context: Context[Any, Any] | None) -> str:
    """Return the caller's name for the history: `mcp`, and the client's name if the client sent it."""
    params = context.request_context.session.client_params if context is not None else None
    name = fold(params.client_info.name)[:_MAX_NAME_CHARS] if params is not None else ""
    return f"mcp: {name}" if name else "mcp"


def _greeting_name(context: ServerRequestContext[Any, Any]) -> str:
    """Return the name of the client that connects; empty if it does not say."""
    params = context.session.client_params
    name = dig(context.params, "clientInfo", "name") or (params.client_info.name if params is not None else "")
    return name if isinstance(name, str) else ""


def _stated_conversation(context: Context[Any, Any] | None) -> str:
    """Return the conversation that the client states with a call, as hooks know it; empty if it does not."""
    metadata = context.request_context.meta if context is not None else None
    return conversation_of_call(_caller_name(context).partition(": ")[2], metadata) if metadata else ""


def _describe_error(error: BaseException, usage: str = "") -> str:
    """Return an expected error's message for an agent; empty for any other error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LearntError):
            return format_error(cause)
        if isinstance(cause, ValidationError):
            mistakes = [
                f"`{'.'.join(map(str, mistake['loc']))}`: {_EXPECTED.get(mistake['type'], mistake['msg'])}"
                for mistake in cause.errors()
            ]
            return format_error(LearntError("; ".join(mistakes), hint=usage))
        if isinstance(cause, OSError):
            return format_error(LearntError(cause.strerror or str(cause), hint="`learnt doctor` may show the reason"))
        cause = cause.__cause__
    return ""
